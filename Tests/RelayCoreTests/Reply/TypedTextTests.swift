// The user's typed text stays hidden, even if the team wrote the same text elsewhere.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct TypedTextTests {
    private static let guess = "anna@inbox.example"

    /// A forward of the team's, as received by the inbox.
    private static func forward(_ content: String) -> (forward: ModifiedMessage, fixture: Fixture) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let text =
            "From: billing@app.example\r\nTo: annarelay2@relay.example\r\nSubject: Order\r\nMessage-ID: <1@app.example>\r\nMIME-Version: 1.0\r\n\(content)"
        let sent = fixture.play(
            from: "bounces@app.example", to: ["annarelay2@relay.example"], message: text)
        let parsed = Message.parse(Array(text.utf8))
        var message = ModifiedMessage(
            header: parsed.header, body: parsed.body, sender: "bounces@app.example", recipients: [])
        message.apply(sent.decision.modifications)
        return (message, fixture)
    }

    /// The team's copy of an answer.
    private static func answer(
        to content: String, with reply: (ModifiedMessage) -> String
    ) throws -> String {
        let (forward, sent) = forward(content)
        let engine = RelayEngine(
            settings: sent.engine.settings, keys: Fixture.keys, directory: sent.directory,
            authenticator: TestAuthenticator(
                evidence: AuthenticationEvidence.signed("inbox.example")),
            replyMemory: ReplyMemory(limit: 1 << 28),
            randomness: { Array(repeating: 5, count: $0) })!
        let fixture = Fixture(directory: sent.directory, engine: engine)
        let header = HeaderSection(forward.header)
        let author = try #require(AddressList.parse(header.first("From")!.rawValue).mailboxes.first)
            .addrSpec.wireForm
        let text =
            "From: anna@inbox.example\r\nTo: \(author)\r\nSubject: Hello\r\nMessage-ID: <2@inbox.example>\r\nMIME-Version: 1.0\r\n\(reply(forward))"
        let answer = fixture.play(from: "anna@inbox.example", to: [author], message: text)
        #expect(answer.decision.outcome == .relay, "\(answer)")
        let parsed = Message.parse(Array(text.utf8))
        var out = ModifiedMessage(
            header: HeaderSection(), body: parsed.body, sender: "", recipients: [])
        out.apply(answer.decision.modifications)
        return String(decoding: out.bytes, as: UTF8.self)
    }

    private static let bare = "Content-Type: text/plain\r\n\r\n\(guess)\r\n"

    /// The line that begins a signed text looks like one above a quotation.
    @Test func typedText_signedInline_hidesTheInbox() throws {
        let sent = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/plain\r\n\r\n-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA512\r\n\r\nHello, my own address is \(Self.guess) by the way.\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\niQ==\r\n-----END PGP SIGNATURE-----\r\n"
        }
        #expect(!sent.contains(Self.guess), "\(sent)")
        let keyed = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/plain\r\n\r\n-----BEGIN PGP PUBLIC KEY BLOCK-----\r\n\r\niQ==\r\n-----END PGP PUBLIC KEY BLOCK-----\r\n\r\nHello, my own address is \(Self.guess) by the way.\r\n"
        }
        #expect(!keyed.contains(Self.guess), "\(keyed)")
    }

    /// A list of the user's contact details looks like a header block.
    @Test func typedText_contactList_hidesTheInbox() throws {
        for end in [
            "Mail: \(Self.guess)\r\n\r\nRegards", "Fax: 0170 54321\r\n\r\nor \(Self.guess)",
        ] {
            let sent = try Self.answer(to: "Comments: \(Self.guess)\r\n" + Self.bare) { _ in
                "Content-Type: text/plain\r\n\r\nHello\r\n\r\nName: Anna\r\nPhone: 0170 12345\r\n\(end)\r\n"
            }
            #expect(!sent.contains(Self.guess), "\(sent)")
        }
    }

    /// An answer (RFC 5546) is rebuilt, without either.
    @Test(arguments: ["PUBLISH", "REPLY"]) func typedText_ownCalendar_hidesTheInbox(
        method: String
    ) throws {
        let sent = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/calendar; method=\(method)\r\n\r\nBEGIN:VCALENDAR\r\nMETHOD:\(method)\r\nDESCRIPTION:\(Self.guess)\r\nX-WR-CALNAME:\(Self.guess)\r\nEND:VCALENDAR\r\n"
        }
        #expect(!sent.contains(Self.guess) && sent.contains("METHOD:\(method)"), "\(sent)")
        #expect(
            sent.contains("X-WR-CALNAME:annarelay2@relay.example") == (method == "PUBLISH"),
            "\(sent)")
    }

    /// A block without its end above a quoted one: the typed text between them must not be removed
    /// silently.
    @Test func signatureBlock_withoutItsEnd_isRefused() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "billing", domain: "app.example"))
        let text =
            "From: anna@inbox.example\r\nContent-Type: text/plain\r\n\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\nThe order is wrong.\r\n> -----END PGP SIGNATURE-----\r\n"
        let answer = fixture.play(
            from: "anna@inbox.example", to: ["\(reverse.localPart)@relay.example"], message: text)
        guard case .refuse(let refusal) = answer.decision.outcome else {
            Issue.record("\(answer.decision.outcome)")
            return
        }
        #expect(refusal.reason.code == .signedReply)
    }

    /// A card does not answer anything.
    @Test func typedText_ownCard_hidesTheInbox() throws {
        let sent = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/vcard\r\n\r\nBEGIN:VCARD\r\nVERSION:3.0\r\nFN:Anna\r\nEMAIL:\(Self.guess)\r\nEND:VCARD\r\n"
        }
        #expect(!sent.contains(Self.guess), "\(sent)")
    }
}
