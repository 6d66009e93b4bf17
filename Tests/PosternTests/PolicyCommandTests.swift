// Policies from the command line: a change from its folder to its effect, and the refusals on the
// way.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct PolicyCommandTests {
    /// An installation with a copy of the built-in policy in the folder `mine`, edited.
    private func edited(
        _ name: String = "mine", _ edits: (old: String, new: String)...
    ) throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("policy", "show", "--export", name)
        try edit(runner, name, edits)
        return runner
    }

    private func edit(
        _ runner: CommandRunner, _ folder: String, _ edits: [(old: String, new: String)]
    ) throws {
        for file in ["policy.yaml", "tests.yaml"] {
            let url = runner.folder.appendingPathComponent("\(folder)/\(file)")
            var text = try String(contentsOf: url, encoding: .utf8)
            for edit in edits { text = text.replacingOccurrences(of: edit.old, with: edit.new) }
            try Data(text.utf8).write(to: url)
        }
    }

    private func overview(_ runner: CommandRunner) throws -> [String: Any] {
        try #require(try runner.json("policy", "list") as? [String: Any])
    }

    private func active(_ runner: CommandRunner) throws -> [String] {
        let rows = try #require(try overview(runner)["policies"] as? [[String: Any]])
        return rows.map { row in
            let whom = (row["decides_for"] as? [String] ?? []).joined(separator: "+")
            return "\(row["policy"] ?? "") \(row["version"] ?? "") \(whom)"
        }
    }

    @Test func policy_newInstallation_isTheBuiltInOne() throws {
        let runner = try CommandRunner.initialised()
        #expect(try active(runner) == ["risk-default 2026.5 everyone else"])
        let own = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../policy/rules/default/policy.yaml")
        #expect(
            try runner.succeed("policy", "show", "--yaml") + "\n"
                == (try String(contentsOf: own, encoding: .utf8)))
        #expect(try runner.succeed("policy", "show").contains("unknown-new-user"))
    }

    @Test func policy_activatedAndRolledBack_takesEffect() throws {
        let runner = try edited(
            "mine", ("\"2026.5\"", "\"2026.9\""),
            ("condition: inbox.signups_24h >= 3}", "condition: inbox.signups_24h >= 5}"),
            ("inbox.signups_24h: 3", "inbox.signups_24h: 5"))
        let diff = try runner.succeed("policy", "diff", "mine")
        #expect(
            diff.contains("- when there were three or more sign-ups with the inbox within a day")
                && diff.contains(
                    "+ when there were five or more sign-ups with the inbox within a day"),
            "\(diff)")
        #expect(!diff.contains("inbox.signups_24h >= 3"))
        #expect(
            try runner.succeed("policy", "diff", "mine", "--source").contains(
                "- inbox.signups_24h >= 3"))
        // The status policy gives some of these people "unknown", and this requires a check.
        #expect(
            diff.contains(
                "sign-up-burst: The status is \"unknown\" when there were five or more sign-ups"),
            "\(diff)")
        #expect(
            diff.contains("sign_up no longer asked (inbox-velocity): inbox.signups_24h = "),
            "\(diff)")
        let output = try runner.succeed("policy", "activate", "mine")
        #expect(
            output.contains("risk-default 2026.9") && output.contains("policy rollback goes back"),
            "\(output)")
        #expect(try active(runner) == ["risk-default 2026.9 everyone else"])
        #expect(try runner.succeed("policy", "activate", "mine").contains("nothing was changed"))
        // The folder is not read again.
        try FileManager.default.removeItem(at: runner.folder.appendingPathComponent("mine"))
        #expect(try runner.succeed("policy", "show", "--yaml").contains(">= 5"))
        try runner.succeed("policy", "rollback")
        #expect(try active(runner) == ["risk-default 2026.5 everyone else"])
        try runner.fail("policy", "rollback", status: 65, saying: "cannot roll back")
        let kept = try #require(try runner.json("policy", "list", "--all") as? [[String: Any]])
        let hash = try #require(
            kept.first { $0["version"] as? String == "2026.9" }?["hash"] as? String)
        try runner.succeed("policy", "activate", String(hash.dropFirst(7).prefix(8)))
        #expect(try active(runner) == ["risk-default 2026.9 everyone else"])
        let history = try #require(
            try runner.json("policy", "list", "--history") as? [[String: Any]])
        #expect(
            history.map { $0["action"] as? String } == [
                "activate", "rollback", "activate", "activate",
            ])
    }

    @Test(arguments: [
        (
            "account.age_hours < 72 &&", "account.age_hour < 72 &&",
            "did you mean 'account.age_hours'?"
        ),
        (
            "inbox.signups_24h >= 3}", "inbox.signups_24h >= 4}",
            "test 'sign_up/unsupported_under_velocity_is_asked' fails"
        ),
        (
            "- {id: unknown-new-user,", "- {id: unknown-new-user, mode: disabled,",
            "guarantee broken"
        ),
        ("policy: risk-default", "policy: [", "policy.yaml"),
    ])
    func activate_invalidCandidate_changesNothing(old: String, new: String, reason: String) throws {
        let runner = try edited("mine", (old, new))
        let result = try runner.run(["policy", "activate", "mine"])
        #expect(result.status == 1 && result.output.isEmpty)
        #expect(result.errors.contains(reason), "\(result.errors)")
        #expect(
            result.errors.contains("risk-default 2026.5")
                && result.errors.contains("stays in force"), "\(result.errors)")
        #expect(try active(runner) == ["risk-default 2026.5 everyone else"])
        let refused = try #require(try overview(runner)["refused"] as? [String: Any])
        #expect((refused["reason"] as? String)?.contains(reason) == true)
        #expect(try runner.succeed("policy", "list").contains("refused "))
        // A later activation resolves it.
        try edit(runner, "mine", [(new, old), ("\"2026.5\"", "\"2026.6\"")])
        try runner.succeed("policy", "activate", "mine")
        #expect(try overview(runner)["refused"] == nil)
    }

    @Test func bind_teamOrApp_givesItsOwnPolicy() throws {
        let runner = try edited("own", ("policy: risk-default", "policy: juice-risk"))
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.example.juice")
        try runner.fail(
            "policy", "bind", "juice", "juice-risk", status: 66,
            saying: "no policy juice-risk is active")
        #expect(
            try runner.succeed("policy", "activate", "own", "--only-bound").contains(
                "policy bind TEAM|APP juice-risk"))
        #expect(
            try runner.succeed("policy", "bind", "juice", "juice-risk")
                == "juice-risk now decides for team juice.")
        try runner.succeed("policy", "bind", "com.example.juice", "risk-default")
        #expect(
            try active(runner) == [
                "juice-risk 2026.5 team juice",
                "risk-default 2026.5 everyone else+app com.example.juice",
            ])
        try runner.fail(
            "policy", "bind", "nobody", "juice-risk", status: 66,
            saying: "no team and no app nobody")
        // A bound name stays with its teams and apps.
        try edit(runner, "own", [("\"2026.5\"", "\"2\"")])
        #expect(try runner.succeed("policy", "activate", "own").contains("for team juice"))
        try runner.fail(
            "policy", "rollback", "risk-default", status: 65, saying: "cannot roll back")
        try runner.succeed("policy", "rollback", "juice-risk")
        try runner.fail("policy", "rollback", "juice-risk", status: 65, saying: "cannot roll back")
        // By name, from the store.
        try Data("{event: sign_in, account: {state: active}}".utf8).write(
            to: runner.folder.appendingPathComponent("asked.yaml"))
        #expect(
            try runner.succeed("policy", "explain", "juice-risk", "--input", "asked.yaml").contains(
                "allow"))
        #expect(try runner.succeed("policy", "eval", "1 + 1", "--policy", "juice-risk") == "2")
        try runner.fail(
            "policy", "explain", "juice-risk", "no-such-test", status: 66,
            saying: "no test 'no-such-test'")
        try runner.fail(
            "policy", "explain", "./none", "x", status: 66,
            saying: "./none/policy.yaml: no such file")
        #expect(
            try runner.succeed("policy", "unbind", "juice")
                == "risk-default now decides for team juice.")
        try runner.fail("policy", "unbind", "juice", status: 66, saying: "no policy of its own")
        // Another name becomes the default if no team or app is bound to it, and the output says
        // so.
        #expect(
            try runner.succeed("policy", "activate", "own").contains(
                "Before: risk-default. postern policy rollback goes back."))
        try runner.succeed("policy", "rollback")
        #expect(try active(runner)[1] == "risk-default 2026.5 everyone else+app com.example.juice")
    }

    @Test func diff_twoFolders_needsNoInstallation() throws {
        let runner = try edited("one")
        try FileManager.default.copyItem(
            at: runner.folder.appendingPathComponent("one"),
            to: runner.folder.appendingPathComponent("two"))
        #expect(
            try runner.succeed("policy", "diff", "one", "two").contains(
                "The policies are identical."))
        try edit(
            runner, "two",
            [
                (
                    "challenge: human_check, reason: APP_SIGNUP_SPIKE",
                    "challenge: email_code, reason: APP_SPIKE"
                )
            ])
        let result = try runner.run(
            ["policy", "diff", "one", "two", "--json"],
            environment: ["POSTERN_CONFIG": "/nonexistent"])
        try #require(result.status == 0, "\(result.errors)")
        let diff = try #require(
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        let items = try #require(diff["differences"] as? [[String: Any]])
        #expect(
            items.map { "\($0["section"] ?? "") \($0["name"] ?? "") \($0["change"] ?? "")" } == [
                "rules app-spike changed"
            ])
        let total = try #require((diff["behaviour"] as? [String: Any])?["total"] as? [String: Int])
        #expect(total["newly_asked"] == 0)
        #expect(total["other_challenges"] ?? 0 > 0)
    }

    @Test func builtInPolicy_byItsName_isTakenWithoutAnInstallation() throws {
        let runner = try CommandRunner.initialised()
        for (words, text) in [
            (["explain", "default", "stale_token"], "the identity token is older than 15 minutes"),
            (["test", "default"], "risk-default 2026.5: 100 tests, passed"),
            (["check", "default"], "risk-default 2026.5: "),
            (
                ["show", "default"],
                "Asks for email_code at sign-ins when the account was not seen for half a year."
            ),
            (["show", "status", "--source"], "= outcomes.fraudulent >= 1"),
            (["check", "status"], "77 tests passed"),
            (["diff", "default", "default"], "The policies are identical."),
            (["eval", "account.age_hours < 72", "--policy", "default"], "missing"),
        ] {
            let run = try runner.run(
                ["policy"] + words, environment: ["POSTERN_CONFIG": "/nonexistent"])
            #expect(
                run.status == 0 && run.output.contains(text), "\(words): \(run.output)\(run.errors)"
            )
        }
        #expect(try runner.succeed("policy", "test", "risk-default").contains("passed"))
        #expect(try runner.succeed("policy", "check", "status").contains("77 tests passed"))
        try runner.fail(
            "policy", "test", "nowhere", status: 66, saying: "there is no policy nowhere")
    }

    /// In a pipe, a report looks as on a terminal; a list is for `cut`.
    @Test func table_intoAPipe_hasItsHeaderInReportsAlone() throws {
        let runner = try CommandRunner.initialised()
        #expect(try runner.succeed("policy", "list").hasPrefix("POLICY        VERSION  HASH"))
        #expect(try runner.succeed("policy", "list", "--all").hasPrefix("risk-default\t2026.5\t"))
    }

    /// With an unset variable, `--export "$DIR"` must not overwrite policy.yaml in the current
    /// folder.
    @Test(arguments: [
        ["policy", "show", "--export", ""], ["policy", "show", "--export="],
        ["policy", "test", "mine", "--junit", ""],
        ["policy", "backtest", "risk-default", "--html", ""],
        ["policy", "bench", "default", "--html="],
        ["policy", "test", ""], ["policy", "activate", ""], ["policy", "check", ""],
        ["export", ""], ["apply", ""],
        ["import", "rows.csv", "--errors", ""], ["import", ""], ["list", "import", "x", ""],
        ["store", "backup", ""],
        ["store", "restore", ""],
        ["init", "--directory", "", "--relay-domain", "relay.example"],
        ["team", "list", "--config", ""],
        ["setup", "postfix", "--config-directory", ""], ["queue", "list", "--config-directory="],
        ["trace", "x", "--log", ""],
        ["decision", "label", "--csv", ""],
    ]) func path_thatIsEmpty_isRefused(_ arguments: [String]) throws {
        let runner = try edited("mine")
        let own = runner.folder.appendingPathComponent("policy.yaml")
        try Data("MINE".utf8).write(to: own)
        let result = try runner.run(arguments)
        #expect(result.status == 64 && result.output == "", "\(result)")
        // ArgumentParser itself refuses `--option=`.
        let words =
            arguments.contains { $0.hasSuffix("=") } ? "Missing value for" : "the path is empty"
        #expect(result.errors.contains(words), "\(result)")
        #expect(result.errors.count { $0 == "\n" } == 1, "\(result.errors)")
        #expect(try Data(contentsOf: own) == Data("MINE".utf8))
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: runner.folder.path).sorted() == [
                "data", "mine", "policy.yaml",
            ])
    }

    /// The error must be one line, with a status that differs from that of a failed test.
    @Test func report_toWhatTakesNone_isRefusedInALine() throws {
        let runner = try edited("mine")
        try FileManager.default.createDirectory(
            at: runner.folder.appendingPathComponent("folder"), withIntermediateDirectories: false)
        for command in [
            ["policy", "test", "mine", "--junit"],
            ["policy", "backtest", "risk-default", "--html"],
        ] {
            for (place, status, words) in [
                ("folder", 73, "folder: is a folder"), ("/dev/full", 74, "No space left"),
                ("none/x", 73, "none/x: No such file"),
            ] as [(String, Int32, String)] {
                let result = try runner.run(command + [place])
                #expect(
                    result.status == status && result.errors.contains(words),
                    "\(command) \(place): \(result)")
                #expect(result.errors.count { $0 == "\n" } == 1, "\(result.errors)")
            }
        }
        // As on a full disk: an earlier report stays, and no new file is left.
        try Data("OLD".utf8).write(to: runner.folder.appendingPathComponent("kept.xml"))
        for name in ["kept.xml", "absent.xml"] {
            // The output of the command goes into a pipe, to which the limit does not apply.
            let script =
                "(trap '' XFSZ; ulimit -f 0; \"$0\" policy test mine --junit \(name) 2>&1; echo \"status $?\") | cat"
            let full = try ProgramRun(
                ["/bin/sh", "-c", script, CommandRunner.executable.path], input: Data(),
                environment: ["PATH": "/usr/bin:/bin"],
                directory: runner.folder)
            #expect(
                full.output.contains("postern: \(name): ") && full.output.contains("status 74"),
                "\(full.output)")
        }
        #expect(
            try String(
                contentsOf: runner.folder.appendingPathComponent("kept.xml"), encoding: .utf8)
                == "OLD")
        let names = try FileManager.default.contentsOfDirectory(atPath: runner.folder.path).filter {
            $0.contains(".xml")
        }
        #expect(names == ["kept.xml"])
        // An earlier report is replaced, by its name and through a link.
        let old = runner.folder.appendingPathComponent("old.xml")
        try FileManager.default.createSymbolicLink(
            atPath: runner.folder.appendingPathComponent("link.xml").path,
            withDestinationPath: "old.xml")
        for name in ["old.xml", "link.xml"] {
            try Data("OLD".utf8).write(to: old)
            try #require(chmod(old.path, 0o640) == 0)
            try runner.succeed("policy", "test", "mine", "--junit", name)
            #expect(try String(contentsOf: old, encoding: .utf8).hasPrefix("<?xml"))
            #expect(
                try FileManager.default.attributesOfItem(atPath: old.path)[.posixPermissions]
                    as? NSNumber == 0o640)
        }
        #expect(
            try FileManager.default.destinationOfSymbolicLink(
                atPath: runner.folder.path + "/link.xml") == "old.xml")
    }

    /// The default policy decides for all teams and apps, so the option contradicts it.
    @Test func activate_onlyBoundOfTheDefault_isRefused() throws {
        let runner = try edited("mine", ("\"2026.5\"", "\"2\""))
        try runner.fail(
            "policy", "activate", "mine", "--only-bound", status: 64,
            saying: "risk-default is the default policy")
        #expect(try active(runner) == ["risk-default 2026.5 everyone else"])
        try runner.succeed("policy", "activate", "mine")
        try runner.fail(
            "policy", "activate", "mine", "--only-bound", status: 64, saying: "nothing was changed")
    }

    @Test func eval_numbersAndSigns_areSaid() throws {
        let runner = try CommandRunner.initialised()
        try runner.fail(
            "policy", "eval", status: 64, saying: "One that begins with - goes behind --")
        #expect(try runner.succeed("policy", "eval", "--", "-5 % 3") == "-2")
        for text in ["1e400", "1.0 < 17e308", "9e999"] {
            let result = try runner.run(["policy", "eval", text])
            #expect(
                result.status != 0 && result.errors.contains("a double beyond the largest"),
                "\(result)")
        }
        #expect(try runner.succeed("policy", "eval", "1e308 > 1.0") == "true")
    }

    @Test func policyCommands_invalidArguments_areRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.fail(
            "policy", "activate", "nowhere", status: 66, saying: "nowhere/policy.yaml: no such file"
        )
        try runner.fail("policy", "show", "123456", status: 66, saying: "there is no policy 123456")
        try runner.fail(
            "policy", "diff", "nowhere", status: 66, saying: "there is no policy nowhere")
        try runner.fail("policy", "list", "--history", "--all", status: 64, saying: "Give either")
        try runner.fail("policy", "show", "--export", "data", status: 73, saying: "exists already")
    }
}

extension PolicyCommandTests {
    @Test func statusPolicy_activatedAndRolledBack_takesEffect() throws {
        let runner = try CommandRunner.initialised()
        #expect(try runner.succeed("policy", "show", "status").contains("disposable-inbox"))
        try runner.succeed("policy", "show", "status", "--export", "mine")
        try edit(
            runner, "mine",
            [
                ("\"2026.2\"", "\"2026.9\""),
                ("condition: outcomes.legitimate >= 3", "condition: outcomes.legitimate >= 9"),
            ])
        let diff = try runner.succeed("policy", "diff", "mine")
        #expect(
            diff.contains("+ when there are nine or more decisions that teams labelled legitimate")
                && diff.contains("not likely_real"), "\(diff)")
        // A test that fails now refuses the policy, and nothing changes.
        let refused = try runner.run(["policy", "activate", "mine"])
        #expect(
            refused.status == 1 && refused.errors.contains("was not activated"), "\(refused.errors)"
        )
        #expect(try active(runner) == ["risk-default 2026.5 everyone else"])
        try edit(runner, "mine", [("outcomes.legitimate: 3}", "outcomes.legitimate: 9}")])
        let output = try runner.succeed("policy", "activate", "mine")
        #expect(
            output.contains("status 2026.9") && output.contains("the status of users"), "\(output)")
        #expect(
            try active(runner) == [
                "risk-default 2026.5 everyone else", "status 2026.9 the status of users",
            ])
        try runner.fail("policy", "bind", "juice", "status", status: 64, saying: "cannot be bound")
        try runner.fail(
            "policy", "activate", "mine", "--everyone", status: 64, saying: "serves everyone")
        #expect(try runner.succeed("policy", "backtest", "mine").contains("0 first authorizations"))
        try runner.succeed("policy", "rollback", "status")
        #expect(
            try active(runner) == [
                "risk-default 2026.5 everyone else", "status 2026.2 the status of users",
            ])
        try runner.fail("policy", "rollback", "status", status: 65, saying: "cannot roll back")
    }
}
