// The database protocol on GRDB over the system's libsqlite3: the embedded default.

import GRDB
import GRDBSQLite
import Glibc
import PosternStore

/// A SQLite database in WAL mode: readers in parallel, one writer, also over several processes on one machine
/// (`postern` commands while `postern serve` runs). Never on a network file system.
package final class SQLiteDatabase: PosternStore.Database {
    /// How long to wait for another process's write before `TemporaryStoreError.busy`. Below Postfix's timeout with a
    /// filter (30 s), and far above what any of our transactions takes.
    package static let busyTimeoutSeconds = 5.0
    /// Connections for reading. A read takes microseconds, so a few serve hundreds of sessions; a few more than there are
    /// processors, as a thread may be interrupted while it has one. Each has its own page cache.
    package static let readers = 16

    /// Asks SQLite for pages without a copy, which our file system gives it of the whole file (`MappedFileSystem`): a decision's
    /// history is on fifteen pages of a large database, and copying them took as long as all else. SQLite's own upper limit, for
    /// where the file cannot be mapped by us; what is beyond is then copied.
    package static let mappedOctets = 0x7fff_0000

    /// Page cache of a connection at most, KiB. Only what is copied comes into it: pages of the log, and those being changed.
    package static let cacheKibibytes = 2_000

    /// Pages of the write-ahead log after which it is moved into the main file: 16 MiB. Pages that the log of decisions and
    /// counters write again and again are then moved, and synced, once for many commits.
    package static let checkpointPages = 4000

    /// The one connection that writes, and those of backups.
    private let pool: DatabasePool
    private let readers: SQLiteReaders
    private let writer = WriterState()
    private let turn = WriterTurn()
    private let files: OpenedFiles
    /// How long to wait for other writers.
    private let busyTimeout: Duration

    /// Integers are 64 bits wide in every column; STRICT tables refuse values of another type; AUTOINCREMENT never uses an
    /// identifier twice.
    package let dialect = Dialect(types: [
        "id": "INTEGER PRIMARY KEY AUTOINCREMENT", "int": "INTEGER", "bytes": "BLOB", "strict": "STRICT",
        "clustered": "STRICT, WITHOUT ROWID", "sqlite": "", "postgresql": "-- ",
        "clock": "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)",
    ])

    /// Opens a database file.
    /// - Parameters:
    ///   - creating: make the file, with mode 0600, where there is none. An existing file is opened as it is.
    ///   - busyTimeout: seconds to wait for another process's write.
    /// Throws `TemporaryStoreError` (`unreachable`) where there is none, or `PermanentStoreError` for what is not a database.
    package init(path: String, creating: Bool = false, busyTimeout: Double = busyTimeoutSeconds) throws {
        if creating {
            // Made before SQLite sees it: its WAL and shared memory then have the same mode.
            do { Glibc.close(try OwnedFile.open(path, O_CREAT | O_EXCL | O_RDWR)) } catch {
                guard error.code == EEXIST else {
                    throw TemporaryStoreError(.inputOutput, "the database cannot be created: \(error)")
                }
            }
        }
        let path = try Self.followed(path)
        try Self.requireAccess(path)
        _ = MappedFileSystem.isRegistered
        var configuration = Configuration()
        configuration.label = "postern"
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(busyTimeout)
        configuration.maximumReaderCount = 1
        configuration.prepareDatabase { database in
            // What is deleted is overwritten, so that a removed user's sealed inbox is gone from the file too.
            try database.execute(sql: "PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA synchronous = FULL")
            // A query, since it answers with what was taken.
            _ = try Row.fetchOne(database, sql: "PRAGMA mmap_size = \(Self.mappedOctets)")
            try database.execute(sql: "PRAGMA cache_size = -\(Self.cacheKibibytes)")
            _ = try Row.fetchOne(database, sql: "PRAGMA wal_autocheckpoint = \(Self.checkpointPages)")
        }
        self.busyTimeout = .seconds(busyTimeout)
        (pool, files) = try OpenedFiles.watch(path) {
            try storeErrors { try DatabasePool(path: path, configuration: configuration) }
        }
        readers = SQLiteReaders(path: path, configuration: configuration, maximum: Self.readers, files: files)
    }

    /// SQLite says of the database and of the files beside it alike that it cannot open a file. This says which, and why.
    private static func requireAccess(_ path: String) throws {
        for file in [path, path + "-wal", path + "-shm"] where access(file, R_OK | W_OK) != 0 {
            let code = errno
            guard code != ENOENT || file == path else { continue }
            if code == ENOENT { throw TemporaryStoreError(.unreachable, "there is no database at \(file)") }
            var status = stat()
            let isOthers = code == EACCES && stat(file, &status) == 0 && status.st_uid != geteuid()
            throw TemporaryStoreError(
                .unreachable,
                "\(file) cannot be opened: \(String(cString: strerror(code)))"
                    + (isOthers ? " (it belongs to user \(status.st_uid), and this runs as user \(geteuid()))" : ""))
        }
    }

    private static func followed(_ path: String) throws -> String {
        do { return try OwnedFile.resolve(path) } catch {
            throw TemporaryStoreError(.unreachable, "the database is not opened: \(error)")
        }
    }

    package func read<T>(_ body: (any DatabaseConnection) throws -> T) throws -> T {
        try files.requireFoundInPlace()
        return try storeErrors {
            // GRDB's own `read` prepares BEGIN and COMMIT again each time.
            try readers.read { database in
                try Self.transaction(SQLiteConnection(database: database), "BEGIN DEFERRED TRANSACTION", body)
            }
        }
    }

    /// Without BEGIN and COMMIT: a statement is a snapshot by itself.
    package func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
        try files.requireFoundInPlace()
        return try storeErrors { try readers.read { database in try SQLiteConnection(database: database).rows(sql, arguments) } }
    }

    /// Runs `body` between BEGIN and COMMIT, with both prepared once; rolled back where it throws.
    private static func transaction<T>(
        _ connection: SQLiteConnection, _ begin: String, _ body: (any DatabaseConnection) throws -> T
    ) throws -> T {
        try connection.execute(begin)
        do {
            let result = try body(connection)
            try connection.execute("COMMIT TRANSACTION")
            return result
        } catch {
            // Some errors of SQLite have rolled back already.
            if connection.database.isInsideTransaction { try? connection.execute("ROLLBACK TRANSACTION") }
            throw error
        }
    }

    package func write<T>(_ durability: Durability, _ body: (any DatabaseConnection) throws -> T) throws -> T {
        try write(durability, timeout: nil, body)
    }

    package func write<T>(_ durability: Durability, timeout: Duration?, _ body: (any DatabaseConnection) throws -> T) throws -> T
    {
        let deadline = ContinuousClock.now + (timeout ?? busyTimeout)
        return try turn.run(by: deadline) {
            try files.requireInPlace()
            let result = try storeErrors { try transaction(durability, by: deadline, body) }
            // No one is answered that something is kept which is in a file that was moved away.
            try files.requireInPlace()
            return result
        }
    }

    private func transaction<T>(
        _ durability: Durability, by deadline: ContinuousClock.Instant, _ body: (any DatabaseConnection) throws -> T
    ) throws -> T {
        try pool.writeWithoutTransaction { database in
            // What is left of the time is for other processes.
            let left = max(.zero, deadline - .now).components
            sqlite3_busy_timeout(
                database.sqliteConnection, Int32(clamping: left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000))
            // In WAL mode FULL syncs the log at every commit, NORMAL only at checkpoints: a crash of the process loses
            // nothing either way, a power failure the last commits. Set here, as it has no effect inside a transaction.
            if writer.durability != durability {
                try database.execute(sql: "PRAGMA synchronous = \(durability == .durable ? "FULL" : "NORMAL")")
                writer.durability = durability
            }
            let result = try Self.transaction(SQLiteConnection(database: database), "BEGIN IMMEDIATE TRANSACTION", body)
            writer.hasWritten = true
            return result
        }
    }

    package func requireInPlace() throws { try files.requireInPlace() }

    /// On a copy beside the database, which is as private as it is: a transaction would keep every other writer out for as long
    /// as the rehearsal takes.
    package func rehearse<T>(_ body: (any PosternStore.Database) throws -> T) throws -> T {
        let path = pool.path + "-rehearsal-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        defer { for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) } }
        let copy = try SQLiteDatabase(path: path, creating: true)
        defer { try? copy.close() }
        try storeErrors { try pool.backup(to: copy.pool) }
        return try body(copy)
    }

    /// A file beside the database, locked with flock(2): the kernel lets go of it when the process ends.
    package func lock(_ name: String) throws -> (any DatabaseLock)? { try SQLiteLock(path: "\(pool.path)-lock-\(name)") }

    /// A shared lock on a file whose name does not begin with the database's: it stays when the database's files are moved away
    /// together.
    package func holdForService() throws -> (any DatabaseLock)? {
        if let lock = try SQLiteLock(path: Self.servicePath(pool.path), isShared: true) { return lock }
        throw TemporaryStoreError(.busy, "postern restore is replacing the database")
    }

    /// The same for who puts a database there: as long as it is held no service begins. Nil where one serves.
    package static func holdForRestore(_ path: String) throws -> (any DatabaseLock)? {
        try SQLiteLock(path: servicePath(followed(path)))
    }

    private static func servicePath(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? "postern"
        return "\(path.dropLast(name.count)).\(name)-service"
    }

    /// Copies one consistent state into a new file (mode 0600), which is then complete by itself; others write meanwhile.
    /// What was copied is checked before this returns; where that fails nothing is left.
    /// Throws `TemporaryStoreError`, or `PermanentStoreError` (`corrupted`) where the copy is damaged.
    package func backUp(to path: String) throws {
        let file: Int32
        do { file = try OwnedFile.open(path, O_CREAT | O_EXCL | O_RDWR) } catch {
            throw TemporaryStoreError(.inputOutput, "the copy cannot be created: \(error)")
        }
        defer { Glibc.close(file) }
        do {
            try storeErrors {
                let copy = try DatabaseQueue(path: path)
                try pool.backup(to: copy)
                // One file, without a log beside it.
                try copy.inDatabase { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
                try Self.check(copy)
                try copy.close()
            }
            guard fsync(file) == 0 else { throw TemporaryStoreError(.inputOutput, "\(path) cannot be synced") }
        } catch {
            for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
            throw error
        }
    }

    /// Looks through the whole file. Throws `PermanentStoreError` (`corrupted`).
    package func check() throws { try storeErrors { try Self.check(pool) } }

    private static func check(_ reader: some DatabaseReader) throws {
        let complaints = try reader.read { database in
            let damage = try String.fetchAll(database, sql: "PRAGMA integrity_check(3)").filter { $0 != "ok" }
            let orphans = try Row.fetchAll(database, sql: "PRAGMA foreign_key_check").count
            return damage + (orphans > 0 ? ["\(orphans) rows refer to missing rows"] : [])
        }
        guard complaints.isEmpty else {
            throw PermanentStoreError(.corrupted, "the database is damaged: \(complaints.joined(separator: "; "))")
        }
    }

    /// Moves what was written into the main file first, as far as other processes allow without waiting.
    package func close() throws {
        let hasWritten = pool.writeWithoutTransaction { _ in
            // Closed twice, there is nothing left to move, and no connection to do it with.
            defer { writer.hasWritten = false }
            return writer.hasWritten
        }
        if hasWritten {
            _ = try? pool.writeWithoutTransaction { try $0.checkpoint(.passive) }
        }
        try storeErrors {
            try readers.close()
            try pool.close()
        }
    }
}

/// What the one writing connection is set to and has done. Only touched on the writer, which GRDB serialises.
private final class WriterState: @unchecked Sendable {
    var durability = Durability.durable
    var hasWritten = false
}
