// The same failures on both engines: the same code for the same cause, and no change of a failed
// transaction remains.

import Database
import TestSupport
import Testing

@Suite(.blocking) struct StoreFailureTests {
    /// A failure, and the code that every engine must report.
    struct Trouble: Sendable, CustomTestStringConvertible {
        let code: StoreFailure.Code
        let sql: String
        var arguments: [SQLValue] = []
        var testDescription: String { sql }
    }

    private static let team = "INSERT INTO teams (handle, name, created_at) VALUES"

    private static let troubles = [
        Trouble(code: .permanent(.statement), sql: "SELECT nothing FROM nowhere"),
        Trouble(code: .permanent(.statement), sql: "SELEC id FROM teams"),
        Trouble(code: .permanent(.statement), sql: "SELECT id FROM teams WHERE id = ?"),
        Trouble(
            code: .permanent(.statement), sql: "SELECT id FROM teams WHERE id = 1",
            arguments: [.integer(1)]),
        Trouble(
            code: .permanent(.constraint), sql: "\(team) ('same', 'One', 1), ('same', 'Two', 1)"),
        Trouble(code: .permanent(.constraint), sql: "\(team) ('one', NULL, 1)"),
        Trouble(
            code: .permanent(.constraint),
            sql:
                "INSERT INTO app_groups (team_id, primary_client_id, created_at) VALUES (99, NULL, 1)"
        ),
    ]

    @Test(arguments: Engine.all, troubles) func storeFailure_eachTrouble_isSameOnBothEngines(
        _ engine: Engine, _ trouble: Trouble
    ) throws {
        let test = try TestStore(engine)
        let before = try test.database.value("SELECT COUNT(*) FROM teams", Int.self)
        let error = #expect(throws: StoreFailure.self) {
            try test.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("\(raw: Self.team) ('before', 'Before', 1)")
                try connection.run(trouble.sql, trouble.arguments)
            }
        }
        #expect(error?.code == trouble.code, "\(error?.description ?? "")")
        #expect(try test.database.value("SELECT COUNT(*) FROM teams", Int.self) == before)
    }

    /// A closed database is a temporary failure. A failure of the statement would be permanent and
    /// not retried.
    @Test(arguments: Engine.all) func storeFailure_databaseClosed_isTemporary(
        _ engine: Engine
    ) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        try database.close()
        #expect(throws: StoreFailure.temporary(.unreachable)) {
            try database.rows("SELECT 1 AS one")
        }
        #expect(throws: StoreFailure.temporary(.unreachable)) {
            try database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("DELETE FROM teams")
            }
        }
    }

    @Test(arguments: Engine.all) func storeFailure_thrownInBody_isUnchanged(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        for failure in [
            StoreFailure.refused(.unmet, "first"), .temporary(.staleKeys, "second"),
            .permanent(.unsealing, "third"),
        ] {
            func fail(_ connection: any DatabaseConnection) throws(StoreFailure) { throw failure }
            func fail(_ database: any Database) throws(StoreFailure) { throw failure }
            for thrown in [
                #expect(throws: StoreFailure.self) { try test.database.read(fail) },
                #expect(throws: StoreFailure.self) { try test.database.write(.relaxed, fail) },
                #expect(throws: StoreFailure.self) { try test.database.rehearse(fail) },
                #expect(throws: StoreFailure.self) {
                    try test.database.rehearsedInTransaction(fail)
                },
            ] {
                #expect(thrown == failure && thrown?.message == failure.message)
            }
        }
    }

    @Test func storeFailure_equality_comparesCodes() {
        #expect(StoreFailure.refused(.notFound, "no team a") == .refused(.notFound, "no team b"))
        #expect(StoreFailure.refused(.notFound, "a") != .refused(.exists, "a"))
        #expect(StoreFailure.temporary(.unreachable, "a") != .temporary(.away, "a"))
        #expect(StoreFailure.permanent(.refused, "a").isRefusal == false)
    }
}
