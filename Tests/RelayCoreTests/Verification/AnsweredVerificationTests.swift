// Replies to verification messages: they confirm nothing and are not relayed, and their author gets
// a message about it once a day.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct AnsweredVerificationTests {
    private static let day = UInt64(Fixture.now / 86_400)
    private static let token = AnswerToken(number: 77, nonce: 0xABCDEF0123, expiryDay: day + 1)
    private static let inbox = AddrSpec(localPart: "anna", domain: "inbox.example")

    private struct Notice: AnsweredVerificationNotice {
        let relayDomain = "relay.example"
        func message(
            to author: AddrSpec, language: String?, id: String, answered: [UInt8]?, now: Int64
        ) -> (header: HeaderSection, body: [UInt8]) {
            let about = answered.map { String(decoding: $0, as: UTF8.self) } ?? "none"
            return (
                HeaderSection([HeaderField("Subject", "told \(author.wireForm) about \(about)")]),
                Array("type the code\r\n".utf8)
            )
        }
    }

    private func fixture(
        _ evidence: AuthenticationEvidence = AuthenticationEvidence.signed("inbox.example")
    ) -> Fixture {
        let directory = MemoryDirectory([Fixture.anna])
        let engine = RelayEngine(
            settings: RelaySettings(
                relayDomains: ["relay.example"], authservID: "mx.relay.example"),
            keys: Fixture.keys,
            directory: directory, authenticator: TestAuthenticator(evidence: evidence),
            answeredNotice: Notice(),
            replyMemory: ReplyMemory(limit: 1 << 20), randomness: { Array(repeating: 5, count: $0) }
        )!
        let fixture = Fixture(directory: directory, engine: engine)
        fixture.directory.begin(Self.token, inbox: Self.inbox)
        return fixture
    }

    private func address(_ fixture: Fixture, _ token: AnswerToken = token) -> String {
        fixture.engine.tokens.answer(token) + "@relay.example"
    }

    private func message(
        from author: String = "Anna <anna@inbox.example>", _ more: String = ""
    ) -> String {
        "From: \(author)\r\n\(more)To: x@relay.example\r\nSubject: Re: code\r\n\r\nyes\r\n"
    }

    private func code(_ answer: Fixture.Response) -> String {
        let refusal: Refusal? =
            answer.refusals.values.first
            ?? { if case .refuse(let refusal) = answer.decision.outcome { refusal } else { nil } }()
        return refusal.map { "\($0.reply.code) \($0.reply.enhanced)" }
            ?? "\(answer.decision.outcome)"
    }

    @Test func answerToken_changedCharacter_isNotRead() {
        let mint = TokenMint(keys: Fixture.keys)
        let local = mint.answer(Self.token)
        #expect(local.count <= 64 && mint.read(local.uppercased()) == .answer(Self.token))
        for index in local.indices {
            var forged = local
            forged.replaceSubrange(index...index, with: local[index] == "b" ? "d" : "b")
            if case .answer = mint.read(forged) { Issue.record("\(forged) reads as an answer") }
        }
    }

    @Test func reply_provedOfTheInbox_becomesTheNotice() {
        let fixture = fixture()
        let recipient = address(fixture)
        let text = message(from: "Anna <anna@inbox.example>", "Message-ID: <a@home.example>\r\n")
        let answer = fixture.play(from: "anna@inbox.example", to: [recipient], message: text)
        #expect(
            answer.decision.outcome == .relay
                && answer.decision.reasons.map(\.code) == [.answerTold])
        let parsed = Message.parse(Array(text.utf8))
        var out = ModifiedMessage(
            header: parsed.header, body: parsed.body, sender: "anna@inbox.example",
            recipients: [recipient])
        out.apply(answer.decision.modifications)
        #expect(
            String(decoding: out.bytes, as: UTF8.self)
                == "Subject: told anna@inbox.example about a@home.example\r\n\r\ntype the code\r\n")
        #expect(out.sender.isEmpty && out.recipients == ["anna@inbox.example"])
    }

    @Test func reply_provedBySPF_becomesTheNotice() {
        let fixture = fixture(
            AuthenticationEvidence(spf: [
                SPFFinding(result: .pass, identity: .mailFrom, domain: "inbox.example", reason: "")
            ]))
        let answer = fixture.play(
            from: "anna@inbox.example", to: [address(fixture)], message: message())
        #expect(answer.decision.reasons.map(\.code) == [.answerTold])
    }

    @Test func reply_secondOfTheDay_isRefused() {
        let fixture = fixture()
        _ = fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: message())
        #expect(
            code(
                fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: message())
            ) == "550 5.7.1")
    }

    @Test func reply_notProvedOfTheInbox_isRefusedAndNoOneIsTold() {
        for (evidence, text) in [
            (AuthenticationEvidence(), message()),
            (AuthenticationEvidence.signed("evil.example"), message()),
            (AuthenticationEvidence.signed("inbox.example"), message(from: "bob@inbox.example")),
            (
                AuthenticationEvidence.signed("inbox.example"),
                message(from: "anna@inbox.example, bob@inbox.example")
            ),
            (AuthenticationEvidence.signed("inbox.example"), "Subject: x\r\n\r\n"),
        ] {
            let fixture = fixture(evidence)
            #expect(
                code(
                    fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: text))
                    == "550 5.7.26")
        }
    }

    /// RFC 3834: an automatic message never answers another.
    @Test func reply_ofAProgram_isDiscardedAndNoOneIsTold() {
        for (sender, field) in [
            ("", ""), ("anna@inbox.example", "Auto-Submitted: auto-replied\r\n"),
            ("anna@inbox.example", "Precedence: bulk\r\n"),
            (
                "anna@inbox.example",
                "Content-Type: multipart/report; report-type=delivery-status\r\n"
            ),
            ("anna@inbox.example", "X-Auto-Reply: yes\r\n"),
            ("anna@inbox.example", "X-Autogenerated: Reply\r\n"),
        ] {
            let fixture = fixture()
            let answer = fixture.play(from: sender, to: [address(fixture)], message: message(field))
            #expect(
                answer.decision.outcome == .discard
                    && answer.decision.reasons.map(\.code) == [.automaticAnswer])
        }
    }

    private func message(_ more: String) -> String { message(from: "anna@inbox.example", more) }

    @Test func reply_expiredOrForgedAddress_isUnknown() {
        let fixture = fixture()
        let expired = AnswerToken(number: 77, nonce: 1, expiryDay: Self.day - 1)
        var forged = address(fixture)
        forged.replaceSubrange(forged.startIndex...forged.startIndex, with: "z")
        for recipient in [address(fixture, expired), forged] {
            #expect(
                code(fixture.play(from: "anna@inbox.example", to: [recipient], message: message()))
                    == "550 5.1.1")
        }
    }

    @Test func reply_besideOtherRecipients_defersThem() {
        let fixture = fixture()
        let other = address(fixture, AnswerToken(number: 78, nonce: 1, expiryDay: Self.day))
        let answer = fixture.play(
            from: "anna@inbox.example",
            to: [address(fixture), "annarelay2@relay.example", other, address(fixture)],
            message: message())
        #expect(
            answer.refusals.mapValues { $0.reply.enhanced } == [
                "annarelay2@relay.example": "4.5.3", other: "4.5.3",
            ])
    }

    @Test func reply_storeAway_isDeferred() {
        let fixture = fixture()
        fixture.directory.goDown()
        #expect(
            code(
                fixture.play(from: "anna@inbox.example", to: [address(fixture)], message: message())
            ) == "451 4.3.0")
    }
}
