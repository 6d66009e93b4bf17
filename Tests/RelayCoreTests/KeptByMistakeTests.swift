// What the user wrote, or the relay wrote for the user, stays hidden although the team wrote the same somewhere else.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct KeptByMistakeTests {
    private static let guess = "anna@inbox.example"

    /// A forward of the team's, as it reaches the inbox.
    private static func forward(_ content: String) -> (forward: ModifiedMessage, fixture: Fixture) {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let text =
            "From: billing@app.example\r\nTo: annarelay2@relay.example\r\nSubject: Order\r\nMessage-ID: <1@app.example>\r\nMIME-Version: 1.0\r\n\(content)"
        let sent = fixture.play(from: "bounces@app.example", to: ["annarelay2@relay.example"], message: text)
        let parsed = Message.parse(Array(text.utf8))
        var message = ModifiedMessage(header: parsed.header, body: parsed.body, sender: "bounces@app.example", recipients: [])
        message.apply(sent.decision.modifications)
        return (message, fixture)
    }

    /// What the team gets of an answer.
    private static func answer(
        to content: String, subject: String = "Hello", counted: (MemoryDirectory) -> Void = { _ in },
        with reply: (ModifiedMessage) -> String
    ) throws -> String {
        let (forward, sent) = forward(content)
        let engine = RelayEngine(
            settings: sent.engine.settings, keys: Fixture.keys, directory: sent.directory,
            authenticator: TestAuthenticator(evidence: AuthenticationEvidence.signed("inbox.example")),
            replyMemory: ReplyMemory(limit: 1 << 28),
            randomness: { Array(repeating: 5, count: $0) })!
        let fixture = Fixture(directory: sent.directory, engine: engine)
        let header = HeaderSection(forward.header)
        let author = try #require(AddressList.parse(header.first("From")!.rawValue).mailboxes.first).addrSpec.wireForm
        let text =
            "From: anna@inbox.example\r\nTo: \(author)\r\nSubject: \(subject)\r\nMessage-ID: <2@inbox.example>\r\nMIME-Version: 1.0\r\n\(reply(forward))"
        let answer = fixture.play(from: "anna@inbox.example", to: [author], message: text)
        #expect(answer.decision.outcome == .relay, "\(answer)")
        counted(sent.directory)
        let parsed = Message.parse(Array(text.utf8))
        var out = ModifiedMessage(header: HeaderSection(), body: parsed.body, sender: "", recipients: [])
        out.apply(answer.decision.modifications)
        return String(decoding: out.bytes, as: UTF8.self)
    }

    private static let bare = "Content-Type: text/plain\r\n\r\n\(guess)\r\n"

    /// The line that begins a signed text read like one above a quotation.
    @Test func textThatIsSignedWithinItselfIsTyped() throws {
        let sent = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/plain\r\n\r\n-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA512\r\n\r\nHello, my own address is \(Self.guess) by the way.\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\niQ==\r\n-----END PGP SIGNATURE-----\r\n"
        }
        #expect(!sent.contains(Self.guess), "\(sent)")
        let keyed = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/plain\r\n\r\n-----BEGIN PGP PUBLIC KEY BLOCK-----\r\n\r\niQ==\r\n-----END PGP PUBLIC KEY BLOCK-----\r\n\r\nHello, my own address is \(Self.guess) by the way.\r\n"
        }
        #expect(!keyed.contains(Self.guess), "\(keyed)")
    }

    /// The relay put the inbox there, for the user's calendar.
    @Test(arguments: ["7bit", "base64"], ["text/calendar; method=REQUEST", "text/plain; name=invite.ics"])
    func theInboxInACalendarOfAnAttachedForwardIsHidden(encoding: String, type: String) throws {
        let calendar =
            "Content-Type: \(type)\r\n\r\nBEGIN:VCALENDAR\r\nDESCRIPTION:Are you \(Self.guess)?\r\nORGANIZER:mailto:billing@app.example\r\nATTENDEE:mailto:annarelay2@relay.example\r\nEND:VCALENDAR\r\n"
        let sent = try Self.answer(to: calendar) { forward in
            let message = forward.bytes
            #expect(String(decoding: message, as: UTF8.self).contains("ATTENDEE:mailto:\(Self.guess)"))
            let body = encoding == "base64" ? Base64.encode(message) : message
            return
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee\r\n--b\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: \(encoding)\r\n\r\n"
                + String(decoding: body, as: UTF8.self) + "\r\n--b--\r\n"
        }
        let shown =
            encoding == "base64"
            ? String(
                decoding: Base64.decode(Array(sent.components(before: "\r\n--b--", after: "base64\r\n\r\n").utf8)[...]).bytes,
                as: UTF8.self) : sent
        #expect(shown.contains("Are you \(Self.guess)?"), "\(shown)")
        #expect(
            !shown.contains("ATTENDEE:mailto:\(Self.guess)") && shown.contains("ATTENDEE:mailto:annarelay2@relay.example"),
            "\(shown)")
    }

    /// A list of ways to reach the user reads like a header block.
    @Test func aListOfTheUsersIsNoHeaderBlock() throws {
        for end in ["Mail: \(Self.guess)\r\n\r\nRegards", "Fax: 0170 54321\r\n\r\nor \(Self.guess)"] {
            let sent = try Self.answer(to: "Comments: \(Self.guess)\r\n" + Self.bare) { _ in
                "Content-Type: text/plain\r\n\r\nHello\r\n\r\nName: Anna\r\nPhone: 0170 12345\r\n\(end)\r\n"
            }
            #expect(!sent.contains(Self.guess), "\(sent)")
        }
    }

    /// Only an answer (RFC 5546) repeats what the team wrote.
    @Test(arguments: ["PUBLISH", "REPLY"]) func theUsersOwnCalendarIsTyped(method: String) throws {
        let sent = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/calendar; method=\(method)\r\n\r\nBEGIN:VCALENDAR\r\nMETHOD:\(method)\r\nDESCRIPTION:\(Self.guess)\r\nX-WR-CALNAME:\(Self.guess)\r\nEND:VCALENDAR\r\n"
        }
        #expect(sent.contains("DESCRIPTION:\(Self.guess)") == (method == "REPLY"), "\(sent)")
        #expect(!sent.contains("X-WR-CALNAME:\(Self.guess)"), "\(sent)")
    }

    /// A block without its end above a quoted one: what was typed between them went without a word.
    @Test func aBlockWithoutItsEndTakesNoTextWithIt() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let reverse = fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: AddrSpec(localPart: "billing", domain: "app.example"))
        let text =
            "From: anna@inbox.example\r\nContent-Type: text/plain\r\n\r\n-----BEGIN PGP SIGNATURE-----\r\n\r\nThe order is wrong.\r\n> -----END PGP SIGNATURE-----\r\n"
        let answer = fixture.play(from: "anna@inbox.example", to: ["\(reverse.localPart)@relay.example"], message: text)
        guard case .refuse(let refusal) = answer.decision.outcome else {
            Issue.record("\(answer.decision.outcome)")
            return
        }
        #expect(refusal.reason.code == "signed-reply")
    }

    /// Any colon made the rest of a Subject known, although the user had typed all of it.
    @Test(arguments: [
        ("My address is: ", "", false), ("E-Mail: ", "", false), ("Re: write to: ", "", false), ("Re: ", "", true),
        ("AW: Re[2]: ", "", true),
        ("Doorgestuurd: ", "", true), ("Ответ: ", "", true), ("Automatic reply: ", "Auto-Submitted: auto-replied\r\n", true),
    ]) func onlyAPrefixMakesTheRestOfASubjectKnown(prefix: String, field: String, stays: Bool) throws {
        let sent = try Self.answer(to: "Comments: \(Self.guess)\r\n" + Self.bare, subject: prefix + Self.guess) { _ in
            "\(field)Content-Type: text/plain\r\n\r\nHello\r\n"
        }
        #expect(sent.contains(Self.guess) == stays, "\(sent)")
    }

    /// The same of a field in a header block.
    @Test(arguments: [("my address is: ", false), ("Re: ", true), ("<i>AW: </i>Re: ", true)])
    func onlyAPrefixMakesTheRestOfAFieldKnown(prefix: String, stays: Bool) throws {
        let sent = try Self.answer(to: "Comments: \(Self.guess)\r\n" + Self.bare) { forward in
            let author = String(decoding: HeaderSection(forward.header).first("From")!.rawValue, as: UTF8.self).replacing(
                "<", with: "&lt;")
            return
                "Content-Type: text/html\r\n\r\n<p>Hello</p><div><b>From:</b>\(author)<br><b>Sent:</b> Friday, 21 November 2025 06:00<br><b>Subject:</b> \(prefix)\(Self.guess)</div><p>Text</p>\r\n"
        }
        #expect(sent.contains(Self.guess) == stays, "\(sent)")
    }

    /// One parameter that stays kept the rest of the field from being searched.
    @Test(arguments: ["Content-Disposition: attachment; filename", "Content-Type: text/plain; name"])
    func whatStandsBesideAParameterThatStaysIsHidden(field: String) throws {
        let content =
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\(field)=\"\(Self.guess).txt\"\r\n\r\nText\r\n--b--\r\n"
        for (value, stays) in [
            ("\"\(Self.guess).txt\"", true), ("\(Self.guess).txt", true), ("\"\(Self.guess).txt\" (\(Self.guess))", false),
            ("\(Self.guess).txt; x=y (\(Self.guess))", false), ("\(Self.guess).txt(\(Self.guess))", false),
        ] {
            let sent = try Self.answer(to: content) { _ in
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHello\r\n--b\r\n\(field)=\(value)\r\n\r\nText\r\n--b--\r\n"
            }
            #expect(sent.contains("\(field)=\(value)\r\n") == stays, "\(sent)")
            #expect(sent.components(separatedBy: Self.guess).count == 2 && sent.contains("\(Self.guess).txt"), "\(sent)")
        }
    }

    /// The relay writes nothing into what is signed: an attendee there is the team's guess.
    @Test(arguments: [guess, "jane@inbox.example"]) func anAttendeeInASignedForwardStays(attendee: String) throws {
        let calendar =
            "Content-Type: multipart/signed; boundary=s; protocol=\"application/pkcs7-signature\"\r\n\r\n--s\r\nContent-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR\r\nATTENDEE:mailto:\(attendee)\r\nEND:VCALENDAR\r\n--s\r\nContent-Type: application/pkcs7-signature\r\n\r\nxx\r\n--s--\r\n"
        let sent = try Self.answer(to: calendar) { forward in
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n"
                + String(decoding: forward.bytes, as: UTF8.self) + "\r\n--b--\r\n"
        }
        #expect(sent.contains("ATTENDEE:mailto:\(attendee)"), "\(sent)")
    }

    /// It was hidden without being counted.
    @Test func aHiddenFieldOfAHeaderBlockIsCounted() throws {
        _ = try Self.answer(to: "Comments: \(Self.guess)\r\n" + Self.bare, counted: { #expect($0.counted(.quoteHidden) == 1) }) {
            _ in
            "Content-Type: text/plain\r\n\r\nHello\r\n\r\nName: Anna\r\nPhone: 0170 12345\r\nMail: \(Self.guess)\r\n\r\nRegards\r\n"
        }
    }

    /// A card is not an answer to anything.
    @Test func theUsersOwnCardIsTyped() throws {
        let sent = try Self.answer(to: Self.bare) { _ in
            "Content-Type: text/vcard\r\n\r\nBEGIN:VCARD\r\nVERSION:3.0\r\nFN:Anna\r\nEMAIL:\(Self.guess)\r\nEND:VCARD\r\n"
        }
        #expect(!sent.contains(Self.guess), "\(sent)")
    }
}

extension String {
    fileprivate func components(before end: String, after start: String) -> String {
        guard let from = range(of: start)?.upperBound, let to = self[from...].range(of: end)?.lowerBound else { return "" }
        return String(self[from..<to])
    }
}
