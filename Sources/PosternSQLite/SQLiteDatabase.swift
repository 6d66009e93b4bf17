// The database protocol on the system's libsqlite3: the embedded default.

import Database
import Glibc

/// A SQLite database in WAL mode: readers in parallel, one writer, also over several processes on
/// one machine (`postern` commands while `postern serve` runs). Never on a network file system.
package final class SQLiteDatabase: Database {
    /// How long to wait for another process's write before the store is `busy`. Below Postfix's
    /// timeout for a milter (30 s), and far longer than any of our transactions.
    package static let busyTimeoutSeconds = 5.0
    /// Connections for reading. A read takes microseconds, so a few connections serve hundreds of
    /// sessions. They are a few more than the processors, because a thread may be interrupted while
    /// it has one. Each has a separate page cache.
    package static let readers = 16

    /// Maximum page cache of a connection, in KiB. Every page that is read is copied into it. A
    /// memory-mapped file would avoid that, but end the process if the file is truncated or the
    /// disk fails.
    package static let cacheKibibytes = 2_000

    /// Pages of the write-ahead log after which they are moved into the main file: 16 MiB. Pages
    /// that the decision log and counters write again and again are then moved and synced only once
    /// for many commits. `SQLiteCheckpointer` does this while others write.
    package static let checkpointPages = 4000

    private let path: String
    /// The one connection that writes.
    private let writer: SQLiteConnection
    private let turn: WriterTurn
    private let checkpointer: SQLiteCheckpointer
    private let readers: SQLiteReaders
    private let files: OpenedFiles
    /// How long to wait for other writers.
    private let busyTimeout: Duration

    /// Integers are 64 bits wide in every column. STRICT tables refuse values of another type.
    /// AUTOINCREMENT never uses an identifier twice.
    package let dialect = Dialect(types: [
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT", "int": "INTEGER", "bytes": "BLOB",
        "strict": "STRICT",
        "clustered": "STRICT, WITHOUT ROWID", "sqlite": "", "postgresql": "-- ",
        "clock": "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)",
    ])

    /// Opens a database file.
    /// - Parameters:
    ///   - creating: whether to create the file, with mode 0600, if it does not exist. An existing
    ///     file is opened unchanged.
    ///   - busyTimeout: seconds to wait for another process's write. Throws `unreachable` if the
    ///     file does not exist, and `corrupted` if it is not a database.
    package init(
        path: String, creating: Bool = false, busyTimeout: Double = busyTimeoutSeconds
    ) throws(StoreFailure) {
        if creating {
            // Created before SQLite opens it, so that its WAL and shared memory get the same mode.
            do { Glibc.close(try OwnedFile.open(path, O_CREAT | O_EXCL | O_RDWR)) } catch {
                guard error.code == EEXIST else {
                    throw .temporary(.inputOutput, "the database cannot be created: \(error)")
                }
            }
        }
        let path = try Self.followed(path)
        try Self.requireAccess(path)
        let timeout = Duration.seconds(busyTimeout)
        let (writer, files) = try OpenedFiles.watch(path) { () throws(StoreFailure) in
            let writer = try SQLiteConnection(path: path, busyTimeout: timeout)
            // This creates the log and its index if they do not exist.
            guard try writer.value("PRAGMA journal_mode = WAL", String.self) == "wal" else {
                throw .permanent(
                    .statement,
                    "SQLite cannot write ahead at \(path): is it on a network file system?")
            }
            return writer
        }
        (self.path, self.writer, self.files, self.busyTimeout) = (path, writer, files, timeout)
        let turn = WriterTurn()
        self.turn = turn
        writer.countLog()
        checkpointer = SQLiteCheckpointer(turn) { () throws(StoreFailure) in
            let connection = try SQLiteConnection(
                path: path, busyTimeout: SQLiteCheckpointer.timeout)
            try files.requireInPlace()
            return connection
        }
        readers = SQLiteReaders(maximum: Self.readers) { () throws(StoreFailure) in
            let connection = try SQLiteConnection(
                path: path, isReadOnly: true, busyTimeout: timeout)
            // Another file may have the name by now.
            try files.requireInPlace()
            return connection
        }
    }

    /// SQLite only reports that it cannot open a file: the database or one beside it. This reports
    /// which file, and why.
    private static func requireAccess(_ path: String) throws(StoreFailure) {
        for file in [path, path + "-wal", path + "-shm"] where access(file, R_OK | W_OK) != 0 {
            let code = errno
            guard code != ENOENT || file == path else { continue }
            if code == ENOENT { throw .temporary(.unreachable, "there is no database at \(file)") }
            var status = stat()
            let isOthers = code == EACCES && stat(file, &status) == 0 && status.st_uid != geteuid()
            throw .temporary(
                .unreachable,
                "\(file) cannot be opened: \(String(cString: strerror(code)))"
                    + (isOthers
                        ? " (it belongs to user \(status.st_uid), and this runs as user \(geteuid()))"
                        : ""))
        }
    }

    private static func followed(_ path: String) throws(StoreFailure) -> String {
        do { return try OwnedFile.resolve(path) } catch {
            throw .temporary(.unreachable, "the database is not opened: \(error)")
        }
    }

    package func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try files.requireFoundInPlace()
        return try readers.read { connection throws(StoreFailure) in
            try connection.transaction("BEGIN DEFERRED TRANSACTION", body)
        }
    }

    /// Without BEGIN and COMMIT: a statement has its own snapshot.
    package func rows(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
        try files.requireFoundInPlace()
        return try readers.read { connection throws(StoreFailure) in
            try connection.rows(sql, arguments)
        }
    }

    package func write<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        try write(durability, timeout: nil, body)
    }

    package func write<T>(
        _ durability: Durability, timeout: Duration?, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        let deadline = ContinuousClock.now + (timeout ?? busyTimeout)
        return try turn.run(by: deadline) { () throws(StoreFailure) in
            try files.requireInPlace()
            // The remaining time is for waiting for other processes.
            writer.setBusyTimeout(deadline - .now)
            try writer.setDurability(durability)
            let result = try writer.transaction("BEGIN IMMEDIATE TRANSACTION", body)
            checkpointer.note(pages: writer.pagesInLog)
            // If the file was moved away, its writes must not be confirmed to a caller.
            try files.requireInPlace()
            return result
        }
    }

    package func requireInPlace() throws(StoreFailure) { try files.requireInPlace() }

    /// On a copy beside the database, which is equally private. A transaction would block every
    /// other writer for the whole rehearsal.
    package func rehearse<T>(
        _ body: (any Database) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        let path = path + "-rehearsal-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) } }
        let copy = try SQLiteDatabase(path: path, creating: true)
        defer { try? copy.close() }
        try readers.read { connection throws(StoreFailure) in try connection.copy(to: copy.writer) }
        return try body(copy)
    }

    /// A file beside the database, locked with flock(2): the kernel
    /// releases it when the process ends.
    package func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? {
        try SQLiteLock(path: "\(path)-lock-\(name)")
    }

    /// A shared lock on a file whose name does not begin with the database's, so it stays when the
    /// database's files are moved together.
    package func holdForService() throws(StoreFailure) -> (any DatabaseLock)? {
        if let lock = try SQLiteLock(path: Self.servicePath(path), isShared: true) { return lock }
        throw .temporary(.busy, "postern store restore is replacing the database")
    }

    /// The exclusive lock for replacing the database: no service can start while it is held. Nil if
    /// a service is running.
    package static func holdForRestore(_ path: String) throws(StoreFailure) -> (any DatabaseLock)? {
        try SQLiteLock(path: servicePath(followed(path)))
    }

    private static func servicePath(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? "postern"
        return "\(path.dropLast(name.count)).\(name)-service"
    }

    /// Copies one consistent state into a new, self-contained file (mode 0600). Other processes can
    /// write at the same time. The copy is checked before this returns; after a failure it is
    /// deleted. Throws `corrupted` if the copy is damaged.
    package func backUp(to path: String) throws(StoreFailure) {
        let file: Int32
        do { file = try OwnedFile.open(path, O_CREAT | O_EXCL | O_RDWR) } catch {
            throw .temporary(.inputOutput, "the copy cannot be created: \(error)")
        }
        defer { Glibc.close(file) }
        do throws(StoreFailure) {
            let copy = try SQLiteConnection(path: path, busyTimeout: busyTimeout)
            try readers.read { connection throws(StoreFailure) in try connection.copy(to: copy) }
            // One file, without a log beside it.
            guard try copy.value("PRAGMA journal_mode = DELETE", String.self) == "delete" else {
                throw .temporary(.inputOutput, "the copy cannot be made a single file")
            }
            try Self.check(copy)
            copy.close()
            guard fsync(file) == 0 else {
                throw .temporary(.inputOutput, "\(path) cannot be synced")
            }
        } catch {
            for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
            throw error
        }
    }

    /// Checks the whole file. Throws `corrupted`.
    package func check() throws(StoreFailure) {
        try readers.read { connection throws(StoreFailure) in try Self.check(connection) }
    }

    static func check(_ connection: SQLiteConnection) throws(StoreFailure) {
        var complaints = try connection.values("PRAGMA integrity_check(3)", String.self).filter {
            $0 != "ok"
        }
        let orphans = try connection.rows("PRAGMA foreign_key_check").count
        if orphans > 0 { complaints.append("\(orphans) rows refer to missing rows") }
        guard complaints.isEmpty else {
            throw .permanent(
                .corrupted, "the database is damaged: \(complaints.joined(separator: "; "))")
        }
    }

    /// How long `close` waits for running changes: the maximum wait of `Monitor`.
    private static let closingTimeout = Duration.seconds(86_400)

    /// Before it closes, moves written pages into the main file, as far as other processes allow
    /// without waiting.
    package func close() throws(StoreFailure) {
        checkpointer.close()
        try turn.run(by: .now + Self.closingTimeout) { () throws(StoreFailure) in
            writer.finalCheckpoint()
            readers.close()
            writer.close()
        }
    }
}
