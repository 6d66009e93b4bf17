// Actions that leave a line in the audit although they change no data of a team or a user.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct AuditLineTests {
    private func actions(_ runner: CommandRunner) throws -> [String] {
        let rows = try #require(try runner.json("audit") as? [[String: Any]])
        return rows.compactMap { row in
            (row["action"] as? String).map { "\($0) \(row["subject"] as? String ?? "-")" }
        }
    }

    @Test func reveal_ofAnInboxOrAName_isInTheAudit() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed(
            "user", "add", "jane", "--name", "Jane Doe", "--inbox", "jane.doe@home.example",
            "--verified")
        let before = try actions(runner).count
        for command in [
            ["user", "list"], ["user", "show", "jane"], ["inbox", "list", "jane"],
            ["inbox", "show", "jane", "1"],
        ] {
            #expect(try !runner.run(command).output.contains("jane.doe"), "\(command)")
            #expect(try actions(runner).count == before, "\(command)")
        }
        for (command, subject) in [
            (["user", "list", "--reveal"], "users"),
            (["user", "show", "jane", "--reveal"], "user:jane"),
            (["inbox", "list", "jane", "--reveal"], "user:jane"),
            (["inbox", "show", "jane", "1", "--reveal", "--json"], "user:jane"),
        ] {
            let result = try runner.run(command)
            #expect(
                result.status == 0
                    && (result.output.contains("jane.doe") || result.output.contains("Jane Doe")),
                "\(command)")
            #expect(try actions(runner).first == "user.reveal \(subject)", "\(command)")
        }
        #expect(try actions(runner).count == before + 4)
        // If the line cannot be written, nothing is shown.
        try Self.refuseLines(runner)
        let refused = try runner.run(["inbox", "list", "jane", "--reveal"])
        #expect(refused.status != 0 && !refused.output.contains("jane.doe"))
    }

    /// A shell may create the file so that all users can read it.
    @Test(arguments: [
        "api-key issue --operator --scope metrics:read", "app secret issue juice com.juice",
    ])
    func secret_intoAFile_isReadableForItsOwnerAlone(_ command: String) throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.juice", "--id-token-algorithm", "ES256")
        try ProgramRun.succeed(
            [
                "/bin/sh", "-c", "umask 022; \"$0\" \(command) --config \"$1\" > out 2> /dev/null",
                CommandRunner.executable.path,
                runner.configuration,
            ], directory: runner.folder)
        let file = runner.folder.appendingPathComponent("out").path
        #expect(
            try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
                == 0o600)
        #expect(try String(contentsOfFile: file, encoding: .utf8).count > 20)
    }

    @Test func backup_file_isInTheAuditOfBoth() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("store", "backup", "copy.db")
        #expect(try actions(runner).first == "store.backup store")
        // A store that accepts no changes must still be copied.
        try Self.refuseLines(runner)
        let late = try runner.run(["store", "backup", "late.db"])
        #expect(
            late.status == 0 && late.errors.contains("the audit has no line of this backup"),
            "\(late.errors)")
        #expect(
            FileManager.default.fileExists(
                atPath: runner.folder.appendingPathComponent("late.db").path))
    }

    /// From now on the store accepts no audit lines.
    private static func refuseLines(_ runner: CommandRunner) throws {
        let database = runner.folder.appendingPathComponent("data/postern.db").path
        let sql =
            "CREATE TRIGGER refuse BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no'); END"
        try ProgramRun.succeed([
            "python3", "-c",
            "import sqlite3,sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])", database,
            sql,
        ])
    }
}
