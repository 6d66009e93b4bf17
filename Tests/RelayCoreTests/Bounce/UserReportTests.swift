// Mail to the return path of a reply: anyone who knows it could write to the user with a made-up
// report.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct UserReportTests {
    private static let billing = AddrSpec(localPart: "billing", domain: "app.example")

    /// A report that the holder of a return path could make: the attacker controls all of its free
    /// text.
    private static func report(
        _ recipient: String = "billing@app.example", original: String? = nil,
        action: String = "failed", status: String = "5.1.1",
        id: String = "<evil.id@evil.example>"
    ) -> String {
        """
        From: MAILER-DAEMON@mx.app.example\r\nSubject: PAY NOW\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/plain\r\n\r\nCall 0900 EVIL at once\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\
        Reporting-MTA: dns; evil.example\r\n\r\nFinal-Recipient: rfc822; \(recipient)\r\n\(original.map { "Original-Recipient: rfc822; \($0)\r\n" } ?? "")\
        Action: \(action)\r\nStatus: \(status)\r\nDiagnostic-Code: smtp; 550 EVIL call 0900 or visit us\r\n\r\n\
        --b\r\nContent-Type: text/rfc822-headers\r\n\r\nSubject: Your account is EVIL\r\nDate: EVIL evil Evil\r\nMessage-ID: \(id)\r\n\r\n--b--\r\n
        """
    }

    private static func path(
        _ fixture: Fixture, nonce: UInt64 = 7, to recipients: [AddrSpec] = [billing]
    ) -> String {
        fixture.engine.tokens.replyReturnPath(
            account: Fixture.anna.number, recipients: recipients, nonce: nonce,
            expiryDay: UInt64(Fixture.now / 86_400) + 3
        ).localPart + "@relay.example"
    }

    /// The outgoing message, header and body; nil if there is none.
    private static func text(_ decision: RelayDecision) -> String? {
        guard decision.outcome == .relay else { return nil }
        var message = ModifiedMessage(header: HeaderSection(), body: [], sender: "", recipients: [])
        message.apply(decision.modifications)
        return String(decoding: message.bytes, as: UTF8.self)
    }

    @Test func userReport_relayed_hasOwnWordsOnly() throws {
        let fixture = Fixture(evidence: .init())
        let text = try #require(
            Self.text(
                fixture.play(from: "", to: [Self.path(fixture)], message: Self.report()).decision))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: Self.billing
        ).localPart
        #expect(
            text.contains("Final-Recipient: rfc822; \(reverse)@relay.example")
                && text.contains("Status: 5.1.1 (there is no such mailbox)"))
        for word in ["evil", "0900", "pay now", "diagnostic", "rfc822-headers", "in-reply-to"] {
            #expect(!text.lowercased().contains(word), "\(word) of the report goes on")
        }
    }

    /// The server's text gives the status.
    @Test func userReport_vagueStatus_isReadFromText() throws {
        let fixture = Fixture(evidence: .init())
        let vague = Self.report(status: "5.0.0").replacingOccurrence(
            of: "550 EVIL call", with: "550 user unknown call")
        let text = try #require(
            Self.text(fixture.play(from: "", to: [Self.path(fixture)], message: vague).decision))
        #expect(
            text.contains("Status: 5.1.1 (there is no such mailbox)")
                && !text.lowercased().contains("evil"))
    }

    @Test func userReport_ownMessageID_keepsTheThread() throws {
        let fixture = Fixture(evidence: .init())
        let own = Array("CAF=abc@mail.inbox.example".utf8)
        func id(_ account: RelayAccount) -> String {
            "<\(String(decoding: fixture.engine.ids.hide(own, account: account.number, relayDomain: "relay.example"), as: UTF8.self))>"
        }
        func play(_ nonce: UInt64, _ id: String) -> String? {
            Self.text(
                fixture.play(
                    from: "", to: [Self.path(fixture, nonce: nonce)], message: Self.report(id: id)
                ).decision)
        }
        #expect(
            try #require(play(1, id(Fixture.anna))).contains(
                "In-Reply-To: <CAF=abc@mail.inbox.example>"))
        #expect(try !#require(play(2, id(Fixture.bob))).contains("In-Reply-To"))
    }

    /// A report about any made-up address must not give the user a new reverse address of the
    /// attacker's choice.
    @Test(arguments: [
        "someone@evil.example", "Billing@app.example", "support@app.example", "x@[192.0.2.1]",
        "EVIL text", "",
    ])
    func userReport_unknownRecipient_isNotNamed(_ recipient: String) throws {
        let fixture = Fixture(evidence: .init())
        for (nonce, original) in [(UInt64(1), nil), (2, recipient)] {
            let decision = fixture.play(
                from: "", to: [Self.path(fixture, nonce: nonce)],
                message: Self.report(recipient, original: original)
            ).decision
            let text = try #require(Self.text(decision))
            #expect(text.contains("Your message to one of its recipients could not be delivered."))
            #expect(
                !text.contains("=app.example.") && !text.lowercased().contains("evil")
                    && !text.contains("192.0.2.1"))
            #expect(text.contains("Final-Recipient: rfc822; unknown@relay.example"))
        }
        #expect(fixture.directory.storedCount == 0)
    }

    /// A report often names the address to which a forwarding address forwards.
    @Test func userReport_originalRecipient_isNamed() throws {
        let fixture = Fixture(evidence: .init())
        let message = Self.report("desk7@corp.example", original: "billing@app.example")
        let text = try #require(
            Self.text(fixture.play(from: "", to: [Self.path(fixture)], message: message).decision))
        #expect(text.contains("<billing=app.example.") && !text.contains("corp.example"))
    }

    @Test func userReport_storedCorrespondent_isNamedWhileStored() throws {
        let long = try #require(AddrSpec(envelope: "Upper.Case@app.example"))
        let fixture = Fixture(evidence: .init())
        let token = fixture.engine.tokens.reverse(account: Fixture.anna.number, correspondent: long)
        func play(_ nonce: UInt64) -> String? {
            Self.text(
                fixture.play(
                    from: "", to: [Self.path(fixture, nonce: nonce, to: [long])],
                    message: Self.report("Upper.Case@app.example")
                ).decision)
        }
        #expect(try !#require(play(1)).contains(token.localPart))
        #expect(fixture.directory.storedCount == 0, "a report makes nothing be stored")
        _ = try fixture.directory.store(
            [#require(StoredAddress(token))], account: Fixture.anna.number, day: 1, newPerDay: 1)
        #expect(try #require(play(2)).contains("rfc822; \(token.localPart)@relay.example"))
    }

    /// Forwarding was off or consent revoked, and reports still arrived. No one is notified of the
    /// reason, as reports prove nothing.
    @Test func userReport_accountTakesNoMail_isDiscarded() {
        let anna = Fixture.anna
        func changed(
            isForwardingOn: Bool = true, isActive: Bool = true, inbox: UserInbox?
        ) -> RelayAccount {
            RelayAccount(
                number: anna.number, relayAddress: anna.relayAddress,
                isForwardingOn: isForwardingOn, hasLiveGrant: isActive,
                inbox: inbox,
                inboxes: anna.inboxes, sharedName: nil, sources: anna.sources)
        }
        let unverified = anna.inbox.map { UserInbox(address: $0.address, isVerified: false) }
        let states = [
            changed(isForwardingOn: false, inbox: anna.inbox),
            changed(isActive: false, inbox: anna.inbox), changed(inbox: nil),
            changed(inbox: unverified), anna.suspended,
        ]
        for state in states {
            let fixture = Fixture(accounts: [state], evidence: .init())
            let answer = fixture.play(from: "", to: [Self.path(fixture)], message: Self.report())
            #expect(
                answer.refusals.isEmpty && answer.decision.outcome == .discard
                    && answer.decision.modifications.isEmpty)
            #expect(
                fixture.directory.counted(.reportDropped) == 1
                    && fixture.directory.reserved(.forward, anna.number) == 0)
        }
    }

    @Test func userReport_dailyLimitReached_isDiscarded() {
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx")
        settings.limits.messagesPerDay = 3
        let fixture = Fixture(
            evidence: AuthenticationEvidence.signed("app.example"), settings: settings)
        let outcomes = (1...5).map { nonce in
            fixture.play(
                from: "", to: [Self.path(fixture, nonce: UInt64(nonce))], message: Self.report()
            ).decision.outcome
        }
        #expect(outcomes == [.relay, .relay, .relay, .discard, .discard])
        let forward = fixture.play(
            from: "x@app.example", to: ["annarelay2@relay.example"],
            message: "From: b@app.example\r\n\r\nx\r\n"
        ).decision
        guard case .refuse(let refusal) = forward.outcome else {
            Issue.record("\(forward.outcome)")
            return
        }
        #expect(refusal.reply.enhanced == "4.7.1")
    }

    /// The return path of a relayed reply knows its correspondents.
    @Test func returnPath_ofAReply_knowsItsRecipients() throws {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let correspondents = ["billing@app.example", "help@app.example"].compactMap {
            AddrSpec(envelope: $0)
        }
        let recipients = correspondents.map {
            fixture.engine.tokens.reverse(account: Fixture.anna.number, correspondent: $0).localPart
                + "@relay.example"
        }
        let decision = fixture.play(
            from: "anna@inbox.example", to: recipients,
            message: "From: anna@inbox.example\r\nTo: x\r\n\r\nHi\r\n"
        ).decision
        let sender = try #require(
            decision.modifications.lazy.compactMap {
                if case .changeSender(let path) = $0 { path } else { nil }
            }.first)
        guard
            case .token(let token) = fixture.engine.tokens.read(
                String(sender.dropFirst().prefix { $0 != "@" }))
        else {
            Issue.record("\(sender) is no token")
            return
        }
        #expect(
            (correspondents + [AddrSpec(localPart: "other", domain: "app.example")]).map {
                fixture.engine.tokens.isRecipient($0, of: token)
            } == [true, true, false])
    }
}
