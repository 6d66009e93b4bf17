// Signals are fetched from a transmitter of another project, which fails before it works.

import Accounts
import Database
import Decisions
import Events
import Foundation
import Logging
import PostfixHarness
import SignIn
import TestSupport
import Testing

@Suite(
    .blocking,
    .enabled(
        if: ReceiverExampleTests.python != nil, "skipped: no python3 with PyJWT (make test-tools)"))
struct SignalPollerTests {
    @Test(.timeLimit(.minutes(10))) func signalPoller_faultyTransmitter_takesEachEventOnce()
        async throws
    {
        let fixture = try EventFixture()
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent(
                "Tools/ssf_transmitter.py")
        let transmitter = try ManagedProcess(
            try #require(ReceiverExampleTests.python), ["-u", script.path],
            environment: [
                "ISSUER": "https://idp.example", "AUDIENCE": "com.juice", "SUBJECT": "001.abc",
                "NOW": "\(fixture.clock.now)",
                "TOKEN": "polling", "PATH": "/usr/bin:/bin",
            ])
        defer { transmitter.end() }
        let line = try transmitter.waitForLine(containing: "port ")
        let place = "http://127.0.0.1:\(try #require(line.split(separator: " ").last))"
        let store = fixture.store
        _ = try store.issuers.add(
            Issuer(
                name: "idp", iss: "https://idp.example", source: .uri, location: "\(place)/jwks",
                allowsHTTP: false,
                algorithms: ["RS256"], nonceForm: "raw", leeway: 60), fixture.change)
        try store.issuerPolls.set(
            IssuerPoll(issuer: "idp", url: "\(place)/poll", allowsHTTP: false), token: "polling",
            fixture.change)
        let account = try #require(try store.accounts.accounts().first)
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO external_identities (team_id, issuer, subject, account_id, created_at)
                SELECT team_id, 'https://idp.example', '001.abc', id, 1 FROM accounts WHERE id = \(account.number)
                """)
        }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let clock = fixture.clock
        let trust = IssuerTrust(store, now: { clock.now }, logger: logger)
        let poller = SignalPoller(
            store, issuers: trust.issuers,
            intake: SignalIntake(
                store, keys: trust.keys, ownIssuer: EventFixture.issuer, now: { clock.now },
                logger: logger),
            logger: logger)
        for _ in 0..<20 where !transmitter.lines.contains("empty") { await poller.round() }
        let said = transmitter.lines
        #expect(said.contains("empty"))
        let refused = said.filter { $0.hasPrefix("err ") }.sorted()
        #expect(
            refused == [
                "err elsewhere invalid_audience", "err garbage invalid_request",
                "err identity invalid_request",
                "err renamed invalid_request", "err stranger invalid_key",
            ])
        #expect(Set(said.filter { $0.hasPrefix("ack ") }).count == 151)
        let client = try #require(try store.clients.client("com.juice"))
        let history = try #require(
            try store.history.history(
                team: client.teamNumber, group: client.groupNumber,
                subject: .external(issuer: "https://idp.example", subject: "001.abc"),
                now: clock.now))
        #expect(history.riskEvents30d == 151 && history.lastRiskEvent == "credential-compromise")
        // The account is unchanged.
        #expect(history.grant?.isAuthorized == true && history.isForwardingOn == true)
        #expect(try store.outbox.events().isEmpty)
        #expect(try store.issuerPolls.remove("idp", fixture.change))
        await poller.round()
        await poller.stop()
        await trust.stop()
        await fixture.stop()
    }
}
