// One GRDB connection inside a transaction.

import GRDB
import GRDBSQLite
import PosternStore

/// Statements are prepared once per connection and text, by GRDB; they are bound and read here, by SQLite's own functions, as
/// that is what the path of mail does most. SQLite knows `?` as it is.
struct SQLiteConnection: DatabaseConnection {
    let database: GRDB.Database

    func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
        var result: [SQLRow] = []
        var columns: SQLColumns?
        try step(sql, arguments) { statement in
            let count = sqlite3_column_count(statement)
            let names =
                columns ?? SQLColumns((0..<count).map { sqlite3_column_name(statement, $0).map { String(cString: $0) } ?? "" })
            columns = names
            var values: [SQLValue] = []
            values.reserveCapacity(Int(count))
            for column in 0..<count { values.append(Self.value(statement, column)) }
            result.append(SQLRow(names, values))
        }
        return result
    }

    func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
        // What no statement has changed stays as the last one left it: a statement that is not a change has touched nothing.
        let isChange = try step(sql, arguments) { _ in }
        return isChange ? database.changesCount : 0
    }

    func runScript(_ sql: String) throws { try storeErrors { try database.execute(sql: sql) } }

    /// Runs a statement that takes nothing and gives nothing, such as BEGIN.
    func execute(_ sql: String) throws { try step(sql, []) { _ in } }

    /// Steps to the end, and gives each row. The statement is free for the next use afterwards, whatever happened.
    /// - Returns: whether the statement writes.
    @discardableResult
    private func step(_ sql: String, _ arguments: [SQLValue], _ row: (OpaquePointer) -> Void) throws -> Bool {
        let statement = try storeErrors { try database.cachedStatement(sql: sql) }.sqliteStatement
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, argument) in arguments.enumerated() {
            let status = Self.bind(statement, Int32(index + 1), argument)
            guard status == SQLITE_OK else { throw failure(status) }
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: row(statement)
            case SQLITE_DONE: return sqlite3_stmt_readonly(statement) == 0
            case let status: throw failure(status)
            }
        }
    }

    private func failure(_ status: Int32) -> any Error {
        storeError(
            DatabaseError(
                resultCode: ResultCode(rawValue: sqlite3_extended_errcode(database.sqliteConnection)),
                message: database.sqliteConnection.map { String(cString: sqlite3_errmsg($0)) } ?? "SQLite result \(status)"))
    }

    /// SQLite copies what it is given before it returns.
    private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private static func bind(_ statement: OpaquePointer, _ index: Int32, _ value: SQLValue) -> Int32 {
        switch value {
        case .null: return sqlite3_bind_null(statement, index)
        case .integer(let integer): return sqlite3_bind_int64(statement, index, integer)
        case .text(var text):
            return text.withUTF8 { text in
                text.withMemoryRebound(to: CChar.self) {
                    // Of no octets there may be no address, and that would be NULL.
                    $0.isEmpty
                        ? sqlite3_bind_text(statement, index, "", 0, nil)
                        : sqlite3_bind_text64(statement, index, $0.baseAddress, UInt64($0.count), transient, UInt8(SQLITE_UTF8))
                }
            }
        case .blob(let octets):
            return octets.withUnsafeBytes {
                $0.isEmpty
                    ? sqlite3_bind_zeroblob(statement, index, 0)
                    : sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), transient)
            }
        }
    }

    private static func value(_ statement: OpaquePointer, _ column: Int32) -> SQLValue {
        switch sqlite3_column_type(statement, column) {
        case SQLITE_NULL: return .null
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, column))
        case SQLITE_BLOB:
            // The pointer comes before the length (sqlite.org/c3ref/column_blob.html).
            let start = sqlite3_column_blob(statement, column)
            return .blob(Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))))
        default:
            // No column holds a floating-point number, and no expression of ours makes one; it would come as text.
            let start = sqlite3_column_text(statement, column)
            let octets = UnsafeBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
            return .text(String(decoding: octets, as: UTF8.self))
        }
    }
}
