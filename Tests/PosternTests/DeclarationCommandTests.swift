// `postern apply` and `postern export` as commands.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct DeclarationCommandTests {
    private static let teams = """
        teams:
          juice:
            name: The Juice Company
            sources: [juice.example]
            apps:
              com.example.juice:
                redirect_uris: [https://juice.example/signed-in]
        """

    private func write(_ text: String, to name: String, of runner: CommandRunner) throws {
        let file = runner.folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data((text + "\n").utf8).write(to: file)
    }

    @Test func apply_sameFileAgain_changesNothing() throws {
        let runner = try CommandRunner.initialised()
        try write(Self.teams, to: "teams.yaml", of: runner)
        let plan = """
            + team juice
                name: The Juice Company
            + team juice: source juice.example
            + team juice: app com.example.juice
            + team juice: app com.example.juice: redirect URI https://juice.example/signed-in

            """
        #expect(
            try runner.succeed("apply", "teams.yaml", "--dry-run")
                == plan + "\n4 to add, 0 to change, 0 to remove; nothing was changed.")
        #expect(try runner.succeed("team", "list") == "")
        #expect(
            try runner.succeed("apply", "teams.yaml") == plan + "\n4 added, 0 changed, 0 removed.")
        #expect(try runner.succeed("apply", "teams.yaml") == "No changes.")
        #expect(try runner.succeed("apply", "-", input: Self.teams) == "No changes.")
        #expect(
            try runner.succeed("source", "list", "juice").hasPrefix("juice\tjuice.example\tdomain"))
        let audit = try runner.succeed("audit")
        #expect(
            audit.contains("declaration.apply") && audit.contains("4 added, 0 changed, 0 removed"),
            "\(audit)")

        try runner.succeed("source", "add", "juice", "other.example")
        let json = try #require(
            try runner.json("apply", "teams.yaml", "--prune", "--dry-run") as? [String: Any])
        let changes = try #require(json["changes"] as? [[String: Any]])
        #expect(
            changes.count == 1
                && changes[0]["item"] as? String == "team juice: source other.example")
        #expect(changes[0]["action"] as? String == "remove" && json["applied"] as? Bool == false)
        #expect(try runner.succeed("apply", "teams.yaml").contains("Not in the files, and kept"))
        #expect(
            try runner.succeed("apply", "teams.yaml", "--prune").hasSuffix(
                "0 added, 0 changed, 1 removed."))
    }

    @Test func export_applied_reproducesInstallation() throws {
        let runner = try CommandRunner.initialised()
        try write(Self.teams, to: "teams.yaml", of: runner)
        try runner.succeed("apply", "teams.yaml")
        try runner.succeed("list", "create", "tor", "--kind", "range")
        try runner.succeed("policy", "show", "--export", "mine")
        let file = runner.folder.appendingPathComponent("mine/policy.yaml")
        let policy = try String(contentsOf: file, encoding: .utf8)
        try Data(policy.replacing("policy: risk-default", with: "policy: juice-risk").utf8).write(
            to: file)
        let tests = runner.folder.appendingPathComponent("mine/tests.yaml")
        try Data(
            String(contentsOf: tests, encoding: .utf8).replacing(
                "policy: risk-default", with: "policy: juice-risk"
            ).utf8
        )
        .write(to: tests)
        try write(
            "policies: {juice-risk: {folder: ../mine}}\nteams: {juice: {policy: juice-risk}}",
            to: "more/policies.yaml",
            of: runner)
        #expect(try runner.succeed("apply", "more").hasSuffix("2 added, 0 changed, 0 removed."))
        #expect(try runner.succeed("apply", "more") == "No changes.")

        let text = try runner.succeed("export")
        #expect(
            text.contains("policy: juice-risk")
                && text.contains("hash: \"sha256:") == text.contains("hash: \""))
        #expect(try runner.succeed("apply", "-", "--prune", input: text) == "No changes.")
        let json = try runner.succeed("export", "--json")
        #expect(try runner.succeed("apply", "-", "--prune", input: json) == "No changes.")
        let teams =
            (try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])?["teams"]
            as? [String: Any]
        #expect((teams?["juice"] as? [String: Any])?["policy"] as? String == "juice-risk")
        try runner.fail("export", "--json", "folder", status: 64, saying: "standard output")
        #expect(
            try runner.succeed("export", "out").hasPrefix("Wrote 2 files and 2 policies into out"))
        #expect(try runner.succeed("apply", "out", "--prune") == "No changes.")
        try runner.fail("export", "out", status: 73, saying: "out exists already")

        let other = try CommandRunner.initialised()
        let folder = runner.folder.appendingPathComponent("out").path
        try other.succeed("apply", folder, "--prune")
        #expect(try other.succeed("apply", folder, "--prune") == "No changes.")
        #expect(try other.succeed("export") == text)
    }

    @Test func apply_invalidFile_namesPlaceAndChangesNothing() throws {
        let runner = try CommandRunner.initialised()
        try write(
            "teams:\n  juice:\n    name: Juice\n    souces: [a.example]", to: "teams.yaml",
            of: runner)
        let result = try runner.run(["apply", "teams.yaml"])
        #expect(result.status == 65 && result.output == "")
        #expect(
            result.errors.hasPrefix(
                "teams.yaml:4:5: error: unknown key 'souces' in team 'juice'; did you mean 'sources'?"
            ),
            "\(result.errors)")
        #expect(result.errors.hasSuffix("\npostern: nothing was changed\n"))

        try write(
            "teams:\n  juice:\n    name: Juice\n    sources:\n      - gmail.com\n      - relay.example\n    policy: strict",
            to: "teams.yaml", of: runner)
        let faults = try runner.run(["apply", "teams.yaml"])
        #expect(faults.status == 65)
        #expect(
            faults.errors.contains("teams.yaml:5:9: error: team juice: source gmail.com: "),
            "\(faults.errors)")
        #expect(faults.errors.contains("teams.yaml:6:9: error: team juice: source relay.example: "))

        try write(
            "teams: {juice: {name: Juice, policy: risk-defalt}}", to: "teams.yaml", of: runner)
        let named = try runner.run(["apply", "teams.yaml"])
        #expect(named.errors.contains("did you mean 'risk-default'?"), "\(named.errors)")
        #expect(try runner.succeed("team", "list") == "")

        try runner.fail("apply", "nowhere.yaml", status: 66, saying: "nowhere.yaml: no such file")
        try runner.fail("apply", status: 64, saying: "Name a file or a folder")
        try write("x", to: "empty/readme.txt", of: runner)
        try runner.fail("apply", "empty", status: 66, saying: "no *.yaml and no *.yml file")
        try write("policies: {mine: {folder: nowhere}}", to: "teams.yaml", of: runner)
        try runner.fail(
            "apply", "teams.yaml", status: 66, saying: "nowhere/policy.yaml: no such file")
    }

    /// Root applies the file: with a link or a pipe, another user could choose its content, or
    /// block the command for ever.
    @Test func apply_whatIsNoRegularFile_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try write("teams: {}\n", to: "real.yaml", of: runner)
        let folder = runner.folder.appendingPathComponent("declared").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            atPath: runner.folder.appendingPathComponent("link.yaml").path,
            withDestinationPath: "real.yaml")
        for pipe in ["pipe.yaml", "declared/pipe.yaml"] {
            try #require(mkfifo(runner.folder.appendingPathComponent(pipe).path, 0o600) == 0)
        }
        try runner.fail("apply", "link.yaml", status: 65, saying: "a symbolic link")
        for file in ["pipe.yaml", "declared"] {
            let result = try runner.run(["apply", file])
            #expect(
                result.status == 65 && result.errors.contains("not a regular file"),
                "\(file): \(result.errors)")
        }
        try runner.succeed("apply", "real.yaml")
    }

    @Test func apply_schemaOption_needsNoInstallation() throws {
        let result = try CommandRunner().run(["apply", "--schema"])
        #expect(result.status == 0)
        let schema =
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        #expect(schema?["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
    }
}
