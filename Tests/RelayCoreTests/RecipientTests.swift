// The recipients that are accepted at RCPT, and the possible content of one transaction.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct RecipientTests {
    private let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))

    private func codes(_ recipients: [String]) -> [String] {
        let answer = fixture.play(
            from: "news@app.example", to: recipients,
            message: "From: news@app.example\r\n\r\nHello\r\n")
        return recipients.map { recipient in
            answer.refusals[recipient].map { "\($0.reply.code) \($0.reply.enhanced)" } ?? "accepted"
        }
    }

    private func reverse(_ account: RelayAccount, _ correspondent: String) -> String {
        fixture.engine.tokens.reverse(
            account: account.number, correspondent: AddrSpec(envelope: correspondent)!
        ).localPart
            + "@relay.example"
    }

    @Test func recipient_unknownLocalPart_isRefused() {
        #expect(
            codes(["nobody@relay.example", "aaaaaaaaaa@relay.example", "a.b=c@relay.example"]) == [
                "550 5.1.1", "550 5.1.1", "550 5.1.1",
            ])
    }

    @Test func recipient_unreadablePath_isRefused() {
        #expect(
            codes([
                "annarelay2@relay.example\0", "annarelay2@relay.example .evil.example",
                "\"a@relay.example",
            ]) == [
                "550 5.1.1", "550 5.1.1", "550 5.1.1",
            ])
    }

    @Test func recipient_otherLetterCase_isAccepted() {
        #expect(codes(["AnnaRelay2@RELAY.example"]) == ["accepted"])
        #expect(codes(["annarelay2@second.example"]) == ["550 5.1.1"])
    }

    @Test func transaction_severalAccounts_carriesOne() {
        #expect(
            codes([
                "annarelay2@relay.example", "bobrelay22@relay.example", "annaother2@relay.example",
            ]) == [
                "accepted", "452 4.5.3", "452 4.5.3",
            ])
    }

    @Test func transaction_withOtherMail_defersTheSecond() {
        #expect(
            codes(["annarelay2@relay.example", "someone@elsewhere.example"]) == [
                "accepted", "452 4.5.3",
            ])
        #expect(
            codes(["someone@elsewhere.example", "annarelay2@relay.example"]) == [
                "accepted", "452 4.5.3",
            ])
        #expect(
            codes(["someone@elsewhere.example", "other@third.example"]) == ["accepted", "accepted"])
    }

    @Test func mail_toAnotherDomain_isUntouched() {
        let answer = fixture.play(
            from: "a@b.example", to: ["c@elsewhere.example"], message: "From: a@b.example\r\n\r\n")
        #expect(answer.decision.outcome == .untouched && answer.decision.modifications.isEmpty)
    }

    @Test func transaction_ofAReply_carriesItsAccountOnly() {
        #expect(
            codes([
                reverse(Fixture.anna, "billing@app.example"),
                reverse(Fixture.anna, "Help@app.example"),
                reverse(Fixture.bob, "billing@app.example"),
                "annarelay2@relay.example",
            ]) == ["accepted", "550 5.7.26", "452 4.5.3", "accepted"])
    }

    @Test func reverseAddress_forged_isAnsweredAsUnproved() {
        let good = reverse(Fixture.anna, "billing@app.example")
        let forged = good.replacingOccurrence(of: "billing=", with: "payment=")
        #expect(codes([forged]) == ["550 5.7.26"])
        let unproved = fixture.play(
            from: "eve@evil.example", to: [good], message: "From: eve@evil.example\r\n\r\n"
        ).decision
        let answer = fixture.play(
            from: "x@y.example", to: [forged], message: "From: x@y.example\r\n\r\n")
        guard case .refuse(let refusal) = unproved.outcome else {
            Issue.record("an unproved reply was let through")
            return
        }
        #expect(answer.refusals[forged]?.reply == refusal.reply)
    }

    @Test func returnPath_expiredOrForged_isRefused() {
        let day = UInt64(Fixture.now / 86_400)
        func path(_ expiry: UInt64) -> String {
            fixture.engine.tokens.replyReturnPath(
                account: Fixture.anna.number, recipients: [], nonce: 1, expiryDay: expiry
            )
            .localPart + "@relay.example"
        }
        #expect(codes([path(day)]) == ["accepted"])
        #expect(codes([path(day - 1)]) == ["550 5.7.1"])
        // The last octet of its code differs.
        let local = path(day).prefix { $0 != "@" }
        let forged =
            local.dropLast() + (local.utf8.last == UInt8(ascii: "b") ? "c" : "b") + "@relay.example"
        #expect(
            codes([String(path(day).dropFirst(3)), String(forged)]) == ["550 5.1.1", "550 5.7.1"])
    }

    @Test func operatorMailbox_reached_usesTheNullSender() {
        let answer = fixture.play(
            from: "dmarc@big.example", to: ["Postmaster@relay.example", "abuse@relay.example"],
            message: "From: x@big.example\r\n\r\n")
        #expect(answer.refusals.isEmpty)
        #expect(
            answer.decision.modifications == [
                .changeSender("<>"), .deleteRecipient("<Postmaster@relay.example>"),
                .deleteRecipient("<abuse@relay.example>"),
                .addRecipient("<ops@operator.example>"),
            ])
    }

    @Test func operatorMailbox_noAddressSet_isDeferred() {
        let fixture = Fixture(
            evidence: AuthenticationEvidence(),
            settings: RelaySettings(relayDomains: ["relay.example"], authservID: "mx"))
        let answer = fixture.play(
            from: "a@b.example", to: ["postmaster@relay.example"],
            message: "From: a@b.example\r\n\r\n")
        #expect(answer.refusals["postmaster@relay.example"]?.reply.code == 451)
    }

    @Test func recipient_storeAway_isDeferred() {
        fixture.directory.goDown()
        #expect(codes(["annarelay2@relay.example"]) == ["451 4.3.0"])
    }

    @Test func recipient_overTheLimit_isDeferred() {
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx")
        settings.limits.recipients = 2
        let fixture = Fixture(evidence: AuthenticationEvidence(), settings: settings)
        let three = (0..<3).map { n in
            fixture.engine.tokens.reverse(
                account: Fixture.anna.number,
                correspondent: AddrSpec(localPart: "a\(n)", domain: "app.example")
            ).localPart + "@relay.example"
        }
        let answer = fixture.play(
            from: "anna@inbox.example", to: three, message: "From: anna@inbox.example\r\n\r\n")
        #expect(
            answer.refusals.map(\.value.reply.code) == [452] && answer.refusals[three[2]] != nil)
    }
}

extension String {
    func replacingOccurrence(of text: String, with other: String) -> String {
        guard let range = firstRange(of: text) else { return self }
        return String(self[..<range.lowerBound]) + other + String(self[range.upperBound...])
    }
}
