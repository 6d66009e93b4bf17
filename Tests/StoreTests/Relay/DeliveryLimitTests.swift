// Fifty teams share a relay; one of them annoys users of a provider. On both engines.

import Accounts
import Database
import Events
import Foundation
import InternetMessage
import MailAuth
import MailTesting
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct DeliveryLimitTests {
    /// A relay with its store, in one process and without a network.
    private final class Relay {
        let test: TestStore
        let counters: CounterBuffer
        let base: RelayEngine
        let clock: ManualClock
        var rules = DeliveryRules()

        init(_ engine: Engine) throws {
            test = try TestStore(engine)
            counters = CounterBuffer(test.store.counters)
            let clock = ManualClock(TestStore.now)
            self.clock = clock
            rules.messages = 100
            rules.slowedPerHour = 3
            var settings = RelaySettings(
                relayDomains: ["relay.example"], authservID: "mx.relay.example")
            settings.delivery = rules
            base = RelayEngine(
                settings: settings, keys: Fixture.keys,
                directory: StoreDirectory(
                    store: test.store, counters: counters, now: { clock.now }),
                authenticator: TestAuthenticator(evidence: AuthenticationEvidence()),
                replyMemory: ReplyMemory(limit: 1 << 24),
                randomness: { count in
                    (0..<count).map { _ in UInt8.random(in: .min ... .max) }
                })!
        }

        /// A team with its domain, and users with inboxes at a domain.
        func team(_ id: String, users: Range<Int>, at domain: String) throws -> [AddrSpec] {
            if (try? test.store.teams.team(id)) == nil {
                _ = try test.store.teams.add(id: id, name: id, TestStore.change)
                let source = try test.store.sources.checked(
                    "\(id).example", envelopeDomain: nil, now: TestStore.now)
                try test.store.sources.add(team: id, source, TestStore.change)
            }
            return try users.map { number in
                let user = "\(id)-\(domain.prefix(1))\(number)"
                try test.user(user, inbox: "\(user)@\(domain)")
                return try test.address(user, team: id).address
            }
        }

        /// Sends a message of a team.
        func send(_ team: String, to address: AddrSpec) -> RelayDecision {
            let proof = SPFFinding(
                result: .pass, identity: .mailFrom, domain: "\(team).example", reason: "")
            let engine = base.authenticating(
                by: TestAuthenticator(evidence: AuthenticationEvidence(spf: [proof])))
            return play(
                engine, from: "news@\(team).example",
                to: "\(address.localPart)@\(address.domain)",
                Array("From: news@\(team).example\r\nSubject: Hi\r\n\r\nHello\r\n".utf8))
        }

        /// A report about a relayed message comes to its return path.
        func bounce(_ decision: RelayDecision, _ report: [UInt8]) {
            for case .changeSender(let path) in decision.modifications {
                _ = play(base, from: "", to: String(path.dropFirst().dropLast()), report)
            }
        }

        private func play(
            _ engine: RelayEngine, from sender: String, to recipient: String, _ message: [UInt8]
        ) -> RelayDecision {
            let transaction = RelayTransaction(
                engine: engine,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "client.example", mailFrom: sender),
                now: clock.now)
            do throws(Refusal) {
                try transaction.addRecipient("<\(recipient)>")
                let parsed = Message.parse(message)
                for field in parsed.header.fields {
                    transaction.addHeader(field)
                }
                try transaction.endHeader()
                try transaction.addBody(parsed.body)
            } catch { return .refuse(error) }
            return transaction.finish()
        }

        /// What `postern serve` does each minute.
        func review() throws -> [String] {
            try counters.flush()
            let steps = try test.store.deliveries.review(rules, now: clock.now)
            try counters.deliveries.gate.refresh(test.store.deliveries, now: clock.now)
            return steps.map { "\($0.team) \($0.provider) \($0.standing)" }
        }

        func isRelayed(_ team: String, _ address: AddrSpec) -> Bool {
            if case .relay = send(team, to: address).outcome { return true }
            return false
        }

        func code(_ team: String, _ address: AddrSpec) -> RelayReason.Code? {
            guard case .refuse(let refusal) = send(team, to: address).outcome else { return nil }
            return refusal.isTemporary ? refusal.reason.code : nil
        }
    }

    /// Reports of `../shared/conformance` in which a provider refuses a message as unsolicited; or
    /// one of our own where they are absent.
    private static func reports() throws -> [[UInt8]] {
        let own = """
            From: MAILER-DAEMON@mx.home.example
            Content-Type: multipart/report; report-type=delivery-status; boundary=b

            --b
            Content-Type: message/delivery-status

            Reporting-MTA: dns; mx.home.example

            Final-Recipient: rfc822; jane@home.example
            Action: failed
            Status: 5.7.1
            Diagnostic-Code: smtp; 550 5.7.1 [192.0.2.1] Our system has detected that this message is likely unsolicited mail

            --b--

            """
        var found: [[UInt8]] = []
        let folder = Folders.conformance.appending(path: "bounces/set-of-emails")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names.sorted() where name.hasSuffix(".eml") {
            let text = String(
                decoding: try Data(contentsOf: folder.appending(path: name)), as: UTF8.self)
            if text.contains("UBE, id=") || text.contains("due to spam classification") {
                found.append(Array(text.replacing("\r\n", with: "\n").utf8))
            }
        }
        if found.isEmpty { print("../shared/conformance is not there: one report of our own") }
        return (found + [Array(own.utf8)]).map { report in
            report.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] }
        }
    }

    @Test(arguments: Engine.all) func fiftyTeams_oneSpams_onlyItsMailIsSlowedAndComesBack(
        _ engine: Engine
    ) throws {
        let relay = try Relay(engine)
        let reports = try Self.reports()
        let spammed = try relay.team("spam", users: 0..<12, at: "gmail.com")
        let elsewhere = try relay.team("spam", users: 0..<1, at: "yahoo.com")
        let others = try (0..<49).map { number in
            ("t\(number)", try relay.team("t\(number)", users: 0..<1, at: "gmail.com")[0])
        }
        func othersPass() -> Bool { others.allSatisfy { relay.isRelayed($0.0, $0.1) } }

        var sent: [RelayDecision] = []
        for round in 0..<10 {
            for address in spammed {
                let decision = relay.send("spam", to: address)
                if round == 0 { sent.append(decision) }
            }
        }
        #expect(othersPass())
        // Nine users are not enough.
        for (number, decision) in sent.prefix(9).enumerated() {
            relay.bounce(decision, reports[number % reports.count])
        }
        #expect(try relay.review() == [])
        for (number, decision) in sent.dropFirst(9).enumerated() {
            relay.bounce(decision, reports[number % reports.count])
        }
        #expect(try relay.review() == ["spam google slowed"])
        #expect(try relay.review() == [], "once")

        // The mail of the hour is used up already.
        #expect(relay.code("spam", spammed[0]) == .deliverySlowed)
        #expect(relay.isRelayed("spam", elsewhere[0]), "another provider")
        #expect(othersPass())
        relay.clock.advance(3_600)
        // Ten per cent of refusals are twice the threshold: slowed, not held.
        #expect(try relay.review() == [])
        let passed = spammed.filter { relay.isRelayed("spam", $0) }
        #expect(passed.count == 3)
        #expect(othersPass())

        // The window moves on, and the figures recover.
        relay.clock.advance(DeliveryRules.days * 86_400)
        #expect(try relay.review() == ["spam google open"])
        #expect(spammed.allSatisfy { relay.isRelayed("spam", $0) })

        let audit = try relay.test.store.audit.entries(limit: 200).filter {
            $0.action.hasPrefix("delivery.")
        }
        #expect(audit.map(\.action) == ["delivery.open", "delivery.slowed"])
        #expect(audit.allSatisfy { $0.subject == "team:spam" && $0.actor == "relay" })
        #expect(
            audit[1].detail == "google: 12 refusals of 12 users among 120 messages in 7 days")
    }

    @Test(arguments: Engine.all) func complaints_farAboveTheThreshold_holdUntilAllowed(
        _ engine: Engine
    ) throws {
        let relay = try Relay(engine)
        let (store, team) = (relay.test.store, "spam")
        let users = try relay.team(team, users: 0..<12, at: "gmail.com")
        _ = try store.apps.add(
            team: team, clientID: "com.spam.app", group: nil, TestStore.change)
        _ = try store.endpoints.set(
            team: team, app: "com.spam.app",
            url: EndpointURL("https://hooks.spam.example/events"), TestStore.change)
        for _ in 0..<10 { for user in users { #expect(relay.isRelayed(team, user)) } }
        for (number, user) in users.enumerated() {
            let account = try #require(
                try store.relay.relayAddress(localPart: user.localPart, domain: user.domain))
            _ = try store.complaints.record(
                account: account.number.stored, mark: [UInt8(number)], provider: .google,
                day: Day.number(relay.clock.now), now: relay.clock.now)
        }
        #expect(try relay.review() == ["spam google slowed"])
        relay.clock.advance(3_600)
        #expect(try relay.review() == ["spam google held"])
        #expect(relay.code(team, users[0]) == .deliveryHeld)

        let limit = try #require(try store.deliveries.limits(now: relay.clock.now).first)
        #expect(limit.inForce(now: relay.clock.now) == .held && limit.cause == .complaints)
        #expect(limit.users == 12 && limit.events == 12 && limit.messages == 120)

        // The administrator decides, for a time.
        try store.deliveries.decide(
            .allow, team: store.teams.team(team), provider: .google,
            until: relay.clock.now + 600, reason: "cured", TestStore.change)
        #expect(try relay.review() == [])
        #expect(relay.isRelayed(team, users[0]))
        relay.clock.advance(601)
        #expect(try relay.review() == [])
        #expect(relay.code(team, users[0]) == .deliveryHeld)
        try store.deliveries.decide(
            .allow, team: store.teams.team(team), provider: .google, until: nil,
            reason: "cured", TestStore.change)
        relay.clock.advance(DeliveryRules.days * 86_400)
        #expect(try relay.review() == ["spam google open"])
        // What was decided stays until it is lifted.
        try store.deliveries.decide(
            .hold, team: store.teams.team(team), provider: .google, until: nil,
            reason: "again", TestStore.change)
        #expect(try relay.review() == [])
        #expect(relay.code(team, users[0]) == .deliveryHeld)
        try store.deliveries.lift(
            team: store.teams.team(team), provider: .google, TestStore.change)
        #expect(try relay.review() == [])
        #expect(relay.isRelayed(team, users[0]))
        expectRefusal(.notFound) {
            try store.deliveries.lift(
                team: store.teams.team(team), provider: .google, TestStore.change)
        }

        let events = try store.outbox.events(limit: 100).filter { $0.type == .deliveryLimit }
        #expect(events.count == 3)
        let details = events.sorted { $0.number < $1.number }.map { $0.detail ?? "" }
        #expect(
            details.first
                == #"{"state":"slowed","messages":120,"events":12,"users":12,"cause":"complaints"}"#
        )
        #expect(events.allSatisfy { $0.sub == team })
        #expect(!details.contains { $0.contains("google") }, "the team must not learn it")
    }
}
