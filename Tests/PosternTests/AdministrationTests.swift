// An administration from start to end: teams, sources, apps, users, inboxes, addresses.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct AdministrationTests {
    /// An installation with team `juice` and user `jane`.
    private func installed() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed(
            "user", "add", "jane", "--inbox", "jane.doe@home.example", "--verified", "--name",
            "Jane Doe")
        return runner
    }

    @Test func addressIssue_repeated_printsSameAddress() throws {
        let runner = try installed()
        let address = try runner.succeed("address", "issue", "juice", "jane")
        #expect(address.wholeMatch(of: /[a-z2-7]{10}@relay\.example/) != nil)
        #expect(try runner.succeed("address", "issue", "juice", "jane") == address)
        try runner.succeed("team", "add", "milk", "--name", "Milk")
        #expect(try runner.succeed("address", "issue", "milk", "jane") != address)
        try runner.succeed("app", "add", "juice", "com.example.juice")
        #expect(
            try runner.succeed("address", "issue", "juice", "jane", "--app", "com.example.juice")
                == address)
        let shown = try #require(try runner.json("address", "show", address) as? [String: Any])
        let grants = try #require(shown["grants"] as? [[String: Any]])
        #expect(grants.count == 2)
        #expect(grants.last?["client_id"] as? String == "com.example.juice")
        #expect(try runner.succeed("address", "show", address).contains("state\ton"))
    }

    @Test func appNonce_withoutOptions_isRawAndRequired() throws {
        let runner = try installed()
        try runner.succeed("app", "add", "juice", "com.example.juice")
        func nonce(_ options: String...) throws -> [String] {
            let arguments = ["app", "nonce", "juice", "com.example.juice"] + options + ["--json"]
            let row = try #require(
                try JSONSerialization.jsonObject(with: Data(try runner.run(arguments).output.utf8))
                    as? [String: Any])
            return [
                row["form"] as? String ?? "",
                row["required"] as? Bool == true ? "required" : "optional",
            ]
        }
        #expect(try nonce() == ["raw", "required"])
        #expect(try nonce("--form", "sha256_hex") == ["sha256_hex", "required"])
        #expect(try nonce("--no-required") == ["sha256_hex", "optional"])
        #expect(try nonce() == ["sha256_hex", "optional"])
        #expect(
            try runner.run(["app", "nonce", "juice", "com.example.juice", "--form", "md5"]).status
                == 64)
        #expect(try runner.run(["app", "nonce", "milk", "com.example.juice"]).status == 66)
    }

    @Test func addressCommand_offOnAndRetire_changeState() throws {
        let runner = try installed()
        let address = try runner.succeed("address", "issue", "juice", "jane")
        func state() throws -> String? {
            let list = try #require(
                try runner.json("address", "list", "--team", "juice") as? [[String: Any]])
            return list.first { $0["address"] as? String == address }?["state"] as? String
        }
        #expect(try state() == "on")
        try runner.succeed("address", "off", address.uppercased())
        #expect(try state() == "off")
        #expect(try runner.succeed("address", "off", address).contains("already"))
        try runner.succeed("address", "on", "juice", "jane")
        #expect(try state() == "on")
        #expect(
            try runner.succeed("address", "show", "juice", "jane").contains("address\t\(address)"))
        try runner.fail("address", "show", "juice", "nobody", status: 66, saying: "no user nobody")
        try runner.fail("address", "off", "a", "b", "c", status: 64, saying: "a team and a user")
        try runner.fail("address", "retire", address, status: 64, saying: "repeat with --yes")
        try runner.succeed("address", "retire", address, "--yes")
        #expect(try state() == "retired")
        try runner.fail("address", "on", address, status: 65, saying: "retired")
        #expect(try runner.succeed("address", "issue", "juice", "jane") != address)
        try runner.fail(
            "address", "show", "nobody@relay.example", status: 66, saying: "no relay address")
    }

    @Test func output_withoutReveal_masksInboxAndName() throws {
        let runner = try installed()
        for arguments in [["inbox", "list", "jane"], ["user", "show", "jane"], ["user", "list"]] {
            for extra in [[], ["--json"]] {
                let masked = try runner.run(arguments + extra)
                #expect(masked.status == 0)
                #expect(!masked.output.contains("jane.doe"))
                #expect(!masked.output.contains("Jane Doe"))
            }
        }
        #expect(try runner.succeed("inbox", "list", "jane").contains("j…@home.example"))
        #expect(
            try runner.succeed("inbox", "list", "jane", "--reveal").contains(
                "jane.doe@home.example"))
        #expect(try runner.succeed("user", "show", "jane", "--reveal").contains("Jane Doe"))
    }

    @Test func error_inboxInArguments_doesNotRepeatIt() throws {
        let runner = try installed()
        for arguments in [
            ["inbox", "add", "jane", "jane.doe@home.example"],
            ["inbox", "add", "nobody", "jane.doe@home.example"],
            ["user", "add", "other", "--inbox", "jane.doe@home.example", "--verified"],
            ["inbox", "verify", "jane", "jane.doe@home.example"],
            ["inbox", "verify", "jane", "secret.person@home.example"],
            ["inbox", "remove", "jane", "secret.person@home.example"],
            ["inbox", "add", "jane", "secret.person@@home.example"],
            ["user", "add", "secret.person@home.example", "--inbox", "secret.person@home.example"],
            ["user", "show", "secret.person@home.example"],
            ["address", "show", "secret.person@home.example"],
            ["address", "issue", "juice", "secret.person@home.example"],
        ] {
            let result = try runner.run(arguments)
            #expect([65, 66, 73].contains(result.status), "\(arguments): \(result.status)")
            #expect(!result.errors.contains("jane.doe"), "\(result.errors)")
            #expect(!result.errors.contains("secret.person"), "\(result.errors)")
        }
    }

    @Test func inboxCommand_addConfirmAndRemove_changeInboxes() throws {
        let runner = try installed()
        try runner.succeed("inbox", "add", "jane", "-", "--no-message", input: "new@home.example\n")
        let list = try #require(try runner.json("inbox", "list", "jane") as? [[String: Any]])
        #expect(list.map { $0["is_verified"] as? Bool } == [true, false])
        let number = try #require(list.last?["inbox"] as? Int)
        try runner.fail(
            "inbox", "default", "jane", "\(number)", status: 65, saying: "verified inboxes only")
        try runner.succeed("inbox", "confirm", "jane", "new@home.example")
        try runner.succeed("inbox", "default", "jane", "\(number)")
        try runner.succeed("inbox", "remove", "jane", "jane.doe@home.example")
        try runner.fail(
            "inbox", "remove", "jane", "\(number)", status: 64,
            saying: "add and verify another first, or repeat with --yes")
        let result = try runner.run(["inbox", "remove", "jane", "\(number)", "--yes"])
        #expect(result.status == 0)
        #expect(result.errors.contains("user jane has no verified inbox now"))
        try runner.succeed(
            "inbox", "add", "jane", "alias@home.example", "--verified", "--reply-only")
        let alias = try #require(try runner.json("inbox", "list", "jane") as? [[String: Any]]).first
        #expect(alias?["is_reply_only"] as? Bool == true)
        #expect(alias?["is_default"] as? Bool == false)
        try runner.fail("inbox", "add", "jane", "x@old.example", status: 65, saying: "relay domain")
    }

    @Test func addressIssue_unverifiedInbox_warns() throws {
        let runner = try installed()
        try runner.succeed("user", "add", "new", "--inbox", "new@home.example")
        let result = try runner.run(["address", "issue", "juice", "new"])
        #expect(result.status == 0)
        #expect(result.output.hasSuffix("@relay.example\n"))
        #expect(result.errors.contains("no verified inbox"))
    }

    @Test func sourceCommand_addAndRemove_warnsAndRefuses() throws {
        let runner = try installed()
        try runner.succeed("source", "add", "juice", "Juice.Example")
        let paired = try runner.run([
            "source", "add", "juice", "juice.example", "--envelope", "bounce.esp.example",
        ])
        #expect(paired.status == 0)
        #expect(
            paired.errors.contains(
                "anyone who can send through bounce.esp.example can now send as team juice"))
        try runner.succeed("source", "add", "juice", "shop@gmail.com")
        try runner.fail(
            "source", "add", "juice", "gmail.com", status: 65, saying: "mailbox provider")
        try runner.fail(
            "source", "add", "juice", "relay.example", status: 65, saying: "relay domain")
        try runner.fail("source", "add", "juice", "com", status: 65, saying: "a public suffix")
        try runner.fail("source", "add", "juice", "juice.example", status: 73, saying: "already")
        try runner.fail("source", "add", "none", "a.example", status: 66, saying: "no team none")
        let list = try #require(try runner.json("source", "list", "juice") as? [[String: Any]])
        #expect(
            list.map { $0["source"] as? String } == [
                "juice.example", "juice.example", "shop@gmail.com",
            ])
        #expect(list.map { $0["envelope_domain"] as? String } == [nil, "bounce.esp.example", nil])
        try runner.succeed(
            "source", "remove", "juice", "juice.example", "--envelope", "bounce.esp.example")
        #expect(try runner.succeed("source", "list").split(separator: "\n").count == 2)
        try runner.succeed("source", "remove", "juice", "shop@gmail.com")
        #expect(
            try runner.succeed("source", "list", "juice").hasPrefix(
                "juice\tjuice.example\tdomain\t-\t"))
        try runner.fail(
            "source", "remove", "juice", "shop@gmail.com", status: 66, saying: "not registered")
    }

    @Test func appCommand_groupOfApps_keepsPrimaryApp() throws {
        let runner = try installed()
        try runner.succeed("app", "add", "juice", "com.example.juice")
        try runner.succeed(
            "app", "add", "juice", "com.example.juice.web", "--group", "com.example.juice")
        try runner.fail(
            "app", "add", "juice", "x", "--group", "com.example.juice.web", status: 66,
            saying: "no primary app")
        try runner.fail("app", "add", "juice", "com.example.juice", status: 73, saying: "already")
        try runner.fail(
            "app", "remove", "juice", "com.example.juice", "--yes", status: 65,
            saying: "primary app of others")
        try runner.fail(
            "app", "remove", "juice", "com.example.juice.web", status: 64,
            saying: "cannot be undone: repeat with --yes")
        try runner.succeed("app", "remove", "juice", "com.example.juice.web", "--yes")
        let address = try runner.succeed("address", "issue", "juice", "jane")
        try runner.fail(
            "app", "remove", "juice", "com.example.juice", status: 64,
            saying: "1 grant: repeat with --yes")
        try runner.succeed("app", "remove", "juice", "com.example.juice", "--yes")
        let row =
            try #require(try runner.json("address", "show", address) as? [String: Any])["address"]
            as? [String: Any]
        #expect(row?["state"] as? String == "revoked")
        #expect(try runner.succeed("app", "list", "juice").isEmpty)
    }

    @Test func removeCommand_withDependents_requiresYes() throws {
        let runner = try installed()
        let address = try runner.succeed("address", "issue", "juice", "jane")
        try runner.succeed("source", "add", "juice", "juice.example")
        try runner.fail(
            "user", "remove", "jane", status: 64,
            saying: "1 inbox, 1 account, 1 relay address: repeat with --yes")
        try runner.fail(
            "team", "remove", "juice", status: 64, saying: "1 source, 1 account, 1 relay address")
        #expect(try runner.succeed("address", "issue", "juice", "jane") == address)
        try runner.succeed("team", "remove", "juice", "--yes")
        try runner.fail("address", "show", address, status: 66, saying: "no relay address")
        try runner.fail(
            "user", "remove", "jane", status: 64,
            saying: "removing user jane also removes 1 inbox: repeat with --yes")
        try runner.succeed("user", "remove", "jane", "--yes")
        try runner.succeed("team", "add", "empty", "--name", "Empty")
        try runner.fail(
            "team", "remove", "empty", status: 64, saying: "removing team empty cannot be undone")
        try runner.fail("user", "remove", "jane", status: 66, saying: "no user jane")
    }

    @Test func teamShow_listsSourcesAndApps() throws {
        let runner = try installed()
        try runner.succeed("source", "add", "juice", "juice.example")
        try runner.succeed("app", "add", "juice", "com.example.juice")
        let text = try runner.succeed("team", "show", "juice")
        #expect(text.contains("name\tThe Juice Company"))
        #expect(text.contains("source\tjuice.example"))
        #expect(text.contains("app\tcom.example.juice"))
        let team = try #require(try runner.json("team", "show", "juice") as? [String: Any])
        #expect(team["accounts"] as? Int == 0)
        #expect((team["created_at"] as? String)?.hasSuffix("Z") == true)
        try runner.fail(
            "team", "add", "juice", "--name", "Again", status: 73, saying: "already exists")
        try runner.fail(
            "team", "add", "a@b.example", "--name", "X", status: 65,
            saying: "must not be an email address")
    }

    @Test func addressIssue_concurrent_printsOneAddress() async throws {
        let runner = try installed()
        let addresses = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<6 {
                group.addTask { try runner.succeed("address", "issue", "juice", "jane") }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(addresses.count == 1)
    }

    @Test func usageError_namesTheFaultInOneLine() throws {
        let runner = try CommandRunner()
        try runner.fail("team", "add", status: 64, saying: "see postern team add --help")
        try runner.fail("nonsense", status: 64, saying: "nonsense")
        try runner.fail("team", "list", "--frobnicate", status: 64, saying: "--frobnicate")
    }

    @Test(arguments: [
        ["team", "add", "blank", "--name", "  "],
        ["team", "add", "blank", "--name", "\u{3000}\u{A0}"],
    ])
    func name_ofBlanksAlone_isRefused(_ words: [String]) throws {
        let runner = try CommandRunner.initialised()
        let result = try runner.run(words)
        #expect(
            result.status == 65 && result.errors.contains("must have a visible character"),
            "\(result)")
    }

    @Test func postfixTool_fails_isUnavailableInOneLine() throws {
        let runner = try CommandRunner.initialised()
        let result = try runner.run(["queue", "list", "--config-directory", "/nonexistent"])
        #expect(result.status == 69 && result.errors.hasPrefix("postern: postqueue "), "\(result)")
        #expect(result.errors.count { $0 == "\n" } == 1)
    }

    @Test(arguments: ["x", "a b@juice.example", "@juice.example"])
    func verifyMessage_malformedSender_isWrongUsage(
        _ sender: String
    ) throws {
        let runner = try CommandRunner.initialised()
        try runner.fail(
            "verify", "message", "--mail-from", sender, status: 64,
            saying: "--mail-from must be an address")
    }
}
