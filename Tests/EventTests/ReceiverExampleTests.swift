// The receiver of docs/EVENTS.md, run unchanged.

import Accounts
import Events
import Foundation
import PostfixHarness
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct ReceiverExampleTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Python of `make test-tools`, or the system's, with PyJWT; nil if there is none.
    static let python: String? = {
        [root.appendingPathComponent(".build/test-tools/bin/python3").path, "/usr/bin/python3"]
            .first { path in
                FileManager.default.isExecutableFile(atPath: path)
                    && (try? ManagedProcess.run(
                        path, ["-c", "import jwt, cryptography; jwt.PyJWKClientConnectionError"]
                    ).status) == 0
            }
    }()

    /// The first Python block of the page.
    private static func example() throws -> String {
        let page = try String(
            contentsOf: root.appendingPathComponent("docs/EVENTS.md"), encoding: .utf8)
        let start = try #require(page.range(of: "```python\n"))
        let end = try #require(page.range(of: "```", range: start.upperBound..<page.endIndex))
        return String(page[start.upperBound..<end.lowerBound])
    }

    @Test(
        .enabled(if: python != nil, "skipped: no python3 with PyJWT (make test-tools)"),
        .timeLimit(.minutes(15)))
    func receiverExample_ofDocs_takesEventsAndRefusesForged() async throws {
        let fixture = try EventFixture(users: 2, timeout: 10)
        let keys = try await fixture.signer.publishedKeys()
        let keyFile = fixture.folder.appendingPathComponent("keys.json")
        try Data(keys).write(to: keyFile)
        let server = try ManagedProcess(
            try #require(Self.python),
            [
                "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory",
                fixture.folder.path,
            ],
            environment: ["PATH": "/usr/bin:/bin"])
        defer { server.end() }
        let banner = try server.waitForLine(containing: "Serving HTTP on")
        let keyPort = try #require(banner.firstMatch(of: /port ([0-9]+)/).map { String($0.1) })
        let script = fixture.folder.appendingPathComponent("receiver.py")
        try Data(Self.example().utf8).write(to: script)
        let database = fixture.folder.appendingPathComponent("receiver.db").path
        let receiver = try ManagedProcess(
            try #require(Self.python), [script.path],
            environment: [
                "ISSUER": EventFixture.issuer, "AUDIENCE": "com.juice",
                "KEYS_URL": "http://127.0.0.1:\(keyPort)/keys.json",
                "DATABASE": database,
                "CERTIFICATE": TestReceiver.certificate("receiver.pem"),
                "KEY": TestReceiver.certificate("receiver-key.pem"),
                "PATH": "/usr/bin:/bin",
            ])
        defer { receiver.end() }
        let port = try #require(receiver.wait { lines in lines.lazy.compactMap { Int($0) }.first })
        // The example compares iat with the real time, and accepts none from the future.
        fixture.clock.advance(Int64(Date().timeIntervalSince1970) - 600 - fixture.clock.now)
        try fixture.endpoint("https://hooks.example:\(port)/")
        let accounts = try fixture.store.accounts.accounts()
        for isOn in [false, true, false] {
            try fixture.toggle("u0", on: isOn)
            fixture.clock.advance(1)
        }
        try fixture.store.accounts.delete(account: accounts[1].number, fixture.change)
        _ = try fixture.store.outbox.test(
            fixture.store.endpoints.endpoint(team: "juice", app: nil), fixture.change)
        try await fixture.deliver(within: 30)
        let errors = try fixture.store.outbox.events().compactMap(\.lastError)
        #expect(
            try fixture.store.outbox.events(state: .delivered).count == 5,
            "\(errors) \(receiver.output)")
        func users() throws -> String {
            try ManagedProcess.run(
                try #require(Self.python),
                [
                    "-c",
                    "import sqlite3,sys; [print(*r) for r in sqlite3.connect(sys.argv[1]).execute('SELECT sub, type FROM users ORDER BY type')]",
                    database,
                ]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        #expect(
            try users() == "\(accounts[1].sub) account-delete\n\(accounts[0].sub) email-disabled")
        // A repetition changes nothing, and an event that these keys did not sign is refused.
        let event = try #require(try fixture.store.outbox.events(account: accounts[0].number).last)
        let again = try await fixture.delivery.body(event)
        #expect(try await post(fixture, again, port) == .delivered)
        #expect(
            try users() == "\(accounts[1].sub) account-delete\n\(accounts[0].sub) email-disabled")
        let (stranger, _) = try IdentitySigningKey.generate()
        let forged = OutgoingEvent(
            issuer: EventFixture.issuer, audience: "com.juice", id: "forged",
            issuedAt: fixture.clock.now, kind: .accountDelete,
            subject: accounts[0].sub, relayAddress: nil, happenedAt: fixture.clock.now * 1000)
        let refused = PostOutcome.failed(
            reason: "the response has status 400", isEndpoints: false, retryAfter: nil)
        #expect(try await post(fixture, forged.body(signedWith: stranger), port) == refused)
        #expect(try await post(fixture, Array("{}".utf8), port) == refused)
        await fixture.stop()
    }

    private func post(
        _ fixture: EventFixture, _ body: [UInt8], _ port: Int
    ) async throws -> PostOutcome {
        let poster = try HTTPEventPoster(rootsPath: TestReceiver.certificate("authority.pem"))
        let url = try EndpointURL("https://hooks.example:\(port)/")
        let addresses = try EndpointAddresses(
            of: url, allowsPrivate: true, resolver: fixture.resolver)
        let outcome = await poster.post(EventMessage(notification: body), to: url, at: addresses)
        await poster.stop()
        return outcome
    }
}
