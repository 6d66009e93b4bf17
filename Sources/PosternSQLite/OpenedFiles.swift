// Checks that the opened files still have their names.

import Database
import Glibc
import Synchronization

/// The database's file with its log and the log's index, as they were opened. SQLite keeps using an
/// open file even if its name changes. If the file was moved or replaced, all writes go to a file
/// that no program opens later.
final class OpenedFiles: Sendable {
    private struct Identity: Equatable, Sendable {
        let device: UInt
        let number: UInt

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            (device, number) = (UInt(status.st_dev), UInt(status.st_ino))
        }
    }

    private let files: [(path: String, identity: Identity)]
    /// The result of the last check. Reads use it, because a check takes longer than many reads.
    private let isMissed = Atomic(false)

    /// - Parameters:
    ///   - path: the path of the database.
    ///   - open: opens the database. Throws `unreachable` if the file was replaced at the same
    ///     time.
    static func watch<T>(
        _ path: String, open: () throws(StoreFailure) -> T
    ) throws(StoreFailure) -> (T, OpenedFiles) {
        let before = Identity(path)
        let opened = try open()
        guard let before, Identity(path) == before else { throw missed(path) }
        return (opened, OpenedFiles(path))
    }

    private init(_ path: String) {
        files = ["", "-wal", "-shm"].compactMap { suffix in
            Identity(path + suffix).map { (path + suffix, $0) }
        }
    }

    /// Checks the files. Throws `unreachable` if one of them is not in its place. If it is put
    /// back, the database works again, and contains all writes of the time between.
    func requireInPlace() throws(StoreFailure) {
        for file in files where Identity(file.path) != file.identity {
            isMissed.store(true, ordering: .relaxed)
            throw Self.missed(file.path)
        }
        isMissed.store(false, ordering: .relaxed)
    }

    /// Checks the files only if the last check found one missing.
    func requireFoundInPlace() throws(StoreFailure) {
        if isMissed.load(ordering: .relaxed) { try requireInPlace() }
    }

    private static func missed(_ path: String) -> StoreFailure {
        .temporary(
            .unreachable,
            "\(path) was moved, removed or replaced while it was open: put it back, or restart postern serve to use what is there now"
        )
    }
}
