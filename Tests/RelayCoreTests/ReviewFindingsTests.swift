// Faults that a review found; each test has the name of the fault.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ReviewFindingsTests {
    private func code(_ decision: RelayDecision) -> String {
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        }
        return "\(decision.outcome)"
    }

    /// Such paths must not be taken for another domain's: they would be accepted and never
    /// delivered.
    @Test(arguments: [
        "<annarelay2@relay.example.>", "<relay.example!annarelay2>", "<annarelay2%relay.example>",
        "<\"annarelay2@relay.example\">",
        "<annarelay2@relay.example(c)>", "<annarelay2@Relay\\.example>", "<>", "",
    ])
    func recipient_otherSpellingOfDomain_isUnknown(_ path: String) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let isOdd = path.contains("\\")
        let reading = RecipientReading.read(
            isOdd ? "<annarelay2@relay.example\\>" : path, settings: fixture.engine.settings,
            tokens: fixture.engine.tokens)
        #expect(reading == .unknown)
    }

    /// A signature that could never prove anything must not make the sender try again forever.
    @Test func forwardProof_partialSignatureWithoutKey_isRefused() {
        let partial = DKIMFinding(
            result: .temperror, domain: "app.example", selector: "s", algorithm: "rsa-sha256",
            coversWholeBody: false,
            reason: "SERVFAIL")
        let decision = Fixture(evidence: AuthenticationEvidence(dkim: [partial])).play(
            from: "x@evil.example", to: ["annarelay2@relay.example"],
            message: "From: a@app.example\r\n\r\nx\r\n"
        ).decision
        #expect(code(decision) == "550 5.7.20")
    }

    private func reply(_ evidence: AuthenticationEvidence) -> String {
        let fixture = Fixture(evidence: evidence)
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: AddrSpec(envelope: "billing@app.example")!)
        return code(
            fixture.play(
                from: "anna@inbox.example", to: [reverse.localPart + "@relay.example"],
                message: "From: anna@inbox.example\r\nTo: x\r\n\r\nHi\r\n"
            ).decision)
    }

    /// An unreadable DMARC record must not permanently refuse a reply that it could prove.
    @Test func replyProof_unreadableDMARCRecord_isDeferred() {
        var evidence = AuthenticationEvidence.signed("mail.inbox.example")
        evidence.dmarc = DMARCFinding(
            result: .temperror, domain: "", policy: "", organizationalDomain: nil)
        #expect(reply(evidence) == "451 4.4.3")
        var stranger = AuthenticationEvidence.signed("evil.test")
        stranger.dmarc = evidence.dmarc
        #expect(reply(stranger) == "550 5.7.26")
    }

    /// A record at a top-level domain must not make all domains below it one organization.
    @Test func replyProof_topLevelOrganization_isRefused() {
        var evidence = AuthenticationEvidence.signed("evil.example")
        evidence.dmarc = DMARCFinding(
            result: .none, domain: "example", policy: "none", organizationalDomain: "example")
        #expect(reply(evidence) == "550 5.7.26")
    }

    /// The choice of code must not reveal to a stranger whose sources apply to an address.
    @Test func refusal_unprovedForward_hidesTheAccount() {
        func account(
            _ number: UInt64, _ local: String, _ scope: RegisteredSource.Scope
        ) -> RelayAccount {
            RelayAccount(
                number: AccountNumber(number)!,
                relayAddress: AddrSpec(localPart: local, domain: "relay.example"),
                isForwardingOn: true,
                hasLiveGrant: true, inbox: Fixture.anna.inbox, inboxes: Fixture.anna.inboxes,
                sharedName: nil,
                sources: [RegisteredSource(scope: scope)])
        }
        let accounts = [
            account(1, "annarelay2", .domain("app.example")),
            account(2, "bobrelay22", .address(AddrSpec(localPart: "a", domain: "app.example"))),
        ]
        let failed = AuthenticationEvidence(
            spf: [
                SPFFinding(
                    result: .softfail, identity: .mailFrom, domain: "bounce.app.example", reason: ""
                )
            ])
        let fixture = Fixture(accounts: accounts, evidence: failed)
        let answers = ["annarelay2", "bobrelay22"].map {
            fixture.play(
                from: "x@bounce.app.example", to: ["\($0)@relay.example"],
                message: "From: a@app.example\r\n\r\nx\r\n"
            )
            .decision
        }
        #expect(answers[0] == answers[1])
    }

    /// Limits that matter only for rewriting must not refuse mail to postmaster.
    @Test func postmaster_anyMessage_isRelayed() {
        let message =
            "From: a@b.example\r\nX-\u{e9}: x\r\n" + String(repeating: "Received: x\r\n", count: 60)
            + "\r\nx\r\n"
        let decision = Fixture(evidence: AuthenticationEvidence()).play(
            from: "a@b.example", to: ["postmaster@relay.example"], message: message
        ).decision
        #expect(code(decision) == "relay")
    }

    /// A holder of a return path must not be able to send the user any number of reports.
    @Test func userReport_repeated_isRelayedOnce() {
        let fixture = Fixture(evidence: AuthenticationEvidence())
        let path =
            fixture.engine.tokens.replyReturnPath(
                account: Fixture.anna.number, recipients: [], nonce: 7,
                expiryDay: UInt64(Fixture.now / 86_400) + 3
            ).localPart + "@relay.example"
        let report = """
            From: MAILER-DAEMON@mx.app.example\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
            Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.app.example\r\n\r\nFinal-Recipient: rfc822; billing@app.example\r\n\
            Action: failed\r\nStatus: 5.2.2\r\n\r\n--b--\r\n
            """
        let outcomes = (0..<3).map { _ in
            fixture.play(from: "", to: [path], message: report).decision.outcome
        }
        #expect(outcomes == [.relay, .discard, .discard])
        #expect(fixture.directory.counted(.reportDropped) == 2)
    }

    /// Only the team of an account may see a refusal that reveals its state.
    @Test func refusal_ofAnAccount_isForItsTeamOnly() {
        let ofAccount: [Refusal] = [
            .forwardingOff, .senderBlocked, .retired, .replaced, .inboxUnverified, .inboxSuspended,
            .dailyLimit(1),
            .storedAddressLimit(1),
        ]
        #expect(ofAccount.filter { $0.kind.facts.audience != .ownTeam } == [])
        let others: [Refusal] = [
            .unknownAddress(""), .otherScope, .tooManyRecipients, .storeTrouble(""),
            .unauthorizedSender("a@b.example", from: "b.example"), .dkimFailed(""),
        ]
        #expect(others.filter { $0.kind.facts.audience == .ownTeam } == [])
    }
}
