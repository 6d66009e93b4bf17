// postern hold, and the report of who saw personal data.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct HoldCommandTests {
    private static func runner() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.juice")
        try runner.succeed(
            "user", "add", "jane", "--name", "Jane Doe", "--inbox", "jane.doe@home.example",
            "--verified")
        try runner.succeed("address", "issue", "juice", "jane", "--app", "com.juice")
        return runner
    }

    @Test func hold_fromBeginningToEnd_isListedExportedAndEnded() throws {
        let runner = try Self.runner()
        let begun = try runner.succeed(
            "hold", "add", "user", "jane", "--until", "2d", "--reason", "dispute 7", "--data",
            "audit", "--data", "counters")
        #expect(begun.hasPrefix("Hold 1 keeps audit, counters of user:jane until "))
        let listed = try #require(try runner.json("hold", "list") as? [[String: Any]]).first
        #expect(listed?["subject"] as? String == "user:jane")
        #expect(listed?["data"] as? [String] == ["audit", "counters"])
        #expect(listed?["reason"] as? String == "dispute 7")
        #expect(listed?["is_confidential"] as? Bool == false)
        try runner.succeed("hold", "change", "1", "--reason", "order 12")
        try runner.succeed("hold", "change", "1", "--until", "3d")
        try runner.fail(
            "hold", "change", "1", "--until", "1h", status: 64, saying: "repeat with --yes")
        try runner.succeed("hold", "change", "1", "--until", "2d", "--yes")
        try runner.succeed("user", "remove", "jane", "--yes")
        let exported = try runner.succeed("hold", "export", "1", "--reason", "order 12")
        let rows = try exported.split(separator: "\n").map {
            try #require(
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        let actions = rows.compactMap { ($0["row"] as? [String: Any])?["action"] as? String }
        #expect(actions.contains("user.add") && actions.contains("user.remove"))
        #expect(actions.contains("address.issue"))
        #expect(!exported.contains("jane.doe") && !exported.contains("Doe"))
        try runner.fail("hold", "end", "1", status: 64, saying: "repeat with --yes")
        try runner.succeed("hold", "end", "1", "--yes")
        #expect(try runner.succeed("hold", "list") == "")
        try runner.fail("hold", "export", "1", status: 66, saying: "no hold 1 is in force")
    }

    @Test func hold_badArguments_areRefused() throws {
        let runner = try Self.runner()
        for (name, option, value, text) in [
            ("jane", "--until", "never", "a hold needs an end"),
            ("jane", "--until", "1097d", "after 1096 days at the latest"),
            ("jane", "--reason", "for jane@home.example", "without an email address"),
            ("jane", "--data", "letters", "not a kind of data"),
            ("jane", "--data", "rejections", "not kept of a user"),
            ("zoe", "--data", "audit", "no user zoe"),
        ] {
            var arguments = ["hold", "add", "user", name]
            for (known, standard) in [("--until", "2d"), ("--reason", "dispute")]
            where known != option {
                arguments += [known, standard]
            }
            let result = try runner.run(arguments + [option, value])
            #expect(
                result.status != 0 && result.errors.contains(text)
                    && !result.errors.contains("jane@home"), "\(text): \(result.errors)")
        }
        #expect(try runner.succeed("hold", "list") == "")
    }

    // MARK: The report

    @Test func report_ofReveals_countsByActorActionAndReason() throws {
        let runner = try Self.runner()
        let year = Calendar(identifier: .gregorian).dateComponents(
            in: try #require(TimeZone(identifier: "UTC")), from: Date()
        ).year
        let report = ["audit", "report", "--reveals", "\(try #require(year))"]
        #expect(try runner.run(report).output == "")
        for arguments in [
            ["user", "show", "jane", "--reveal", "--reason", "ticket 7"],
            ["inbox", "list", "jane", "--reveal", "--reason", "ticket 7"],
            ["user", "list", "--reveal", "--reason", "ticket 7"],
            ["user", "show", "jane", "--reveal"],
        ] {
            #expect(try runner.run(arguments).status == 0)
        }
        let rows = try #require(
            try JSONSerialization.jsonObject(
                with: Data(try runner.run(report + ["--json"]).output.utf8)) as? [[String: Any]])
        #expect(rows.map { $0["action"] as? String } == ["user.reveal", "user.reveal"])
        #expect(rows.map { $0["reason"] as? String } == [nil, "ticket 7"])
        #expect(rows.map { $0["uses"] as? Int } == [1, 3])
        #expect(rows.map { $0["subjects"] as? Int } == [1, 2])
        #expect(rows.allSatisfy { ($0["actor"] as? String)?.hasPrefix("uid:") == true })
        let text = try runner.run(report).output
        #expect(text.contains("ticket 7") && text.contains("none given"))
        #expect(!text.contains("jane"))
        // Another year has none of them.
        #expect(try runner.run(["audit", "report", "--reveals", "2001"]).output == "")
    }

    @Test func reveal_reasonWithAnAddressOrAlone_isRefused() throws {
        let runner = try Self.runner()
        for arguments in [
            ["user", "show", "jane", "--reveal", "--reason", "of jane.doe@home.example"],
            ["user", "show", "jane", "--reason", "ticket"],
            ["user", "show", "jane", "--reveal", "--reason", ""],
        ] {
            let result = try runner.run(arguments)
            #expect(result.status == 64 && !result.output.contains("jane.doe"), "\(arguments)")
            #expect(!result.errors.contains("jane.doe"))
        }
    }

    /// The list is what `postern audit` prints.
    @Test func audit_withoutSubcommand_listsChanges() throws {
        let runner = try Self.runner()
        #expect(
            try runner.run(["audit", "--limit", "2"]).output
                == runner.run(["audit", "list", "--limit", "2"]).output)
        #expect(try runner.succeed("audit", "--user", "jane").contains("user.add"))
    }
}
