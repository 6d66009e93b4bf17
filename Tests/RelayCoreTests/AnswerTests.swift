// Answers to verification messages: who confirms an inbox by answering, and that nothing goes any further.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct AnswerTests {
    private static let day = UInt64(Fixture.now / 86_400)
    private static let token = AnswerToken(number: 77, nonce: 0xABCDEF0123, expiryDay: day + 1)
    private static let inbox = AddrSpec(localPart: "anna", domain: "inbox.example")

    private func fixture(_ evidence: AuthenticationEvidence = AuthenticationEvidence.signed("inbox.example")) -> Fixture {
        let fixture = Fixture(evidence: evidence)
        fixture.directory.begin(Self.token, inbox: Self.inbox)
        return fixture
    }

    private func address(_ fixture: Fixture, _ token: AnswerToken = token) -> String {
        fixture.engine.tokens.answer(token) + "@relay.example"
    }

    private func message(from author: String = "Anna <anna@inbox.example>", _ more: String = "") -> String {
        "From: \(author)\r\n\(more)To: x@relay.example\r\nSubject: Re: code\r\n\r\nyes\r\n"
    }

    private func code(_ answer: Fixture.Response) -> String {
        let refusal: Refusal? =
            answer.refusals.values.first ?? { if case .refuse(let refusal) = answer.decision.outcome { refusal } else { nil } }()
        return refusal.map { "\($0.reply.code) \($0.reply.enhanced)" } ?? "\(answer.decision.outcome)"
    }

    @Test func theTokenReadsBackInAnyLetterCaseAndNoCharacterOfItCanBeChanged() {
        let mint = TokenMint(keys: Fixture.keys)
        let local = mint.answer(Self.token)
        #expect(local.count <= 64 && mint.read(local.uppercased()) == .answer(Self.token))
        for index in local.indices {
            var forged = local
            forged.replaceSubrange(index...index, with: local[index] == "b" ? "d" : "b")
            if case .answer = mint.read(forged) { Issue.record("\(forged) reads as an answer") }
        }
    }

    @Test func anAnswerOfTheInboxConfirmsItAndGoesNoFurther() {
        let fixture = fixture()
        let answer = fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: message())
        #expect(answer.decision.outcome == .discard && answer.decision.modifications.isEmpty)
        #expect(answer.decision.reasons.map(\.code) == ["inbox-confirmed"])
        #expect(fixture.directory.confirmed == [Self.token])
    }

    @Test func spfOfTheAuthorsDomainIsProofEnough() {
        let fixture = fixture(
            AuthenticationEvidence(spf: [SPFFinding(result: .pass, identity: .mailFrom, domain: "inbox.example", reason: "")]))
        _ = fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: message())
        #expect(fixture.directory.confirmed == [Self.token])
    }

    @Test func noneButTheInboxConfirms() {
        for (evidence, text) in [
            (AuthenticationEvidence(), message()),
            (AuthenticationEvidence.signed("evil.example"), message()),
            (AuthenticationEvidence.signed("inbox.example"), message(from: "bob@inbox.example")),
            (AuthenticationEvidence.signed("inbox.example"), message(from: "anna@inbox.example, bob@inbox.example")),
            (AuthenticationEvidence.signed("inbox.example"), "Subject: x\r\n\r\n"),
        ] {
            let fixture = fixture(evidence)
            #expect(code(fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: text)) == "550 5.7.26")
            #expect(fixture.directory.confirmed.isEmpty)
        }
    }

    /// A vacation note would have confirmed the inbox of someone who never looked at it.
    @Test func programsThatAnswerConfirmNothing() {
        for (sender, field) in [
            ("", ""), ("anna@inbox.example", "Auto-Submitted: auto-replied\r\n"), ("anna@inbox.example", "Precedence: bulk\r\n"),
            ("anna@inbox.example", "Content-Type: multipart/report; report-type=delivery-status\r\n"),
        ] {
            let fixture = fixture()
            let answer = fixture.play(from: sender, to: [address(fixture)], message: message(field))
            #expect(answer.decision.outcome == .discard && answer.decision.reasons.map(\.code) == ["automatic-answer"])
            #expect(fixture.directory.confirmed.isEmpty)
        }
    }

    private func message(_ more: String) -> String { message(from: "anna@inbox.example", more) }

    @Test func expiredAndForgedAddressesAreUnknown() {
        let fixture = fixture()
        let expired = AnswerToken(number: 77, nonce: 1, expiryDay: Self.day - 1)
        var forged = address(fixture)
        forged.replaceSubrange(forged.startIndex...forged.startIndex, with: "z")
        for recipient in [address(fixture, expired), forged] {
            #expect(code(fixture.play(from: "anna@inbox.example", to: [recipient], message: message())) == "550 5.1.1")
        }
    }

    @Test func anAnswerSharesNoTransactionWithOtherMail() {
        let fixture = fixture()
        let other = address(fixture, AnswerToken(number: 78, nonce: 1, expiryDay: Self.day))
        let answer = fixture.play(
            from: "anna@inbox.example", to: [address(fixture), "annarelay2@relay.example", other, address(fixture)],
            message: message())
        #expect(answer.refusals.mapValues { $0.reply.enhanced } == ["annarelay2@relay.example": "4.5.3", other: "4.5.3"])
    }

    @Test func whereTheStoreIsAwayTheAnswerWaits() {
        let fixture = fixture()
        fixture.directory.goDown()
        #expect(code(fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: message())) == "451 4.3.0")
    }
}
