// postern store migrate, and the errors of every command for a database of another program.

import Accounts
import Database
import Foundation
import PosternConfiguration
import PostgresHarness
import TestSupport
import Testing

@Suite(.blocking) struct StoreMigrateTests {
    /// Whether the database is on the shared server.
    private static let places = PostgresServer.installed == nil ? [false] : [false, true]

    /// An installation, and a change of its database.
    private func installation(onServer: Bool, _ statement: String) throws -> CommandRunner {
        let runner = try CommandRunner()
        let path = runner.folder.appendingPathComponent("data/postern.db").path
        let name = "m\(UUID().uuidString.prefix(8).lowercased())"
        let url = onServer ? try #require(PostgresServer.shared).url(schema: name) : nil
        let made = try runner.run(
            ["init", "--directory", "data", "--relay-domain", "relay.example"]
                + (url.map { ["--database", $0] } ?? []))
        try #require(made.status == 0, "\(made.errors)")
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        let database = try DatabaseLocation(url ?? path, path: path, at: "").open()
        defer { try? database.close() }
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.runScript(statement)
        }
        return runner
    }

    @Test func migrate_migratedStore_hasNothingToDo() throws {
        let runner = try CommandRunner.initialised()
        #expect(try runner.succeed("store", "migrate").contains("nothing to do"))
        let report = try #require(try runner.json("store", "migrate") as? [String: Any])
        #expect(report["to"] as? Int == Migration.all.last.map { Int($0.version) })
        #expect(try runner.succeed("store", "migrate", "--plan").contains("nothing to do"))
    }

    /// A crash, a full disk or a wrong copy leaves such a file. A service with a new schema in it
    /// would refuse all mail permanently.
    @Test func emptyDatabase_anyCommand_saysToRestoreABackup() throws {
        let runner = try CommandRunner.initialised()
        let path = runner.folder.appendingPathComponent("data/postern.db").path
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: path + suffix)
        }
        try DatabaseLocation("postern.db", path: path, at: "").open(creating: true).close()
        for command in [
            ["store", "migrate", "--plan"], ["store", "migrate"], ["team", "list"], ["serve"],
        ] {
            let result = try runner.run(command)
            #expect(
                result.status == 69
                    && (result.output + result.errors).contains(
                        "the database contains no tables of Postern: restore a backup"),
                "\(command)")
        }
        let report = try runner.run(["doctor"]).output
        #expect(
            report.contains("contains no tables of Postern")
                && report.contains("restore the last backup"), "\(report)")
    }

    @Test(arguments: places) func storeOfAnotherEdit_anyCommand_saysToStartAgain(
        _ onServer: Bool
    ) throws {
        let runner = try installation(
            onServer: onServer, "UPDATE schema_migrations SET checksum = 'edited' WHERE version = 1"
        )
        let advice = "start again with postern init in an empty folder"
        try runner.fail("team", "list", status: 78, saying: advice)
        try runner.fail("store", "migrate", status: 78, saying: advice)
        try runner.fail("store", "migrate", "--plan", status: 78, saying: advice)
        let report = try runner.run(["doctor"]).output
        #expect(report.contains("another edit of 0001-schema"), "\(report)")
    }

    @Test func backupOfAnotherEdit_restore_saysToStartAgain() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("store", "backup", "copy.db")
        let copy = runner.folder.appendingPathComponent("copy.db").path
        let database = try DatabaseLocation("copy.db", path: copy, at: "").open()
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.runScript(
                "UPDATE schema_migrations SET checksum = 'edited' WHERE version = 1")
        }
        try database.close()
        let data = runner.folder.appendingPathComponent("data")
        for name in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(at: data.appendingPathComponent(name))
        }
        try runner.fail(
            "store", "restore", "copy.db", status: 78,
            saying: "start again with postern init in an empty folder")
    }

    @Test(arguments: places) func storeOfANewerProgram_anyCommand_isRefused(_ onServer: Bool) throws
    {
        let runner = try installation(
            onServer: onServer,
            "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (2, 'second', 'x', 1)"
        )
        for command in [["store", "migrate"], ["status"]] {
            let result = try runner.run(command)
            #expect(
                result.status == 78
                    && result.errors.contains("schema version 2, this program knows up to 1"))
        }
        try runner.fail("store", "migrate", "--plan", status: 78, saying: "run the newer postern")
    }
}
