// A database file that is read and never written: from a read-only mount, or of another user.

import Database
import Glibc

extension SQLiteDatabase {
    /// Copies a database file, with a log beside it, into a new, self-contained file (mode 0600),
    /// and checks the copy. No process may write to the source during the copy. Creates no file
    /// beside the source; after a failure, the copy is deleted.
    package static func copyFile(_ source: String, to path: String) throws(StoreFailure) {
        do throws(StoreFailure) {
            try copyOctets(source, to: path)
            for suffix in ["-wal", "-journal"] where access(source + suffix, F_OK) == 0 {
                try copyOctets(source + suffix, to: path + suffix)
            }
            let copy = try SQLiteConnection(path: path, busyTimeout: .seconds(busyTimeoutSeconds))
            defer { copy.close() }
            // One file, without a log beside it.
            guard try copy.value("PRAGMA journal_mode = DELETE", String.self) == "delete" else {
                throw .temporary(.inputOutput, "the copy cannot be made a single file")
            }
            try check(copy)
        } catch {
            for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
            throw error
        }
    }

    /// Copies the octets of a regular file into a new one, and syncs it.
    private static func copyOctets(_ source: String, to path: String) throws(StoreFailure) {
        // Without O_NONBLOCK, opening a pipe would wait for a writer.
        let input = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard input >= 0 else {
            throw .temporary(
                .inputOutput, "\(source) cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { Glibc.close(input) }
        var status = stat()
        guard fstat(input, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .temporary(.inputOutput, "\(source) is not a regular file")
        }
        let output: Int32
        do { output = try OwnedFile.open(path, O_CREAT | O_EXCL | O_WRONLY) } catch {
            throw .temporary(.inputOutput, "the copy cannot be created: \(error)")
        }
        defer { Glibc.close(output) }
        var left = Int(status.st_size)
        while left > 0 {
            let count = sendfile(output, input, nil, min(left, 1 << 20))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw .temporary(
                    .inputOutput, "\(source) cannot be copied: \(String(cString: strerror(errno)))")
            }
            guard count > 0 else {
                throw .temporary(.inputOutput, "\(source) became shorter while it was copied")
            }
            left -= count
        }
        guard fsync(output) == 0 else { throw .temporary(.inputOutput, "\(path) cannot be synced") }
    }
}
