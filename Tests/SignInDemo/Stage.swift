// The parts of the demonstration: Postfix, Postern with its sign-in page, and an app.

import DemoSupport
import Foundation
import PostfixHarness
import RelayHarness

final class Stage: @unchecked Sendable {
    let fixture: RelayFixture
    let app: ManagedProcess
    /// The addresses of Postern and the app for browsers. By name, because passkeys belong to a
    /// name.
    let postern: String
    let juice: String

    init() throws {
        Terminal.title("Sign in with Postern")
        Terminal.say(
            "Starting a private Postfix, postern serve with its sign-in page, and an app, all on loopback…"
        )
        postern = "http://localhost:\(try FreePort.next())"
        let port = try FreePort.next()
        juice = "http://localhost:\(port)"
        var options = RelayFixture.Options()
        options.zone = """
            {"juice.example": {"TXT": ["v=spf1 ip4:127.0.0.1 -all"]}, "home.example": {"TXT": ["v=spf1 ip4:127.0.0.1 -all"]}}
            """
        options.trustsLoopback = true
        options.settings = [
            "http.listen": postern.replacingOccurrences(of: "http://localhost", with: "127.0.0.1"),
            "http.public_url": postern,
            "sign_in.page": "built-in", "sign_in.sign_up": "open", "service_name": "Postern",
        ]
        fixture = try RelayFixture(options)
        let client = "com.example.juice"
        try fixture.addTeam("juice", name: "The Juice Company", source: "juice.example")
        try fixture.run(["app", "add", "juice", client, "--redirect-uri", juice + "/back"])
        try fixture.run([
            "app", "redirect", "add", "juice", client, juice + "/", "--after-sign-out",
        ])
        // One line is the secret, and another one explains its use.
        let issued = try fixture.run(["app", "secret", "issue", "juice", client]).split(
            whereSeparator: \.isNewline)
        guard let secret = issued.first(where: { !$0.contains(" ") }) else {
            throw HarnessError("there is no secret")
        }
        try fixture.run(["app", "redirect", "add", "juice", client, juice + "/checked"])
        let keys = try fixture.run(["api-key", "issue", "juice", "--scope", "decisions:write"])
        guard
            let key = keys.split(whereSeparator: \.isNewline).first(where: { !$0.contains(" ") })
        else { throw HarnessError("there is no key") }
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("app.py").path
        app = try ManagedProcess(try Self.python(), [script])
        let setup: [String: Any] = [
            "issuer": postern, "client_id": client, "client_secret": String(secret),
            "api_key": String(key),
            "smtp_port": Int(fixture.postfix.port), "port": Int(port),
        ]
        app.writeInput(
            String(decoding: try JSONSerialization.data(withJSONObject: setup), as: UTF8.self)
                + "\n")
        try app.waitForLine(containing: "listening on")
    }

    func end() {
        app.end()
        fixture.stop()
    }

    /// The Python of `make test-tools`, which has Authlib.
    private static func python() throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let path = root.appendingPathComponent(".build/test-tools/bin/python3").path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw HarnessError("there is no Python with Authlib: make test-tools")
        }
        return path
    }

    // MARK: For a person

    func invite() {
        Terminal.title("Open \(juice) in a browser on this machine")
        Terminal.say(
            "Sign in with any address: what is mailed to it is printed here, and goes nowhere else."
        )
        Terminal.say("Your own page is \(postern)/me. Ctrl-C ends everything.")
    }

    /// Prints each message that arrives.
    func readMailAloud() {
        var count = 0
        while let messages = try? fixture.sink.wait(
            for: count + 1, seconds: 31_536_000, where: { _ in true })
        {
            for message in messages[count...] { show(message) }
            count = messages.count
        }
    }

    func show(_ message: SinkMessage) {
        let letter = Letter(message)
        Terminal.block(
            "mail for \(message.recipients.joined(separator: ", "))",
            letter.shown(["From", "Reply-To", "To", "Subject"]) + [""]
                + letter.readable, .arrived)
    }
}
