// The limit by consequence: when mail of a team is slowed, held and open again.

import MailAuth
import MailTesting
import Testing

@testable import RelayCore

@Suite struct DeliveryStandingTests {
    private let rules = DeliveryRules()
    private static let day: Int64 = 86_400
    private static let now: Int64 = 20_000 * day + 40_000

    private func complaints(
        _ count: Int, users: Int, among messages: Int
    ) -> DeliveryEvidence {
        DeliveryEvidence(messages: messages, complaints: count, complainingUsers: users)
    }

    private func review(
        _ standing: DeliveryStanding, hours: Int64 = 1_000, _ week: DeliveryEvidence,
        latest: DeliveryEvidence = DeliveryEvidence()
    ) -> String {
        rules.review(
            standing, since: Self.now - hours * 3_600, week: week, latest: latest, now: Self.now
        ).map { "\($0.standing) \($0.cause?.rawValue ?? "-")" } ?? "stays"
    }

    @Test func open_figuresAtTheThreshold_isSlowed() {
        #expect(review(.open, complaints(12, users: 12, among: 4_000)) == "slowed complaints")
        #expect(review(.open, complaints(12, users: 11, among: 4_000)) == "stays")
        #expect(
            review(
                .open, DeliveryEvidence(messages: 1_000, refusals: 50, refusedUsers: 50))
                == "slowed refusals")
    }

    @Test func open_fewUsersOrFewMessages_stays() {
        // Few users cannot stop a team, however often they complain.
        #expect(review(.open, complaints(63, users: 9, among: 1_000)) == "stays")
        #expect(review(.open, complaints(700, users: 10, among: 7_511)) == "stays")
        #expect(review(.slowed, complaints(700, users: 10, among: 7_511)) == "open -")
        #expect(review(.open, complaints(999, users: 999, among: 999)) == "stays")
        #expect(review(.open, DeliveryEvidence()) == "stays")
    }

    @Test func open_farAboveTheThreshold_isSlowedFirst() {
        #expect(review(.open, complaints(900, users: 900, among: 1_000)) == "slowed complaints")
    }

    @Test func slowed_farAboveTheThreshold_isHeldAfterAnHour() {
        let bad = complaints(36, users: 36, among: 4_000)
        #expect(review(.slowed, hours: 0, bad) == "stays")
        #expect(review(.slowed, hours: 1, bad) == "held complaints")
        #expect(review(.slowed, hours: 1, complaints(70, users: 35, among: 4_000)) == "stays")
    }

    @Test func slowed_itGoesOn_isHeld() {
        let week = complaints(14, users: 14, among: 4_000)
        let latest = complaints(10, users: 10, among: 200)
        #expect(review(.slowed, hours: 48, week, latest: latest) == "held complaints")
        // The complaints of the window are about mail from before the slowing.
        #expect(review(.slowed, hours: 20, week, latest: latest) == "stays")
        #expect(
            review(.slowed, hours: 48, week, latest: complaints(9, users: 9, among: 200))
                == "stays")
    }

    @Test func slowed_figuresRecover_isOpen() {
        #expect(review(.slowed, complaints(9, users: 9, among: 100)) == "open -")
        #expect(review(.slowed, complaints(10, users: 10, among: 8_000)) == "open -")
        // Between half the threshold and the threshold nothing changes.
        #expect(review(.slowed, complaints(11, users: 10, among: 4_000)) == "stays")
        #expect(review(.slowed, hours: 0, DeliveryEvidence()) == "stays")
    }

    @Test func held_figuresRecover_opensInSteps() {
        #expect(review(.held, complaints(14, users: 14, among: 4_000)) == "slowed complaints")
        #expect(review(.held, hours: 23, complaints(14, users: 14, among: 4_000)) == "stays")
        #expect(review(.held, complaints(50, users: 40, among: 4_000)) == "stays")
        #expect(review(.held, DeliveryEvidence()) == "open -")
        // No mail passes, so that few messages are no sign in favour of the team.
        #expect(review(.held, complaints(10, users: 10, among: 0)) == "stays")
    }

    @Test func thresholds_off_neverLimit() {
        var rules = DeliveryRules()
        (rules.complaintsPerThousand, rules.refusalsPerThousand) = (nil, nil)
        let bad = DeliveryEvidence(
            messages: 1_000, complaints: 900, complainingUsers: 900, refusals: 900,
            refusedUsers: 900)
        #expect(rules.review(.open, since: 0, week: bad, latest: bad, now: Self.now) == nil)
        #expect(
            rules.review(.held, since: 0, week: bad, latest: bad, now: Self.now)?.standing == .open)
    }

    // MARK: In the mail path

    private static func fixture(_ change: (inout RelaySettings) -> Void = { _ in }) -> Fixture {
        let anna = RelayAccount(
            number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
            inbox: Fixture.anna.inbox, inboxes: Fixture.anna.inboxes,
            sources: Fixture.anna.sources, team: "app")
        var settings = RelaySettings(
            relayDomains: ["relay.example"], authservID: "mx.relay.example")
        change(&settings)
        let proof = SPFFinding(
            result: .pass, identity: .mailFrom, domain: "app.example", reason: "")
        return Fixture(
            accounts: [anna], evidence: AuthenticationEvidence(spf: [proof]), settings: settings)
    }

    private static func forward(_ fixture: Fixture) -> RelayOutcome {
        fixture.play(
            from: "news@app.example", to: ["annarelay2@relay.example"],
            message: "From: news@app.example\r\nSubject: Hi\r\n\r\nHello\r\n"
        ).decision.outcome
    }

    @Test func forward_mailIsOpen_passesAndCounts() {
        let fixture = Self.fixture()
        guard case .relay = Self.forward(fixture) else {
            Issue.record("not relayed")
            return
        }
        #expect(fixture.directory.deliveries == ["other forwarded"])
    }

    @Test(arguments: [
        (DeliveryAdmission.slowed, RelayReason.Code.deliverySlowed), (.held, .deliveryHeld),
    ])
    func forward_mailIsLimited_isDeferredWithoutCounting(
        _ admission: DeliveryAdmission, _ reason: RelayReason.Code
    ) throws {
        let fixture = Self.fixture()
        fixture.directory.admit(admission, "app", .other)
        guard case .refuse(let refusal) = Self.forward(fixture) else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.isTemporary && refusal.reason.code == reason)
        #expect(refusal.reply.text.contains("provider") == false, "not for the team")
        #expect(fixture.directory.deliveries.isEmpty)
        #expect(fixture.directory.reserved(.forward, Fixture.anna.number) == 0)
        // Another provider, and another team, are not affected.
        let other = Self.fixture()
        other.directory.admit(admission, "app", .google)
        other.directory.admit(admission, "shop", .other)
        guard case .relay = Self.forward(other) else {
            Issue.record("not relayed")
            return
        }
    }

    @Test func forward_limitIsOff_passes() {
        let fixture = Self.fixture { $0.delivery = nil }
        fixture.directory.admit(.held, "app", .other)
        guard case .relay = Self.forward(fixture) else {
            Issue.record("not relayed")
            return
        }
    }

    @Test func bounce_repeated_isCountedOnce() throws {
        let fixture = Self.fixture()
        let token = fixture.engine.tokens.forwardReturnPath(
            account: Fixture.anna.number, sender: nil, nonce: 1,
            expiryDay: UInt64(Fixture.now / 86_400) + 1)
        let report = """
            From: MAILER-DAEMON@mx.home.example
            Content-Type: multipart/report; report-type=delivery-status; boundary=b

            --b
            Content-Type: message/delivery-status

            Reporting-MTA: dns; mx.home.example

            Final-Recipient: rfc822; anna@inbox.example
            Action: failed
            Status: 5.7.1
            Diagnostic-Code: smtp; 550 5.7.1 blocked using zen.spamhaus.org

            --b--

            """.replacing("\n", with: "\r\n")
        for _ in 1...3 {
            _ = fixture.play(
                from: "", to: ["\(token.localPart)@relay.example"], message: report)
        }
        #expect(fixture.directory.deliveries == ["other reputation"])
    }
}
