// Lists that grow with the users, as commands print them: page by page, and not from memory at the
// end.

import Accounts
import Concurrency
import Database
import Foundation
import PosternConfiguration
import TestSupport
import Testing

@Suite(.blocking) struct ListCommandTests {
    /// More than two pages.
    private static let count = 2_100

    /// An installation with this number of users, each with an account and an address.
    private func world() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        let installation = try Installation.open(
            flag: runner.configuration, environment: [:], now: 1_790_000_000)
        defer { try? installation.close() }
        try installation.store.database.write(.durable) { connection throws(StoreFailure) in
            let numbers =
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(Self.count))"
            for statement in [
                "INSERT INTO users (handle, created_at) \(numbers) SELECT 'u' || CAST(10000 + i AS TEXT), 1 FROM n",
                """
                INSERT INTO accounts (team_id, user_id, sub, created_at)
                SELECT (SELECT id FROM teams), id, 's.' || handle, 1 FROM users ORDER BY id
                """,
                """
                INSERT INTO relay_addresses (account_id, ordinal, local_part, domain, created_at)
                SELECT id, 1, 'a' || CAST(id AS TEXT), 'relay.example', 1 FROM accounts
                """,
            ] { try connection.run(statement, []) }
        }
        return runner
    }

    @Test func list_moreThanAPage_isCompleteAndOrdered() throws {
        let runner = try world()
        for (noun, member) in [("user", "user"), ("account", "sub"), ("address", "user")] {
            let lines = try runner.succeed(noun, "list").split(separator: "\n")
            #expect(lines.count == Self.count && Set(lines).count == Self.count)
            let json = try runner.run([noun, "list", "--json"]).output
            // The pages together are one array.
            #expect(json.hasPrefix("[\n  {\n    \"") && json.hasSuffix("\n  }\n]\n"))
            let rows = try #require(
                try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]])
            let names = rows.compactMap { $0[member] as? String }
            #expect(
                names.count == Self.count && names == names.sorted()
                    && Set(names).count == Self.count)
            #expect(json.components(separatedBy: "\n  },\n  {\n").count == Self.count)
        }
        #expect(
            try (runner.json("account", "list", "--team", "juice", "--user", "u10007") as? [Any])?
                .count == 1)
    }

    @Test func list_noEntries_isEmptyArray() throws {
        let runner = try CommandRunner.initialised()
        for noun in ["user", "account", "address"] {
            #expect(try runner.run([noun, "list", "--json"]).output == "[\n\n]\n")
            #expect(try runner.succeed(noun, "list") == "")
        }
        let nothing = try runner.run(["audit", "--action", "nothing", "--json"])
        #expect(
            nothing.output == "[\n\n]\n"
                && nothing.errors.contains("no entry has the action nothing"))
        // Nothing is printed before it is known that there is something to list.
        for arguments in [["--team", "nobody"], ["--user", "nobody"]] {
            let result = try runner.run(["account", "list", "--json"] + arguments)
            #expect(result.status == 66 && result.output == "" && result.errors.contains("nobody"))
        }
    }

    /// After `head` ends, more output is left than a pipe can buffer.
    @Test(arguments: ["", "trap '' PIPE; "]) func list_outputClosedEarly_ends(
        _ before: String
    ) throws {
        let runner = try world()
        let script =
            before
            + "{ \"$0\" account list --json; echo $? > status; } 2> errors | head -n 1 > first"
        let null = try FileHandle(forUpdating: URL(fileURLWithPath: "/dev/null"))
        let shell = try SystemProcess(
            "/bin/sh", ["-c", script, CommandRunner.executable.path],
            environment: ["PATH": "/usr/bin:/bin", "POSTERN_CONFIG": runner.configuration],
            directory: runner.folder.path,
            descriptors: (null.fileDescriptor, null.fileDescriptor, null.fileDescriptor))
        #expect(shell.wait() == 0)
        func text(_ name: String) throws -> String {
            try String(contentsOf: runner.folder.appendingPathComponent(name), encoding: .utf8)
        }
        #expect(try text("first") == "[\n")
        // Ended by the signal, or by an error if the signal is ignored.
        let (status, errors) = try (text("status"), text("errors"))
        #expect(before.isEmpty ? status == "141\n" : status == "74\n", "\(status)\(errors)")
        #expect(errors == (before.isEmpty ? "" : "postern: standard output: broken pipe\n"))
    }
}
