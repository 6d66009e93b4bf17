// Statements by interpolation, and rows by the names of their columns.

import Database
import PosternSQLite
import TestSupport
import Testing

@Suite(.blocking) struct SQLTests {
    private enum Colour: String, SQLCodable { case red, green }

    @Test func sql_interpolatedValue_isAnArgument() {
        let name: String? = nil
        let sql: SQL =
            "SELECT id FROM teams WHERE handle = \("juice") AND created_at > \(Int64(7)) AND name = \(name)"
        #expect(sql.text == "SELECT id FROM teams WHERE handle = ? AND created_at > ? AND name = ?")
        #expect(sql.arguments == [.text("juice"), .integer(7), .null])
    }

    @Test func sql_values_areBoundByType() {
        let sql: SQL =
            "\(1) \(true) \(false) \([UInt8](repeating: 9, count: 2)) \(Colour.red) \(Int64?.some(4)) \(Colour?.none)"
        #expect(sql.text == "? ? ? ? ? ? ?")
        #expect(
            sql.arguments == [
                .integer(1), .integer(1), .integer(0), .blob([9, 9]), .text("red"), .integer(4),
                .null,
            ])
    }

    @Test func sql_part_bringsItsArguments() {
        let condition: SQL = "team_id = \(3)"
        let sql: SQL =
            "SELECT id FROM \(raw: "apps") WHERE client_id = \("a") AND \(condition) LIMIT \(2)"
        #expect(sql.text == "SELECT id FROM apps WHERE client_id = ? AND team_id = ? LIMIT ?")
        #expect(sql.arguments == [.text("a"), .integer(3), .integer(2)])
        #expect(SQL.all([]).text == "1 = 1")
        let all = SQL.all(["a = \(1)", "b = \(2)", "c IS NULL"])
        #expect(all.text == "a = ? AND b = ? AND c IS NULL")
        #expect(all.arguments == [.integer(1), .integer(2)])
    }

    @Test func sql_list_isInParentheses() {
        let one: SQL = "IN \(list: [5])"
        let three: SQL = "VALUES \(list: [1, "a", Int64?.none])"
        let empty: SQL = "IN \(list: [Int64]())"
        let bare: SQL = "SELECT \(each: [1, true])"
        #expect(
            [one, three, empty, bare].map(\.text) == [
                "IN (?)", "VALUES (?, ?, ?)", "IN ()", "SELECT ?, ?",
            ])
        #expect(three.arguments == [.integer(1), .text("a"), .null])
        #expect(bare.arguments == [.integer(1), .integer(1)])
    }

    /// Otherwise each use would be prepared again.
    @Test func sql_otherValues_haveSameText() {
        func sql(_ name: String, _ limit: Int) -> SQL {
            "SELECT id FROM teams WHERE handle = \(name) LIMIT \(limit)"
        }
        #expect(sql("a", 1).text == sql("it's \"b\" ?1", 100_000).text)
    }

    @Test(arguments: Engine.all) func sql_hostileValue_staysData(_ engine: Engine) throws {
        let store = try TestStore(engine)
        let value = "x'); DROP TABLE teams; -- ? ?1 $1"
        #expect(try store.database.value("SELECT CAST(\(value) AS TEXT) AS x") == value)
    }
}

@Suite(.blocking) struct RowTests {
    private enum Colour: String, SQLCodable { case red, green }

    private static func row(_ engine: Engine, _ sql: SQL) throws -> SQLRow {
        let store = try TestStore(engine)
        return try #require(try store.database.row(sql))
    }

    /// The number of texts to prepare must not grow with the number of keys.
    @Test(arguments: [0, 1, 2, 8, 31, 33, 128, 129, 250, 384]) func rows_manyKeys_takeFewStatements(
        _ count: Int
    ) throws {
        let test = try TestStore(.sqlite)
        defer { withExtendedLifetime(test) {} }
        let recorder = RecordingDatabase(test.database)
        let removed = try recorder.write(.durable) { connection in
            let numbers = (0..<count).map { ["n\($0)", 1] as [any SQLBindable] }
            try connection.insert(numbers, into: "users (handle, created_at)")
            let found = try connection.rows(for: (0..<count).map { "n\($0)" }) {
                "SELECT id FROM users WHERE handle IN \($0)"
            }
            #expect(Set(try found.map { try $0.only(Int64.self) }).count == count)
            return try connection.run(for: (0..<count).map { "n\($0)" }) {
                "DELETE FROM users WHERE handle IN \($0)"
            }
        }
        #expect(removed == count)
        let asked = recorder.changes("SELECT id FROM users").map(\.count)
        #expect(
            asked.count == (count + 127) / 128 && asked.allSatisfy { [1, 8, 32, 128].contains($0) })
    }

    @Test(arguments: Engine.all) func row_column_isReadByNameAndType(_ engine: Engine) throws {
        let row = try Self.row(
            engine,
            """
            SELECT t.n, t.flag, t.word, t.octets, t.absent FROM (SELECT \(Int64(7)) AS n, \(true) AS flag,
                CAST(\("red") AS TEXT) AS word, \([UInt8]([1, 0, 255])) AS octets, CAST(NULL AS BIGINT) AS absent) t
            """)
        #expect(try row["n"] == Int64(7))
        #expect(try row["n"] == 7)
        #expect(try row["flag"] == true)
        #expect(try row["word"] == "red")
        #expect(try row["word"] == Colour.red)
        #expect(try row["word"] == Colour?.some(.red))
        #expect(try row["octets"] == [UInt8]([1, 0, 255]))
        #expect(try row["absent"] == Int64?.none)
        #expect(try row["n"] == Int64?.some(7))
    }

    @Test(arguments: Engine.all) func row_wrongNameOrType_throwsWithoutValue(
        _ engine: Engine
    ) throws {
        let row = try Self.row(
            engine, "SELECT CAST(\("secret") AS TEXT) AS word, CAST(NULL AS BIGINT) AS absent")
        func failure<Value: SQLReadable>(_ name: String, _ type: Value.Type) -> String? {
            do {
                let _: Value = try row[name]
                return nil
            } catch { return error.code == .permanent(.unexpectedData) ? "\(error)" : nil }
        }
        #expect(failure("words", String.self) == "a result has no column words (unexpected data)")
        for message in [
            failure("word", Int64.self), failure("word", [UInt8].self),
            failure("word", Colour.self),
        ] {
            #expect(message?.contains("column word of a result is not of type") == true)
            #expect(message?.contains("secret") == false)
        }
        #expect(failure("absent", Int64.self) != nil)
        #expect(failure("absent", Int64?.self) == nil)
    }

    @Test(arguments: Engine.all) func row_duplicateColumnName_throws(_ engine: Engine) throws {
        let row = try Self.row(engine, "SELECT 1 AS id, 2 AS id, 3 AS other")
        #expect(try row["other"] == 3)
        let error = #expect(throws: StoreFailure.self) { let _: Int = try row["id"] }
        #expect(
            error?.code == .permanent(.unexpectedData)
                && error?.message == "a result has several columns id")
    }

    @Test(arguments: Engine.all) func value_onlyColumn_needsNoName(_ engine: Engine) throws {
        let store = try TestStore(engine)
        let database = store.database
        #expect(try database.value("SELECT COUNT(*) FROM apps") == 0)
        #expect(try database.value("SELECT MAX(id) FROM apps", Int64.self) == nil)
        #expect(try database.value("SELECT id FROM apps", Int64.self) == nil)
        #expect(try database.values("SELECT 1 AS n UNION ALL SELECT 2 ORDER BY n") == [1, 2])
        #expect(throws: StoreFailure.permanent(.unexpectedData)) {
            try database.value("SELECT 1 AS a, 2 AS b", Int.self)
        }
    }

    @Test(arguments: Engine.all) func inserted_newOrConflictingRow_returnsNumberOrThrows(
        _ engine: Engine
    ) throws {
        let store = try TestStore(engine)
        try store.database.write(.durable) { connection in
            let sql: SQL = """
                INSERT INTO teams (handle, name, created_at) VALUES \(list: ["a", "", 1]) ON CONFLICT (handle) DO NOTHING
                RETURNING id
                """
            let number = try connection.inserted(sql)
            #expect(number > 0)
            #expect(throws: StoreFailure.permanent(.unexpectedData)) {
                _ = try connection.inserted(sql)
            }
        }
    }
}
