// postern account, endpoint, event and transfer, as an administrator types them.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct AccountCommandTests {
    /// An installation with team juice, two apps, an endpoint, and jane.
    private func world() throws -> CommandRunner {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "The Juice Company")
        try runner.succeed("app", "add", "juice", "com.juice")
        try runner.succeed("app", "add", "juice", "com.press")
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        try runner.succeed("address", "issue", "juice", "jane")
        return runner
    }

    private func object(_ any: Any) throws -> [String: Any] { try #require(any as? [String: Any]) }
    private func list(_ any: Any) throws -> [[String: Any]] {
        try #require(any as? [[String: Any]])
    }

    @Test func accountCommand_showsRevokesAndDeletes() throws {
        let runner = try world()
        let account = try object(runner.json("account", "show", "juice", "jane"))
        let sub = try #require(account["sub"] as? String)
        #expect(account["credential_state"] as? String == "authorized")
        #expect(try list(runner.json("account", "list", "--team", "juice")).count == 1)
        #expect(try runner.succeed("account", "show", sub).contains(sub))
        #expect(try runner.succeed("account", "state", "juice", sub) == "authorized")
        #expect(
            try runner.succeed("account", "revoke", sub, "--app", "com.press")
                == "No consent to revoke.")
        #expect(try runner.succeed("account", "revoke", sub) == "Revoked 1 consent.")
        #expect(
            try runner.succeed("account", "state", "juice", sub, "--app", "com.juice") == "revoked")
        try runner.fail("account", "delete", sub, status: 64, saying: "repeat with --yes")
        #expect(try runner.succeed("account", "delete", sub, "--yes") == "Deleted.")
        #expect(try runner.succeed("account", "state", "juice", sub) == "not_found")
        try runner.fail("account", "show", sub, status: 66, saying: "unknown account")
        try runner.fail(
            "account", "show", "juice", "jane", status: 66, saying: "has no account with team juice"
        )
        try runner.fail(
            "account", "revoke", "juice", "nobody", status: 66, saying: "there is no user nobody")
        try runner.fail("account", "link", sub, "jane", status: 66, saying: "unknown account")
    }

    @Test func eventCommand_pendingEvent_listsParksAndRetries() throws {
        let runner = try world()
        try runner.fail(
            "endpoint", "set", "juice", "http://hooks.example/", status: 65,
            saying: "only over https")
        try runner.fail(
            "endpoint", "set", "juice", "hooks.example", status: 65,
            saying: "must begin with https://")
        try runner.fail(
            "endpoint", "set", "juice", "https://u:p@hooks.example/", status: 65,
            saying: "user or password")
        try runner.fail("endpoint", "show", "nobody", status: 66, saying: "there is no team nobody")
        try runner.fail("endpoint", "test", "juice", status: 66, saying: "has no such endpoint")
        let set = try runner.run([
            "endpoint", "set", "juice", "https://hooks.invalid/events", "--set",
            "http.public_url=https://relay.example",
        ])
        #expect(set.output == "Events for com.juice go to https://hooks.invalid/events.\n")
        #expect(set.errors == "")
        // The state is "untried", and not "works", before the first accepted event.
        #expect(
            try list(runner.json("endpoint", "show", "juice")).first?["state"] as? String
                == "untried")
        #expect(try runner.succeed("endpoint", "show", "juice").contains("untried"))
        #expect(
            try runner.run(["endpoint", "set", "juice", "https://hooks.invalid/events"]).errors
                .contains("no event is sent until")
        )
        try runner.fail(
            "endpoint", "test", "juice", status: 78,
            saying: "set http.public_url or provider.issuer")
        try runner.succeed("address", "off", "juice", "jane")
        let event = try #require(try list(runner.json("event", "list", "juice")).first)
        #expect(event["type"] as? String == "email-disabled")
        #expect(event["state"] as? String == "pending")
        let jti = try #require(event["jti"] as? String)
        #expect(try list(runner.json("endpoint", "show", "juice")).first?["pending"] as? Int == 1)
        try runner.fail("event", "park", jti, status: 64, saying: "repeat with --yes")
        #expect(try runner.succeed("event", "park", jti, "--yes") == "Parked 1 event.")
        #expect(
            try runner.succeed("event", "park", "--team", "juice", "--yes")
                == "Nothing to park: no event is pending.")
        #expect(try runner.succeed("event", "list", "--state", "pending") == "")
        // No more attempts are made, so the operator must learn of it.
        let told = "1 event for team juice is parked: no more attempts are made"
        #expect(try runner.run(["status"]).output.contains(told))
        #expect(
            try runner.run(["doctor", "--skip", "outside", "--skip", "postfix", "--skip", "probe"])
                .output.contains(told))
        #expect(try runner.succeed("event", "retry", jti) == "1 event will be tried now.")
        #expect(try !runner.run(["status"]).output.contains(told))
        try runner.fail("event", "retry", status: 64, saying: "Give a jti, or --team")
        try runner.fail(
            "event", "retry", "nothing", status: 66, saying: "there is no event nothing")
        #expect(try runner.succeed("event", "test", "juice").utf8.count == 32)
        try runner.fail("endpoint", "remove", "juice", status: 64, saying: "2 pending events")
        try runner.succeed("endpoint", "remove", "juice", "--yes")
        #expect(try runner.succeed("event", "list") == "")
    }

    @Test func transferCommand_startToFinish_movesApp() throws {
        let runner = try world()
        try runner.succeed("team", "add", "milk", "--name", "Milk")
        try runner.fail(
            "transfer", "finish", "com.juice", "--yes", status: 66,
            saying: "no transfer of app com.juice is in progress")
        #expect(
            try runner.succeed("transfer", "start", "juice", "com.juice", "milk").hasPrefix(
                "Started: 1 consent to"))
        try runner.fail(
            "transfer", "start", "juice", "com.juice", "milk", status: 73, saying: "is in progress")
        try runner.succeed("transfer", "cancel", "com.juice")
        try runner.succeed("transfer", "start", "juice", "com.juice", "milk")
        try runner.fail("transfer", "finish", "com.juice", status: 64, saying: "repeat with --yes")
        try runner.succeed(
            "endpoint", "set", "juice", "https://events.juice.example/hook", "--app", "com.juice")
        let finished = try runner.run(["transfer", "finish", "com.juice", "--yes"])
        #expect(
            finished.status == 0
                && finished.output.hasPrefix(
                    "com.juice belongs to team milk now: 1 accounts moved.")
        )
        #expect(
            finished.errors.contains(
                "its event endpoint https://events.juice.example/hook belongs to team juice: only events from before"
            ))
        let status = try #require(try list(runner.json("transfer", "status", "com.juice")).first)
        #expect(status["state"] as? String == "finished")
        #expect(
            try object(runner.json("account", "show", "juice", "jane"))["credential_state"]
                as? String == "transferred")
        #expect(
            try object(runner.json("account", "show", "milk", "jane"))["credential_state"]
                as? String == "authorized")
    }
}
