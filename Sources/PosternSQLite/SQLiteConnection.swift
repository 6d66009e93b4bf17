// One GRDB connection inside a transaction.

import GRDB
import GRDBSQLite
import PosternStore

/// Statements are prepared once per connection and text. SQLite knows `?1` as it is. Arguments and columns go straight to the C
/// library: through GRDB's values they cost three times what SQLite itself takes for a read.
struct SQLiteConnection: DatabaseConnection {
    let database: GRDB.Database

    func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
        try storeErrors {
            try stepping(sql, arguments) { statement in
                let columns = sqlite3_column_count(statement)
                var result: [SQLRow] = []
                while try step(statement) {
                    result.append(
                        SQLRow(
                            Array(unsafeUninitializedCapacity: Int(columns)) { values, count in
                                for column in 0..<columns { values.initializeElement(at: Int(column), to: value(statement, column)) }
                                count = Int(columns)
                            }))
                }
                return result
            }
        }
    }

    func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
        // GRDB has to know of whatever begins and ends transactions.
        guard Self.changesRows(sql) else {
            return try storeErrors {
                guard arguments.isEmpty else { throw PermanentStoreError(.statement, "this statement takes no arguments") }
                try database.execute(sql: sql)
                return 0
            }
        }
        return try storeErrors {
            try stepping(sql, arguments) { statement in
                while try step(statement) {}
                return Int(sqlite3_changes(database.sqliteConnection))
            }
        }
    }

    /// Ends a transaction that only read. A connection that cannot even do that is of no use to anyone: its next use says so.
    func end() {
        do { _ = try rows("COMMIT TRANSACTION", []) } catch { try? database.execute(sql: "ROLLBACK TRANSACTION") }
    }

    func runScript(_ sql: String) throws { try storeErrors { try database.execute(sql: sql) } }

    private static func changesRows(_ sql: String) -> Bool {
        ["INSERT", "UPDATE", "DELETE"].contains { sql.hasPrefix($0) }
    }

    /// Hands a statement with its arguments to `body`; afterwards it holds neither values nor a place in the database.
    private func stepping<Result>(_ sql: String, _ arguments: [SQLValue], _ body: (OpaquePointer) throws -> Result) throws -> Result {
        let statement = try database.cachedStatement(sql: sql).sqliteStatement
        guard sqlite3_bind_parameter_count(statement) == Int32(clamping: arguments.count) else {
            throw PermanentStoreError(.statement, "a statement got \(arguments.count) arguments")
        }
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in arguments.enumerated() {
            let result = bind(value, Int32(truncatingIfNeeded: index + 1), statement)
            guard result == SQLITE_OK else { throw error(result) }
        }
        return try body(statement)
    }

    /// Whether there is a row.
    private func step(_ statement: OpaquePointer) throws -> Bool {
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let result: throw error(result)
        }
    }

    private func error(_ result: Int32) -> DatabaseError {
        DatabaseError(resultCode: ResultCode(rawValue: result), message: database.lastErrorMessage)
    }

    private func bind(_ value: SQLValue, _ index: Int32, _ statement: OpaquePointer) -> Int32 {
        switch value {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let integer): return sqlite3_bind_int64(statement, index, integer)
        case .text(var text):
            return text.withUTF8 { octets in
                octets.withMemoryRebound(to: CChar.self) {
                    // Empty text may have no address, which SQLite would take for NULL.
                    sqlite3_bind_text64(statement, index, $0.baseAddress ?? Self.nothing, UInt64($0.count), Self.copied, UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let octets):
            if octets.isEmpty { return sqlite3_bind_zeroblob(statement, index, 0) }
            return octets.withUnsafeBytes {
                sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), Self.copied)
            }
        }
    }

    /// SQLITE_TRANSIENT: SQLite makes a copy of its own.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    nonisolated(unsafe) private static let nothing: UnsafePointer<CChar> = {
        let octet = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
        octet.initialize(to: 0)
        return UnsafePointer(octet)
    }()

    private func value(_ statement: OpaquePointer, _ column: Int32) -> SQLValue {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, column))
        case SQLITE_NULL: return .null
        case SQLITE_BLOB:
            guard let octets = sqlite3_column_blob(statement, column) else { return .blob([]) }
            return .blob(Array(UnsafeRawBufferPointer(start: octets, count: Int(sqlite3_column_bytes(statement, column)))))
        default:
            // Text; and as such the one floating number that no column holds and no expression of ours makes.
            guard let octets = sqlite3_column_text(statement, column) else { return .text("") }
            let count = Int(sqlite3_column_bytes(statement, column))
            return .text(String(decoding: UnsafeBufferPointer(start: octets, count: count), as: UTF8.self))
        }
    }
}
