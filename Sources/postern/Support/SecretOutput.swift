// Secrets that are printed once, often into a file.

import Database
import Glibc

/// Standard output for a secret. The secret is valid only after it was written.
final class SecretOutput {
    /// How long a reader may take, in milliseconds: the store waits during this time.
    private static let patience: Int32 = 2_000
    private var isWritten = false
    private var failure: CommandError?

    init() {}

    /// Runs the work that makes a secret valid, and gives it the function that writes the secret.
    /// - Throws: `CommandError` if the secret could not be written: then nothing was changed.
    static func issue<T>(_ work: (SecretOutput) throws -> T) throws -> T {
        let output = SecretOutput()
        do { return try work(output) } catch { throw output.failure ?? error }
    }

    /// Writes the output of `show` on the first call, and does nothing on later calls.
    func write(_ show: () throws -> Void) throws(StoreFailure) {
        guard !isWritten else { return }
        do {
            Self.protect()
            var place = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
            guard poll(&place, 1, Self.patience) > 0 else {
                throw CommandError(status: EX_IOERR, message: "standard output: no one reads it")
            }
            try show()
            try finishOutput(isWhole: true)
            isWritten = true
        } catch {
            let reason = (error as? CommandError)?.message ?? "\(error)"
            failure = CommandError(
                status: EX_IOERR, message: "\(reason); the secret was not issued")
            throw .refused(.unmet, reason)
        }
    }

    /// Makes a file that standard output goes to readable only for its owner, because a shell's
    /// umask often allows all users to read it. Warns if that fails.
    private static func protect() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_mode & 0o077 != 0
        else { return }
        if fchmod(STDOUT_FILENO, 0o600) != 0 {
            Failure.warn(
                "other users may read the file with the secret, and its mode cannot be changed: \(Failure.words(errno))"
            )
        }
    }
}
