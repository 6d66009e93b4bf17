// A running `postern sandbox --as apple`: the command, its pages in a browser, and Postern
// itself as a receiver.

import Foundation
import PostfixHarness
import Support
import TestSupport
import Testing

/// A sandbox on a free port. It ends with the object.
final class RunningSandbox {
    static let program = try? ManagedProcess.builtProduct("postern")
    let process: ManagedProcess
    let url: String

    init(_ arguments: String...) throws {
        process = try ManagedProcess(
            try #require(Self.program), ["sandbox", "--as", "apple", "--port", "0"] + arguments)
        let line = try process.waitForLine(containing: "A double of Sign in with Apple listens on ")
        url = try #require(
            line.firstMatch(of: /http:\/\/127\.0\.0\.1:[0-9]+/).map { String($0.output) })
    }

    deinit {
        process.signal(SIGTERM)
        _ = try? process.waitForExit()
    }

    /// Status and body.
    @discardableResult
    func curl(_ path: String, _ arguments: String...) throws -> (status: Int, body: String) {
        let run = try ManagedProcess.run(
            "/usr/bin/curl", ["-sS", "-w", "\n%{http_code}", url + path] + arguments)
        let lines = run.output.split(separator: "\n", omittingEmptySubsequences: false)
        return (Int(lines.last ?? "") ?? 0, lines.dropLast().joined(separator: "\n"))
    }

    func order(_ path: String, _ body: String) throws -> (status: Int, body: String) {
        try curl("/sandbox/\(path)", "-H", "Content-Type: application/json", "-d", body)
    }

    func object(_ body: String) throws -> JSONObject {
        try StrictJSON.parseObject(Array(body.utf8), limit: 1_000_000)
    }
}

@Suite(.blocking) struct LiveSandboxTests {
    @Test func sandboxCommand_wrongArguments_saysWhatIsWrong() throws {
        let program = try #require(RunningSandbox.program)
        let seed = FileManager.default.temporaryDirectory.appending(
            path: "seed-\(UUID().uuidString).yaml")
        defer { try? FileManager.default.removeItem(at: seed) }
        try Data("teams: []\nusers: []\n".utf8).write(to: seed)
        for (arguments, status, text) in [
            (["--seed", seed.path], Int32(65), "seed-"),
            (["--seed", "/nonexistent"], 66, "/nonexistent"),
            (["--nonce-form", "sha256_hex"], 64, "do not go with --as apple"),
            (["--port", "70000"], 64, "--port must be"),
        ] {
            let run = try ManagedProcess.run(program, ["sandbox", "--as", "apple"] + arguments)
            #expect(run.status == status && run.output.contains(text), "\(run.output)")
        }
        #expect(try ManagedProcess.run(program, ["sandbox", "--auto"]).status == 64)
        // The output of --print-seed is a seed.
        let printed = try ManagedProcess.run(program, ["sandbox", "--as", "apple", "--print-seed"])
        try Data(printed.output.utf8).write(to: seed)
        _ = try RunningSandbox("--seed", seed.path)
    }

    @Test func sandboxOrder_invalid_isRefused() throws {
        let sandbox = try RunningSandbox()
        for (path, body, text) in [
            ("clock", #"{"advance": 1, "offset": 2}"#, "either advance or offset"),
            ("clock", #"{"advance": 9223372036854775807}"#, "ten years"),
            ("settings", #"{"auto": "nobody"}"#, "does not exist or was deleted"),
            ("settings", #"{"auto": "anna", "ask": true}"#, "only one"),
            ("settings", #"{"booleans": "yes"}"#, "boolean, string"),
            ("failures", #"{"on": "keys", "failure": "replay"}"#, "cannot happen at keys"),
            ("failures", #"{"on": "token", "failure": "timeout", "seconds": 301}"#, "1 to 300"),
            ("failures", #"{"on": "token", "failure": "status-500", "times": 0}"#, "1 to 1000"),
            ("events", #"{"type": "email disabled", "user": "anna"}"#, "email-disabled"),
            ("events", #"{"type": "email-disabled", "user": "anna", "times": 11}"#, "1 to 10"),
            (
                "events", #"{"type": "email-disabled", "user": "anna", "client_id": "com.nobody"}"#,
                "no such client"
            ),
            ("transfer", #"{"to": "SANDBOXTEA"}"#, "another team"),
            ("keys", #"{"count": 4}"#, "1 to 3"),
            ("client-secret", #"{"key_id": "x"}"#, "no such key"),
            ("authorize", #"{"user": "anna", "scope": "phone"}"#, "name and email"),
            ("authorize", #"{"user": "anna", "more": 1}"#, "no such member"),
        ] {
            let answer = try sandbox.order(path, body)
            #expect(
                answer.status == 422 && answer.body.contains(text), "\(path) \(body): \(answer)")
        }
        // A page of another site cannot send JSON without a preflight request.
        #expect(try sandbox.curl("/sandbox/reset", "-X", "POST").status == 204)
        #expect(try sandbox.curl("/sandbox/clock", "-d", #"{"advance": 1}"#).status == 415)
        #expect(try sandbox.curl("/sandbox/keys/NONE").status == 404)
        #expect(try sandbox.curl("/auth/token").status == 405)
    }

    @Test func sandbox_stoppedDuringTimeout_ends() throws {
        let sandbox = try RunningSandbox()
        #expect(
            try sandbox.order("failures", #"{"on": "token", "failure": "timeout", "seconds": 300}"#)
                .status == 204)
        let waiting = try ManagedProcess(
            "/usr/bin/curl", ["-sS", "-d", "a=b", sandbox.url + "/auth/token"])
        defer { waiting.end() }
        try wait("it is asked", atMost: 60) {
            try sandbox.curl("/sandbox/requests").body.contains("as ordered: timeout")
        }
        sandbox.process.signal(SIGTERM)
        #expect(try sandbox.process.waitForExit() == 0)
    }

    @Test(.enabled(if: Browser.driver != nil, "skipped: no chromedriver"), .timeLimit(.minutes(5)))
    func sandboxPages_inABrowser_signInAndAreReadable() throws {
        let sandbox = try RunningSandbox()
        let browser = try Browser()
        defer { browser.quit() }
        // The sandbox itself plays the app: it shows the posted data as a request.
        let redirect =
            "http%3A%2F%2F127.0.0.1%3A\(sandbox.url.split(separator: ":").last ?? "")%2Fapp"
        let request =
            "/auth/authorize?client_id=com.example.app&response_type=code%20id_token&response_mode=form_post"
            + "&scope=name%20email&state=s%22%3E%3Cb%3E&redirect_uri=\(redirect)"
        try browser.open(sandbox.url + request)
        #expect(try browser.text("h1") == "Sign in to com.example.app")
        #expect(try PageLook(browser).findings("apple-choice", "en") == [])
        try browser.type("-Maria", into: "input[name=first_name]")
        try browser.click("li:first-child button")
        #expect(try browser.arrives(at: sandbox.url + "/app"))
        // Apple's requirements for a client's server, with a wrong secret.
        let expired = try sandbox.object(
            try sandbox.order("client-secret", #"{"expires_in": -3}"#).body)
        let refused = try sandbox.curl(
            "/auth/token", "-d",
            "client_id=com.example.app&grant_type=refresh_token&refresh_token=r&client_secret="
                + (expired["client_secret"]?.string ?? ""))
        #expect(refused.status == 400 && refused.body == #"{"error":"invalid_client"}"#)
        try sandbox.process.waitForLine(
            containing: "POST /auth/token: 400 invalid_client: client_secret expired")
        #expect(
            try sandbox.order("failures", #"{"on": "token", "failure": "unknown-kid", "times": 2}"#)
                .status == 204)
        #expect(try sandbox.order("clock", #"{"advance": 86400}"#).status == 200)
        try browser.open(sandbox.url + "/")
        #expect(
            try browser.text("ol.requests > li:first-child .cause").hasPrefix(
                "invalid_client client_secret expired"))
        #expect(try browser.text("ol.requests > li:nth-child(2) .cause") == "anna signed in")
        #expect(try PageLook(browser).findings("apple-overview", "en") == [])
        try browser.open(sandbox.url + request)
        try browser.click("button.second")
        #expect(try browser.arrives(at: sandbox.url + "/app"))
        #expect(try sandbox.curl("/sandbox/requests").body.contains("user_cancelled_authorize"))
        #expect(
            try browser.complaints().filter { !$0.contains("/app") && !$0.contains("favicon") }
                == [])
    }

    /// An installation of Postern that accepts Apple's tokens and events, with the sandbox in
    /// Apple's place.
    @Test func postern_tokensAndEventsOfSandbox_takesThem() throws {
        let program = try #require(RunningSandbox.program)
        let folder = try Folders.temporary("apple")
        defer { try? FileManager.default.removeItem(at: folder) }
        let port = try FreePort.next()
        let seed = folder.appending(path: "seed.yaml")
        try Data(
            """
            teams:
              - id: T
                keys: [{id: K}]
                clients: [{id: com.example.juice, notifications: "http://127.0.0.1:\(port)/v1/notifications/apple"}]
            users: [{id: anna, email: anna@example.com, hide_my_email: true}]
            """.utf8
        ).write(to: seed)
        let sandbox = try RunningSandbox("--seed", seed.path)
        let configuration = folder.path + "/data/postern.yaml"
        @discardableResult
        func postern(_ arguments: String...) throws -> String {
            let run = try ManagedProcess.run(program, arguments + ["--config", configuration])
            try #require(run.status == 0, "\(run.output)")
            return run.output
        }
        try InstallationCopy.make(folder.path + "/data", relayDomains: ["relay.example"])
        try postern("team", "add", "juice", "--name", "The Juice Company")
        try postern("app", "add", "juice", "com.example.juice")
        try postern(
            "issuer", "add", "apple", "--iss", "https://appleid.apple.com", "--jwks-uri",
            sandbox.url + "/auth/keys",
            "--algorithm",
            "RS256")
        let signedIn = try sandbox.object(
            try sandbox.order("authorize", #"{"user": "anna", "nonce": "n-1"}"#).body)
        let token = folder.appending(path: "token")
        try Data((signedIn["id_token"]?.string ?? "").utf8).write(to: token)
        let verified = try postern(
            "verify", "token", token.path, "--aud", "com.example.juice", "--nonce", "n-1")
        #expect(verified.contains("valid"), "\(verified)")

        let server = try ManagedProcess(
            program,
            [
                "serve", "--config", configuration, "--set",
                "milter.socket=unix:\(folder.path)/milter", "--set",
                "http.listen=127.0.0.1:\(port)",
            ])
        defer {
            server.signal(SIGTERM)
            _ = try? server.waitForExit()
        }
        try server.waitForLine(containing: "listening for HTTP")
        let types = [
            "email-disabled", "email-enabled", "consent-revoked", "account-deleted",
            "something-new",
        ]
        for (type, dialect) in types.flatMap({ type in ["wire", "documentation"].map { (type, $0) }
        }) {
            let start = server.lines.count
            let sent = try sandbox.order(
                "events", #"{"type": "\#(type)", "user": "anna", "dialect": "\#(dialect)"}"#)
            #expect(sent.body.contains(#""status":200"#), "\(type) \(dialect): \(sent.body)")
            let known =
                type == "account-deleted"
                ? "account-delete" : type == "something-new" ? "unknown" : type
            try server.waitForLine(containing: "type=\(known)", from: start)
            #expect(try sandbox.order("reset", "{}").status == 204)
        }
        // Tokens that are not Apple's are refused, and replaced keys are fetched again.
        for failure in [
            "wrong-signature", "unknown-kid", "wrong-issuer", "wrong-audience", "expired",
        ] {
            _ = try sandbox.order("failures", #"{"on": "events", "failure": "\#(failure)"}"#)
            let sent = try sandbox.order("events", #"{"type": "email-disabled", "user": "anna"}"#)
            #expect(sent.body.contains(#""status":400"#), "\(failure): \(sent.body)")
        }
    }
}
