// postern decide, decision and sandbox, as they are typed.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct DecisionCommandTests {
    private func runner() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.juice.app")
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        return runner
    }

    private func sub(_ runner: CommandRunner) throws -> String {
        let address = try runner.succeed(
            "address", "issue", "juice", "jane", "--app", "com.juice.app")
        let shown = try #require(try runner.json("address", "show", address) as? [String: Any])
        let row = try #require(shown["address"] as? [String: Any])
        return try #require(row["sub"] as? String)
    }

    @Test func decisionCommand_askedDecision_listsShowsAndReplays() throws {
        let runner = try runner()
        let sub = try sub(runner)
        let policies = try runner.run(["policy", "list"])
        if !policies.output.contains("risk-default") {
            try runner.succeed("policy", "activate", "default")
        }
        let text = try runner.succeed(
            "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub)
        #expect(text.contains("answer\tallow"))
        #expect(text.contains("event\tsign_up"), "the first request about a grant")
        let answer = try #require(
            try runner.json(
                "decide", "juice", "--app", "com.juice.app", "--event", "sensitive_action", "--sub",
                sub)
                as? [String: Any])
        #expect(answer["decision"] as? String == "require_verification")
        let id = try #require(answer["decision_id"] as? String)
        let overview = try #require(try runner.json("policy", "list") as? [String: Any])
        #expect((overview["hosts"] as? [Any])?.isEmpty == true, "a command is no host that decides")
        let list = try #require(
            try runner.json("decision", "list", "--team", "juice", "--since", "1h")
                as? [[String: Any]])
        #expect(list.count == 2)
        #expect(list[0]["decision_id"] as? String == id)
        #expect(
            (try runner.json("decision", "list", "--rule", "young-unproven") as? [Any])?.count == 1)
        #expect(
            (try runner.json("decision", "list", "--reason", "YOUNG_UNPROVEN_ACCOUNT") as? [Any])?
                .count == 1)
        try runner.fail(
            "decision", "list", "--reason", "STALE_TOKENS", status: 66,
            saying: "did you mean 'STALE_TOKEN'?")
        try runner.fail(
            "decision", "list", "--rule", "stale-tokem", status: 66,
            saying: "did you mean 'stale-token'?")
        #expect(
            try runner.succeed("decision", "list", "--rule", "dormant-return") == "",
            "it is a rule, and matched nothing")
        #expect((try runner.json("decision", "list", "--user", "jane") as? [Any])?.count == 2)
        #expect((try runner.json("decision", "list", "--account", sub) as? [Any])?.count == 2)
        try runner.fail("decision", "list", "--user", "nobody", status: 66, saying: "nobody")
        try runner.succeed("user", "add", "joe", "--inbox", "joe@home.example")
        #expect(try runner.succeed("decision", "list", "--user", "joe") == "")
        let first = try runner.run(["decision", "list", "--limit", "1"])
        #expect(
            first.output.split(separator: "\n").count == 1
                && first.errors.contains("there are more than 1 decisions: see more with --limit"))
        #expect(try runner.run(["decision", "list", "--limit", "2"]).errors == "")
        let csv = try runner.succeed("decision", "list", "--csv").split(separator: "\n")
        #expect(csv.count == 3)
        #expect(csv[0].hasPrefix("decision_id,evaluated_at,team,"))
        let shown = try runner.succeed("decision", "show", id)
        #expect(shown.contains("asked by\tyoung-unproven"))
        #expect(shown.contains("user\tjane") && shown.contains("account\t\(sub)"))
        // Rule by rule, with the compared values.
        let says =
            "the user's status is not \"likely real\", the account is younger than three days "
            + "and there were no passed checks that Postern carried out within 90 days"
        #expect(
            shown.contains(
                "      \(says)  → missing: it matches, since the rule says when_missing: match"),
            "\(shown)")
        #expect(shown.contains("          account.age_hours = 0"))
        // By `sub` alone, in the visit that began with the sign-up.
        #expect(
            shown.contains("otherwise: no visit of the account began within the last day)  → false")
        )
        #expect(!shown.contains("account.real_user_status != LIKELY_REAL"))
        #expect(
            try runner.succeed("decision", "show", id, "--source").contains(
                "      = account.real_user_status != LIKELY_REAL"))
        let story = try runner.succeed("review", "show", id)
        #expect(
            story.contains(
                "  young-unproven: Asks for email_code at upgrades and sensitive actions when \(says)"
            ), "\(story)")
        #expect(shown.contains("account.age_hours\t0"))
        #expect(shown.contains("account.forwarding_on\ttrue"), "a truth value reads as one")
        #expect(try runner.succeed("decision", "replay", id).hasPrefix("identical under sha256:"))
        let replay = try #require(try runner.json("decision", "replay", id) as? [String: Any])
        #expect(replay["identical"] as? Bool == true)
        // No address of a user is anywhere in it.
        #expect(!shown.contains("home.example"))
    }

    /// A user complains: the operator finds the user and the reason.
    @Test func find_anInboxAnAddressOrASub_leadsToTheUser() throws {
        let runner = try runner()
        let sub = try sub(runner)
        let address = try runner.succeed("address", "issue", "juice", "jane")
        try runner.succeed("user", "add", "guest", "--inbox", "jane@home.example")
        #expect(
            try runner.succeed("user", "find", "Jane@HOME.example")
                == "jane\t-\tinbox 1, verified\nguest\t-\tinbox 1, not verified")
        #expect(
            try runner.succeed("user", "find", "-", input: "\u{FEFF}jane@home.example\n").hasPrefix(
                "jane\t"))
        #expect(
            try runner.succeed("user", "find", address)
                == "jane\t\(sub)\trelay address of team juice")
        #expect(try runner.succeed("user", "find", sub) == "jane\t\(sub)\tsub of team juice")
        let rows = try #require(try runner.json("user", "find", address) as? [[String: Any]])
        #expect(
            rows.count == 1 && rows[0]["user"] as? String == "jane" && rows[0]["found_by"] != nil)
        #expect(try runner.succeed("user", "find", "jane") == "jane\t-\tidentifier")
        try runner.succeed("user", "add", "dotted", "--inbox", "d.o.e@gmail.com", "--verified")
        #expect(
            try runner.succeed("user", "find", "doe+x@googlemail.com")
                == "dotted\t-\tinbox 1, verified, in another spelling")
        // Also the actions on a deleted account.
        #expect(try runner.succeed("audit", "--user", "jane").contains("address.issue\taccount:1"))
        try runner.fail("audit", "--user", "jan", status: 66, saying: "jan")
        try runner.succeed("address", "retire", address, "--yes")
        #expect(
            try runner.succeed("user", "find", address)
                == "jane\t\(sub)\tretired relay address of team juice")
        #expect(try runner.succeed("address", "decode", address).contains("state\tretired"))
        try runner.fail(
            "user", "find", "no.one@home.example", status: 66,
            saying: "no user has this address, sub or identifier")
        #expect(
            !(try runner.run(["user", "find", "no.one@home.example"]).errors.contains("no.one")))
        try runner.fail(
            "user", "find", "0123.x", status: 66,
            saying: "no user has this address, sub or identifier")
    }

    @Test func decide_contextByTheDeclaredType_isTaken() throws {
        let runner = try runner()
        let sub = try sub(runner)
        let policy = """
            policy: risk-default
            version: "t"
            challenges: [{kind: email_code}]
            defaults: {challenge: email_code}
            signals:
              event: string
              context.asn: {type: string?, max_length: 16}
              context.big: uint?
              context.total: {type: "int?", min: 0, max: 1000}
              context.tags: list(string)?
            rules:
            - {id: asn, effect: require, events: [sign_in], challenge: email_code, reason: ASN, condition: 'context.asn == "64500"'}
            - {id: big, effect: require, events: [sign_in], challenge: email_code, reason: BIG, condition: context.big == 18446744073709551615u}
            - {id: total, effect: require, events: [sign_in], challenge: email_code, reason: TOTAL, condition: context.total == 200}
            - {id: tags, effect: require, events: [sign_in], challenge: email_code, reason: TAGS, condition: '"b" in context.tags'}
            """
        let folder = runner.folder.appendingPathComponent("typed")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(policy.utf8).write(to: folder.appendingPathComponent("policy.yaml"))
        try runner.succeed("policy", "activate", folder.path)
        // The first request about a grant is a sign-up.
        try runner.succeed(
            "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub)
        func reasons(_ context: String) throws -> String {
            try runner.succeed(
                "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub,
                "--context", context, "--strict")
        }
        for (context, reason) in [
            ("asn=64500", "ASN"), ("big=18446744073709551615", "BIG"), ("total=2e2", "TOTAL"),
            ("total=200", "TOTAL"),
            ("tags=a,b", "TAGS"), ("tags=[\"a\",\"b\"]", "TAGS"), ("tags=b", "TAGS"),
        ] { #expect(try reasons(context).contains("reasons\t\(reason)"), "\(context)") }
        try runner.fail(
            "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub,
            "--context", "total=1", "--context",
            "total=2", status: 64, saying: "--context total is given twice")
    }

    @Test func decisionCommand_invalidArguments_areRefused() throws {
        let runner = try runner()
        try runner.fail(
            "decision", "show", "rd_x", status: 66, saying: "no decision has the id rd_x")
        try runner.fail(
            "decision", "list", "--since", "soon", status: 64, saying: "soon is not a valid time")
        try runner.fail("decision", "list", "--team", "nobody", status: 66, saying: "nobody")
        try runner.fail(
            "decide", "juice", "--app", "com.juice.app", "--event", "sign_off", "--sub", "a",
            status: 64,
            saying: "--event must be one of")
        try runner.fail(
            "decide", "nobody", "--app", "com.juice.app", "--event", "sign_in", "--sub", "a",
            status: 66, saying: "nobody")
    }

    @Test func sandbox_stopped_leavesNoFiles() async throws {
        let runner = try CommandRunner()
        let process = try ManagedProcess(
            CommandRunner.executable.path, ["sandbox", "--port", "0", "--json"],
            environment: ["TMPDIR": runner.folder.path])
        defer { process.end() }
        let facts: [String: Any]? = process.wait { lines in
            try? JSONSerialization.jsonObject(with: Data(lines.joined(separator: "\n").utf8))
                as? [String: Any]
        }
        let url = try #require(facts?["url"] as? String)
        let key = try #require(facts?["key"] as? String)
        #expect(url.hasPrefix("http://127.0.0.1:"))
        func post(_ path: String, _ body: String) throws -> [String: Any] {
            let run = try ProgramRun([
                "curl", "-s", url + path, "-H", "Authorization: Bearer \(key)", "-H",
                "Content-Type: application/json", "-d",
                body,
            ])
            return try #require(
                try JSONSerialization.jsonObject(with: run.standardOutput) as? [String: Any])
        }
        let token = try post(
            "/sandbox/token", #"{"sub":"jane","real_user_status":2,"nonce":"n-1"}"#)
        let jwt = try #require(token["identity_token"] as? String)
        let signUp = try post(
            "/v1/decisions",
            #"{"event":"sign_up","client_id":"com.example.app","identity_token":"\#(jwt)","nonce":"n-1"}"#
        )
        #expect(signUp["decision"] as? String == "allow")
        #expect(signUp["real_user_status"] as? Int == 2)
        let later = try post("/sandbox/clock", #"{"advance":20000000}"#)
        #expect(later["now"] != nil)
        let dormant = try post(
            "/v1/decisions", #"{"event":"sign_in","client_id":"com.example.app","sub":"jane"}"#)
        #expect((dormant["reasons"] as? [[String: String]])?.first?["code"] == "DORMANT_ACCOUNT")
        let canned = try post(
            "/v1/decisions",
            #"{"event":"sign_in","client_id":"com.example.app","sub":"test-reauthenticate"}"#)
        #expect(canned["challenges"] as? [String] == ["reauthenticate"])
        let none = try post(
            "/v1/decisions",
            #"{"event":"sign_in","client_id":"com.example.app","sub":"test-unavailable"}"#)
        #expect(none["status"] as? Int == 503)
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
        let left = try FileManager.default.contentsOfDirectory(atPath: runner.folder.path).filter {
            $0.hasPrefix("postern-sandbox")
        }
        #expect(left.isEmpty)
    }

    /// The lines that new users paste from docs/DECISIONS.md, unchanged.
    @Test func sandbox_walkThroughOfDocument_runsAsWritten() throws {
        let runner = try CommandRunner()
        let folder = ["TMPDIR": runner.folder.path]
        let sandbox = try ManagedProcess(
            CommandRunner.executable.path, ["sandbox", "--port", "0"], environment: folder)
        defer { sandbox.end() }
        let values = try ["URL", "KEY"].map { name in
            let line = try sandbox.waitForLine(containing: "  \(name)=")
            return (name, String(line.drop { $0 != "=" }.dropFirst()))
        }
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../docs/DECISIONS.md")
        let blocks = try String(contentsOf: page, encoding: .utf8).components(
            separatedBy: "```sh\n"
        ).dropFirst()
        let lines = try #require(blocks.dropFirst().first?.components(separatedBy: "\n```").first)
        #expect(lines.contains("/sandbox/clock") && !lines.contains("…"))
        let shell = try ManagedProcess(
            "/bin/bash", ["-c", lines], environment: Dictionary(uniqueKeysWithValues: values))
        #expect(try shell.waitForExit() == 0)
        for expected in [
            #""reasons":[{"code":"REAL_USER_UNKNOWN"}]"#, #""outcome":"passed""#,
            #""reasons":[{"code":"DORMANT_ACCOUNT"}]"#,
        ] {
            #expect(shell.output.contains(expected), "\(shell.output)")
        }
        #expect(!shell.output.contains("urn:postern:problem"), "\(shell.output)")

        // A second sandbox on the same port fails with a plain message, and Ctrl-C ends the first
        // one silently.
        let port = try #require(values[0].1.split(separator: ":").last)
        try runner.fail(
            "sandbox", "--port", "\(port)", status: 69,
            saying: "--port: 127.0.0.1:\(port) is in use by another program",
            environment: folder)
        let said = sandbox.lines.count
        sandbox.signal(SIGINT)
        #expect(try sandbox.waitForExit() == 0)
        #expect(sandbox.lines.count == said, "\(sandbox.lines.dropFirst(said))")
    }

    @Test func decisionLabel_fileWithError_changesNothing() throws {
        let runner = try runner()
        let sub = try sub(runner)
        var ids: [String] = []
        for _ in 1...3 {
            let answer = try runner.json(
                "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub)
            ids.append(try #require((answer as? [String: Any])?["decision_id"] as? String))
        }
        func labels() throws -> [String?] {
            try ids.map { id in
                try #require(try runner.json("decision", "show", id) as? [String: Any])["label"]
                    as? String
            }
        }
        #expect(
            try runner.succeed("decision", "label", ids[0], "fraudulent")
                == "Decision \(ids[0]) is fraudulent.")
        #expect(try labels() == ["fraudulent", nil, nil])
        let user =
            try #require(try runner.json("user", "find", sub) as? [[String: Any]]).first?["user"]
            as? String
        #expect(
            try runner.succeed("audit", "--user", try #require(user)).contains(
                "decision.label\tdecision:\(ids[0])\tfraudulent"))
        let file = runner.folder.appendingPathComponent("labels.csv")
        func write(_ text: String) throws { try Data(text.utf8).write(to: file) }
        try write(
            "decision_id,label\n\(ids[0]),legitimate\n\(ids[1]),fraudulent\nrd_none,fraudulent\n")
        try runner.fail(
            "decision", "label", "--csv", "labels.csv", status: 66,
            saying: "labels.csv:4: no decision has this id")
        #expect(try labels() == ["fraudulent", nil, nil], "a file is taken whole or not at all")
        try write("decision_id,label\n\(ids[0]),legitimate\n\(ids[1]),odd\n")
        try runner.fail(
            "decision", "label", "--csv", "labels.csv", status: 65,
            saying: "labels.csv:3: a label is legitimate or fraudulent")
        try write("id,label\n")
        try runner.fail(
            "decision", "label", "--csv", "labels.csv", status: 65,
            saying: "labels.csv:1: the first line must be")
        try write("")
        try runner.fail(
            "decision", "label", "--csv", "labels.csv", status: 65,
            saying: "labels.csv: the first line must be")
        try write("decision_id,label\njane@home.example,legitimate\n")
        let misplaced = try runner.run(["decision", "label", "--csv", "labels.csv"])
        #expect(
            misplaced.status == 66 && !misplaced.errors.contains("jane"),
            "an address in the wrong column is not repeated")
        try runner.fail(
            "decision", "label", "--csv", "none.csv", status: 66, saying: "none.csv: cannot be read"
        )
        try runner.fail("decision", "label", "--csv", "data", status: 66, saying: "data: a folder")
        try runner.fail("import", "data", status: 66, saying: "data: a folder")
        try runner.fail(
            "decide", "juice", "--app", "com.juice.app", "--event", "sign_in", "--sub", sub,
            "--context", "context.amount=1",
            status: 64, saying: "--context context.amount: leave context. out")
        try write(
            "decision_id,label\n\(ids[0]),legitimate\n\(ids[1]),fraudulent\n\(ids[1]),legitimate\n")
        #expect(
            try runner.succeed("decision", "label", "--csv", "labels.csv")
                == "Labelled 2 decisions.")
        #expect(try labels() == ["legitimate", "legitimate", nil], "the last one counts")
        let audit = try #require(try runner.json("audit") as? [[String: Any]])
        #expect(audit.count { $0["action"] as? String == "decision.label" } == 3)
    }
}
