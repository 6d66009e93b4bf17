// One GRDB connection inside a transaction.

import Foundation
import GRDB
import PosternStore

/// Statements are prepared once per connection and text. SQLite knows `?1` as it is.
struct SQLiteConnection: DatabaseConnection {
    let database: GRDB.Database

    func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] {
        try storeErrors {
            let statement = try prepared(sql, arguments)
            let columns = statement.columnCount
            var result: [SQLRow] = []
            let cursor = try Row.fetchCursor(statement)
            while let row = try cursor.next() {
                var values: [SQLValue] = []
                values.reserveCapacity(columns)
                for column in 0..<columns { values.append(value(row, column)) }
                result.append(SQLRow(values))
            }
            return result
        }
    }

    func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
        try storeErrors {
            try prepared(sql, arguments).execute()
            return database.changesCount
        }
    }

    func runScript(_ sql: String) throws { try storeErrors { try database.execute(sql: sql) } }

    private func prepared(_ sql: String, _ arguments: [SQLValue]) throws -> Statement {
        let statement = try database.cachedStatement(sql: sql)
        try statement.setArguments(StatementArguments(arguments.map(databaseValue)))
        return statement
    }

    private func databaseValue(_ value: SQLValue) -> DatabaseValue {
        switch value {
        case .null: .null
        case .integer(let integer): integer.databaseValue
        case .text(let text): text.databaseValue
        case .blob(let octets): Data(octets).databaseValue
        }
    }

    private func value(_ row: Row, _ column: Int) -> SQLValue {
        let value: DatabaseValue = row[column]
        return switch value.storage {
        case .null: .null
        case .int64(let integer): .integer(integer)
        // No column holds one, and no expression of ours makes one.
        case .double(let number): .text("\(number)")
        case .string(let text): .text(text)
        case .blob(let data): .blob(Array(data))
        }
    }
}
