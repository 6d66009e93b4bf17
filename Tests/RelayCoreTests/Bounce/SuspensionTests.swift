// An inbox that refuses too much: forwarding to it pauses, and only a proved sender learns of it.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct SuspensionTests {
    private static let letter =
        "From: news@app.example\r\nTo: annarelay2@relay.example\r\n\r\nHello\r\n"

    /// A report of Postfix about a message with this nonce.
    private static func report(
        _ fixture: Fixture, nonce: UInt64, status: String = "5.1.1", day: UInt64 = today + 14
    ) -> Fixture.Response {
        let token = fixture.engine.tokens.forwardReturnPath(
            account: Fixture.anna.number,
            sender: AddrSpec(localPart: "bounce", domain: "app.example"), nonce: nonce,
            expiryDay: day)
        return fixture.play(
            from: "", to: ["\(token.localPart)@relay.example"],
            message: """
                From: MAILER-DAEMON@mx.inbox.example\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
                --b\r\n\r\nSorry\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.inbox.example\r\n\r\n\
                Final-Recipient: rfc822; anna@inbox.example\r\nAction: failed\r\nStatus: \(status)\r\n\r\n--b--\r\n
                """)
    }

    private static let today = UInt64(Fixture.now / 86_400)

    @Test func suspension_rateReached_defersProvedSender() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        for _ in 0..<8 {
            #expect(
                fixture.play(
                    from: "bounce@app.example", to: ["annarelay2@relay.example"],
                    message: Self.letter
                ).decision.outcome
                    == .relay)
        }
        for nonce in 1...4 {
            #expect(
                !Self.report(fixture, nonce: UInt64(nonce)).decision.reasons.map(\.code).contains(
                    .inboxNowSuspended))
        }
        // The same failure does not count again.
        _ = Self.report(fixture, nonce: 4)
        #expect(
            fixture.play(
                from: "bounce@app.example", to: ["annarelay2@relay.example"], message: Self.letter
            ).decision.outcome
                == .relay)
        #expect(
            Self.report(fixture, nonce: 5).decision.reasons.map(\.code).contains(.inboxNowSuspended)
        )
        let answer = fixture.play(
            from: "bounce@app.example", to: ["annarelay2@relay.example"], message: Self.letter)
        #expect(answer.refusals.isEmpty, "nothing is told at RCPT")
        guard case .refuse(let refusal) = answer.decision.outcome, refusal.isTemporary else {
            Issue.record("\(answer.decision.outcome)")
            return
        }
        #expect(refusal.reply.code == 451)
        #expect(refusal.reply.enhanced == "4.2.1")
        #expect(refusal.reason.code == .inboxSuspended)
    }

    @Test func suspension_fewFailures_doesNotBegin() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        for _ in 0..<50 {
            _ = fixture.play(
                from: "bounce@app.example", to: ["annarelay2@relay.example"], message: Self.letter)
        }
        for nonce in 1...10 {
            #expect(Self.report(fixture, nonce: UInt64(nonce)).decision.outcome == .relay)
        }
        #expect(fixture.directory.counted(.inboxBounced) == 10)
        #expect(
            fixture.play(
                from: "bounce@app.example", to: ["annarelay2@relay.example"], message: Self.letter
            ).decision.outcome
                == .relay)
    }

    @Test func suspension_unprovedSender_isNotTold() {
        let asked: (RelayAccount) -> String = { account in
            let fixture = Fixture(accounts: [account], evidence: .init())
            let answer = fixture.play(
                from: "bounce@app.example", to: ["annarelay2@relay.example"], message: Self.letter)
            return "\(answer.refusals) \(answer.decision.outcome)"
        }
        #expect(asked(Fixture.anna) == asked(Fixture.anna.suspended))
    }

    /// Not counted: a refusal of the sender's address, a full mailbox, a filter. None of them says
    /// that the mailbox does not exist.
    @Test(arguments: ["5.1.8", "5.1.7", "5.2.2", "5.7.1", "4.1.1"])
    func bounceReport_otherStatus_isNotCounted(status: String) {
        let fixture = Fixture(evidence: .init())
        _ = Self.report(fixture, nonce: 1, status: status)
        #expect(fixture.directory.counted(.inboxBounced) == 0)
    }

    @Test func bounceReport_ofMessage_recordsDayOfRelaying() {
        let fixture = Fixture(evidence: .init())
        _ = Self.report(fixture, nonce: 7, day: Self.today + 11)
        #expect(
            fixture.directory.failures == [
                InboxFailure(
                    nonce: 7, expiryDay: Self.today + 11, sentDay: Self.today - 3, day: Self.today)
            ])
    }

    /// The user's own mail is still relayed: only mail to the inbox is suspended.
    @Test func reply_fromSuspendedInbox_isRelayed() {
        let fixture = Fixture(
            accounts: [Fixture.anna.suspended],
            evidence: AuthenticationEvidence.signed("inbox.example"))
        let reverse =
            fixture.engine.tokens.reverse(
                account: Fixture.anna.number,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart + "@relay.example"
        let answer = fixture.play(
            from: "anna@inbox.example", to: [reverse],
            message: "From: anna@inbox.example\r\nTo: \(reverse)\r\n\r\nHello\r\n")
        #expect(answer.decision.outcome == .relay)
    }

    @Test(arguments: [
        (5, 8, true), (5, 10, true), (5, 11, false), (4, 4, false), (5, 0, true),
        (1_000_000, 1_999_999, true),
    ])
    func suspensionRate_needsFailuresAndPercent(failures: Int, forwarded: Int, isReached: Bool) {
        #expect(
            SuspensionRate(failures: 5, percent: 50, days: 14).isReached(
                failures: failures, forwarded: forwarded) == isReached)
    }
}
