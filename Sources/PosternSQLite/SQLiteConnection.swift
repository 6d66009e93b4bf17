// A safe connection to a SQLite file: statements are prepared once, and results are read
// completely.

import CSQLite
import Database
import Glibc

/// Used by one thread at a time; `WriterTurn` and `SQLiteReaders` ensure this. SQLite
/// reads `?` unchanged.
final class SQLiteConnection: DatabaseConnection, @unchecked Sendable {
    /// Nil after it is closed.
    private var handle: OpaquePointer?
    /// Statements by their text.
    private var prepared: [String: Statement] = [:]
    private var durability = Durability.durable
    /// Pages in the write-ahead log after the last commit of this connection; counted after
    /// `countLog` was called.
    private(set) var pagesInLog = 0

    private struct Statement {
        let pointer: OpaquePointer
        let columns: SQLColumns
    }

    /// Opens an existing file. Throws `corrupted` if it is not a database.
    /// - Parameter busyTimeout: how long a statement waits for other processes.
    init(path: String, isReadOnly: Bool = false, busyTimeout: Duration) throws(StoreFailure) {
        let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
        try check(
            sqlite3_open_v2(
                path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil))
        setBusyTimeout(busyTimeout)
        // Deleted data is overwritten, so that a removed user's sealed inbox is not in the file
        // either.
        try runScript(
            """
            PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA synchronous = FULL;
            PRAGMA cache_size = -\(SQLiteDatabase.cacheKibibytes); PRAGMA wal_autocheckpoint = \(SQLiteDatabase.checkpointPages)
            """)
    }

    deinit { close() }

    /// Closes the connection; later calls fail.
    func close() {
        for statement in prepared.values { sqlite3_finalize(statement.pointer) }
        prepared = [:]
        sqlite3_close_v2(handle)
        handle = nil
    }

    func setBusyTimeout(_ timeout: Duration) {
        if let handle {
            sqlite3_busy_timeout(handle, Int32(min(max(0, timeout / .milliseconds(1)), 1e9)))
        }
    }

    /// In WAL mode FULL syncs the log at every commit, and NORMAL only at checkpoints. With both, a
    /// crash of the process loses nothing. With NORMAL, a power failure loses the last commits. Has
    /// no effect inside a transaction.
    func setDurability(_ durability: Durability) throws(StoreFailure) {
        guard durability != self.durability else { return }
        try runScript("PRAGMA synchronous = \(durability == .durable ? "FULL" : "NORMAL")")
        self.durability = durability
    }

    /// From now on commits count the pages of the log, and move none of them into the main file.
    func countLog() {
        // The hook cannot outlive this connection: it ends with the handle.
        sqlite3_wal_hook(
            handle,
            { context, _, _, pages in
                if let context {
                    Unmanaged<SQLiteConnection>.fromOpaque(context).takeUnretainedValue()
                        .pagesInLog = Int(pages)
                }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The state after a checkpoint.
    struct CheckpointResult {
        /// Pages in the log.
        let pages: Int
        /// The number of these that are in the main file.
        let moved: Int
    }

    /// Moves pages of the log into the main file, as far as other readers and
    /// writers allow without waiting.
    /// - Parameter restarting: whether to wait, at most for the busy timeout, until the log is used
    ///   from its start again.
    @discardableResult
    func checkpoint(restarting: Bool = false) throws(StoreFailure) -> CheckpointResult {
        guard let handle else { throw Self.closed }
        var (pages, moved): (Int32, Int32) = (0, 0)
        let status = sqlite3_wal_checkpoint_v2(
            handle, nil, restarting ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, &pages,
            &moved)
        // A reader is still active: the next checkpoint moves the rest.
        if status & 0xFF != SQLITE_BUSY { try check(status) }
        return CheckpointResult(pages: Int(pages), moved: Int(moved))
    }

    /// Moves the pages that this connection wrote, before it closes.
    func finalCheckpoint() {
        if let handle, sqlite3_total_changes(handle) != 0 { _ = try? checkpoint() }
    }

    /// Runs `body` between BEGIN and COMMIT; rolled back if it throws.
    func transaction<T>(_ begin: String, _ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try run(begin, [])
        do {
            let result = try body(self)
            try run("COMMIT TRANSACTION", [])
            return result
        } catch {
            // After some errors SQLite has already rolled back. If a rollback fails, the connection
            // must not be used again.
            if sqlite3_get_autocommit(handle) == 0 { _ = try? run("ROLLBACK TRANSACTION", []) }
            if sqlite3_get_autocommit(handle) == 0 { close() }
            throw error
        }
    }

    /// Copies everything, from one snapshot, to an empty database. Other processes can write at the
    /// same time.
    func copy(to other: SQLiteConnection) throws(StoreFailure) {
        guard let backup = sqlite3_backup_init(other.handle, "main", handle, "main") else {
            throw other.failure(sqlite3_errcode(other.handle))
        }
        let status = sqlite3_backup_step(backup, -1)
        let end = sqlite3_backup_finish(backup)
        try other.check(status == SQLITE_DONE ? end : status)
    }

    func rows(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
        var result: [SQLRow] = []
        let statement = try statement(sql)
        let range = 0..<Int32(statement.columns.names.count)
        try step(statement, arguments) {
            result.append(
                SQLRow(statement.columns, range.map { Self.value(statement.pointer, $0) }))
        }
        return result
    }

    @discardableResult
    func run(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> Int {
        let statement = try statement(sql)
        try step(statement, arguments) {}
        // `sqlite3_changes` returns the count of the last change, also after a statement that
        // changes nothing: such a statement counts as 0.
        return sqlite3_stmt_readonly(statement.pointer) == 0 ? Int(sqlite3_changes(handle)) : 0
    }

    func runScript(_ sql: String) throws(StoreFailure) {
        guard let handle else { throw Self.closed }
        try check(sqlite3_exec(handle, sql, nil, nil, nil))
    }

    /// Steps to the end, and calls `row` for each row. Afterwards the statement can be used again,
    /// even after an error.
    private func step(
        _ statement: Statement, _ arguments: [SQLValue], _ row: () -> Void
    ) throws(StoreFailure) {
        let statement = statement.pointer
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        guard arguments.count == sqlite3_bind_parameter_count(statement) else {
            throw Self.wrongCount
        }
        for (index, argument) in arguments.enumerated() {
            try check(Self.bind(statement, Int32(index + 1), argument))
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: row()
            case SQLITE_DONE: return
            case let status: throw failure(status)
            }
        }
    }

    private func statement(_ sql: String) throws(StoreFailure) -> Statement {
        if let statement = prepared[sql] { return statement }
        guard let handle else { throw Self.closed }
        var pointer: OpaquePointer?
        let (status, isWhole) = sql.withCString { text in
            var rest: UnsafePointer<CChar>?
            let status = sqlite3_prepare_v3(
                handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, &rest)
            return (status, rest.map { strspn($0, " \n;") == strlen($0) } ?? true)
        }
        try check(status)
        guard let pointer else { throw failure(SQLITE_MISUSE) }
        guard isWhole else {
            sqlite3_finalize(pointer)
            throw Self.twoStatements
        }
        let names = (0..<sqlite3_column_count(pointer)).map {
            sqlite3_column_name(pointer, $0).map { String(cString: $0) } ?? ""
        }
        let statement = Statement(pointer: pointer, columns: SQLColumns(names))
        prepared[sql] = statement
        return statement
    }

    static let closed = StoreFailure.temporary(.unreachable, "the database is closed")
    /// Without these errors SQLite would treat missing values as NULL, and ignore a second
    /// statement.
    private static let wrongCount = StoreFailure.permanent(
        .statement, "a statement got more or fewer values than it has places")
    private static let twoStatements = StoreFailure.permanent(
        .statement, "a text of several statements is a script")

    private func check(_ status: Int32) throws(StoreFailure) {
        if status != SQLITE_OK { throw failure(status) }
    }

    private func failure(_ status: Int32) -> StoreFailure {
        let message = handle == nil ? sqlite3_errstr(status) : sqlite3_errmsg(handle)
        let extended = handle.map { sqlite3_extended_errcode($0) } ?? status
        return storeFailure(
            extended & 0xFF == status & 0xFF ? extended : status,
            message.map { String(cString: $0) } ?? "SQLite result \(status)"
        )
    }

    /// Tells SQLite to copy the value before it returns.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private static func bind(_ statement: OpaquePointer, _ index: Int32, _ value: SQLValue) -> Int32
    {
        switch value {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let integer): return sqlite3_bind_int64(statement, index, integer)
        case .text(var text):
            return text.withUTF8 { text in
                text.withMemoryRebound(to: CChar.self) {
                    // An empty buffer may have no address, which SQLite would treat as NULL.
                    $0.isEmpty
                        ? sqlite3_bind_text(statement, index, "", 0, nil)
                        : sqlite3_bind_text64(
                            statement, index, $0.baseAddress, UInt64($0.count), transient,
                            UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let octets):
            return octets.withUnsafeBytes {
                $0.isEmpty
                    ? sqlite3_bind_zeroblob(statement, index, 0)
                    : sqlite3_bind_blob64(
                        statement, index, $0.baseAddress, UInt64($0.count), transient)
            }
        }
    }

    private static func value(_ statement: OpaquePointer, _ column: Int32) -> SQLValue {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_NULL: return .null
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, column))
        case SQLITE_BLOB:
            // The pointer must be read before the length (sqlite.org/c3ref/column_blob.html).
            let start = sqlite3_column_blob(statement, column)
            return .blob(
                Array(
                    UnsafeRawBufferPointer(
                        start: start, count: Int(sqlite3_column_bytes(statement, column)))))
        default:
            // No column contains floating-point numbers, and no expression of ours makes one; it
            // would be read as text.
            let start = sqlite3_column_text(statement, column)
            let octets = UnsafeBufferPointer(
                start: start, count: Int(sqlite3_column_bytes(statement, column)))
            return .text(String(decoding: octets, as: UTF8.self))
        }
    }
}
