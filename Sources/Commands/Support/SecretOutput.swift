// Secrets that are printed once, into a file more often than not.

import Glibc

/// Standard output, before a secret goes there.
package enum SecretOutput {
    /// Makes a file that standard output goes to readable for its owner alone: a shell made it as its umask says, often for all.
    /// Warns where that cannot be done.
    package static func protect() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 != 0 else { return }
        if fchmod(STDOUT_FILENO, 0o600) != 0 {
            Failure.warn("others may read the file with the secret, and its mode cannot be changed: \(Failure.words(errno))")
        }
    }
}
