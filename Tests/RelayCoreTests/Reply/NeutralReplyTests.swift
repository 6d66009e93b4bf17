// Replies with a guess of the inbox in quoted or automatic text: the same for a right and a wrong
// guess.

import InternetMessage
import MailAuth
import MailTesting
import Support
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct NeutralReplyTests {
    /// The inbox, and a guess of its length.
    private static let (right, wrong) = ("anna.second@home.example", "jane.fourth@home.example")
    private static let own = "annarelay2@relay.example"
    private static let tokens = Fixture(evidence: AuthenticationEvidence()).engine.tokens

    private static func reverse(_ address: String, _ account: RelayAccount = Fixture.anna) -> String
    {
        tokens.reverse(account: account.number, correspondent: AddrSpec(envelope: address)!)
            .localPart
            + "@relay.example"
    }

    /// The team's copy of a reply: its code, and the outgoing header section and body.
    private static func sent(
        _ content: String, from sender: String = right, to: [String] = []
    ) -> String {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("home.example"))
        let recipients = [reverse("billing@app.example")] + to
        let text =
            "From: \(right)\r\nMessage-ID: <2@home.example>\r\nMIME-Version: 1.0\r\n\(content)"
        let answer = fixture.play(from: sender, to: recipients, message: text)
        guard case .relay = answer.decision.outcome else { return "\(answer.decision.outcome)" }
        var out = ModifiedMessage(
            header: HeaderSection(), body: Message.parse(Array(text.utf8)).body, sender: "",
            recipients: [])
        out.apply(answer.decision.modifications)
        return String(decoding: out.bytes, as: UTF8.self)
    }

    /// Plays a reply with the right and with a wrong guess in place of `GUESS` and `LOCAL`. The two
    /// results must not differ.
    private static func both(
        _ content: String, from sender: String = right,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> String {
        let answers = [right, wrong].map { guess in
            let local = String(guess.split(separator: "@")[0])
            return sent(
                content.replacing("GUESS", with: guess).replacing("LOCAL", with: local),
                from: sender
            )
            .replacing(guess, with: "GUESS").replacing(local, with: "LOCAL")
        }
        #expect(answers[0] == answers[1], sourceLocation: sourceLocation)
        return answers[1]
    }

    private static func plain(_ text: String) -> String {
        "Subject: Hello\r\nContent-Type: text/plain\r\n\r\n\(text)"
    }

    // MARK: Quotations

    @Test(arguments: [
        "GUESS", "jane LOCAL x", "LOCAL%40home.example", "=?utf-8?q?LOCAL=40home=2Eexample?=",
    ])
    func quotedGuess_ofEveryForm_saysNothing(form: String) {
        let text = Self.both(
            Self.plain(
                "Yes, as I said.\r\n\r\nOn Friday, 21 November 2025 06:00 Billing wrote:\r\n> Are you \(form)?\r\n> Yours\r\n"
            ))
        #expect(
            text.contains("Yes, as I said.") && text.contains("> Yours")
                && text.contains("> Are you"))
        let html = Self.both(
            "Content-Type: text/html\r\n\r\n<p>Yes</p><blockquote type=\"cite\"><p title=\"\(form)\">Are you \(form)?</p><!-- \(form) --></blockquote>\r\n"
        )
        #expect(html.contains("<p>Yes</p><blockquote type=\"cite\">"))
    }

    @Test func typedAddress_besideAQuotation_isReplaced() {
        let text = Self.both(Self.plain("I am \(Self.right).\r\n\r\n> You are GUESS.\r\n"))
        #expect(text.contains("I am \(Self.own).") && text.contains("> You are [address]."))
    }

    @Test func subject_withAGuess_isNeutral() {
        let text = Self.both(
            "Subject: Re: Order of GUESS and LOCAL\r\nContent-Type: text/plain\r\n\r\nYes\r\n")
        #expect(text.contains("Subject: Re: Order of [address] and LOCAL\r\n"))
    }

    /// One of two alternatives shows the start of the quotation, and the other has the same words.
    @Test func alternative_withoutTheFormOfTheOther_isQuotedAsAWhole() {
        let text = Self.both(
            "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nYes\r\nAre you GUESS?\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Yes</p><blockquote>Are you GUESS?</blockquote>\r\n--b--\r\n"
        )
        #expect(text.contains("Yes\r\nAre you [address]?"))
    }

    @Test func blankAlternative_hasNoVote() {
        let text = Self.sent(
            "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nI am \(Self.right)\r\n--b\r\nContent-Type: text/html\r\n\r\n<br>\r\n--b--\r\n"
        )
        #expect(text.contains("I am \(Self.own)"))
    }

    // MARK: Text written by a program

    @Test(arguments: [
        "Auto-Submitted: auto-replied", "X-Autoreply: yes", "Subject: Automatic reply: Order",
    ])
    func automaticMail_losesEveryAddress(field: String) {
        let text = Self.both(
            "\(field)\r\nContent-Type: text/plain\r\n\r\nYou wrote to GUESS; LOCAL is away. Ask bob@inbox.example.\r\n"
        )
        #expect(text.contains("You wrote to [address]; LOCAL is away. Ask [address]."))
    }

    @Test func textOutsideOfAllParts_isAPrograms() {
        let text = Self.both(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\nGUESS LOCAL\r\n--b\r\n\r\nHello\r\n--b--\r\nGUESS LOCAL\r\n"
        )
        #expect(text.contains("[address] LOCAL\r\n--b\r\n"))
    }

    @Test func answerOfACalendar_isRebuilt() {
        let team = Self.reverse("billing@app.example")
        let text = Self.both(
            "Subject: Accepted: LOCAL\r\nContent-Type: text/calendar; method=REPLY\r\n\r\nBEGIN:VCALENDAR\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\nUID:LOCAL-7\r\nDTSTAMP:20251121T060000Z\r\nORGANIZER;CN=GUESS:mailto:\(team)\r\nATTENDEE;CN=LOCAL;PARTSTAT=ACCEPTED:mailto:\(Self.right)\r\nX-GUESS:GUESS\r\nSUMMARY:For GUESS and LOCAL\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        )
        #expect(
            text.contains("UID:LOCAL-7\r\n")
                && text.contains("ORGANIZER:mailto:billing@app.example\r\n")
                && text.contains("ATTENDEE;PARTSTAT=ACCEPTED:mailto:\(Self.own)\r\n")
                && text.contains("SUMMARY:For [address] and LOCAL\r\n") && !text.contains("X-GUESS")
        )
    }

    // MARK: To and Cc

    /// The team writes its guess into Cc of a forward. A reply to all goes to its reverse address.
    @Test func ccOfAGuess_inAReplyToAll_goesBackLikeAnyOther() {
        let answers = [Self.right, Self.wrong].map { guess in
            let cc = Self.reverse(guess)
            return Self.sent(
                "To: \(Self.reverse("billing@app.example"))\r\nCc: \"A name\" <\(cc)>, GUESS <\(cc)>\r\nSubject: Hello\r\n\r\nWrite to \(cc) or others@x.example\r\n> \(cc) wrote:\r\n"
                    .replacing("GUESS", with: "\"\(guess)\""),
                to: [cc]
            ).replacing(guess, with: "GUESS")
        }
        #expect(answers[0] == answers[1])
        #expect(
            answers[0].contains("Cc: \"A name\" <GUESS>, GUESS\r\n")
                || answers[0].contains("Cc: A name <GUESS>, GUESS\r\n"))
        #expect(answers[0].contains("Write to GUESS or others@x.example\r\n> GUESS wrote:\r\n"))
    }

    // MARK: Bounds

    private static func others(_ count: Int) -> String {
        (0..<count).map { "p\($0)@x.example" }.joined(separator: ", ")
    }

    @Test func typedText_withMoreAddressesThanFour_losesEveryone() {
        let few = Self.sent(Self.plain("I am \(Self.right), with \(Self.others(3)).\r\n"))
        #expect(
            few.contains("I am \(Self.own), with p0@x.example, p1@x.example, p2@x.example.\r\n"),
            "\(few)")
        let many = Self.both(
            Self.plain("I am GUESS, with \(Self.others(4)), LOCAL and https://x.example/LOCAL.\r\n")
        )
        let marks = Array(repeating: "[address]", count: 5).joined(separator: ", ").replacing(
            "[address], [", with: "[address], with [", maxReplacements: 1)
        #expect(many.contains("I am \(marks), LOCAL and https://x.example/.\r\n"), "\(many)")
    }

    /// The addresses of all parts count together, in any encoding.
    @Test func typedParts_together_haveOneBound() {
        let encoded = String(
            decoding: Base64.encode(
                Array("GUESS p4@x.example".replacing("GUESS", with: Self.wrong).utf8)),
            as: UTF8.self)
        let text = Self.sent(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nI am \(Self.right), \(Self.others(3))\r\n--b\r\nContent-Transfer-Encoding: base64\r\n\r\n\(encoded)\r\n--b--\r\n"
        )
        #expect(text.contains("I am [address], [address], [address], [address]\r\n"), "\(text)")
    }

    @Test func typedText_withMoreWordsThanSixteen_keepsThemAll() {
        let few = Self.sent(
            Self.plain(
                "I am anna.second, and \((0..<15).map { "k\($0)xyzw" }.joined(separator: " "))\r\n")
        )
        #expect(few.contains("I am annarelay2, and k0xyzw"), "\(few)")
        let many = Self.both(
            Self.plain(
                "I am LOCAL, and \((0..<16).map { "k\($0)xyzw" }.joined(separator: " "))\r\n"))
        #expect(many.contains("I am LOCAL, and k0xyzw"), "\(many)")
    }

    /// The inbox in Cc, as the team guessed it, does not change the number of addresses that count.
    @Test func ccOfAGuess_besideManyTypedAddresses_countsNothing() {
        let answers = [Self.right, Self.wrong].map { guess in
            let cc = Self.reverse(guess)
            return Self.sent(
                "Cc: <\(cc)>\r\nSubject: Hello\r\n\r\nI am \(Self.right), not \(Self.others(4))\r\n",
                to: [cc]
            ).replacing(guess, with: "GUESS")
        }
        #expect(answers[0] == answers[1])
        #expect(
            answers[0].contains("Cc: GUESS\r\n")
                && answers[0].contains("I am [address], not [address], "), "\(answers[0])")
    }

    // MARK: Attached messages

    @Test(arguments: ["7bit", "base64"])
    func attachedMessageOfTheTeam_withGuessesEverywhere_saysNothing(encoding: String) {
        func reply(_ guess: String) -> String {
            let local = String(guess.split(separator: "@")[0])
            let inner =
                "From: \"Billing of \(guess)\" <\(Self.reverse("billing@app.example"))>\r\nTo: Anna <\(Self.own)>\r\nCc: \(local) <\(guess)>\r\nReply-To: \(local)=home.example@app.example\r\nSubject: \(guess) \(local)\r\nX-Guess: \(guess)\r\nContent-Type: multipart/mixed; boundary=\"=_\(local)\"; x=\(local)\r\n\r\n\(local)\r\n--=_\(local)\r\nContent-Type: text/plain; name=\"\(guess).txt\"\r\nContent-Description: \(local)\r\n\r\nAre you \(guess), \(local)?\r\n--=_\(local)--\r\n"
            let body =
                encoding == "base64"
                ? String(decoding: Base64.encode(Array(inner.utf8)), as: UTF8.self) : inner
            return
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee \(Self.right)\r\n--b\r\nContent-Type: message/rfc822\r\nContent-Transfer-Encoding: \(encoding)\r\n\r\n\(body)\r\n--b--\r\n"
        }
        func shown(_ text: String) -> String {
            guard encoding == "base64", let start = text.range(of: "base64\r\n\r\n"),
                let end = text[start.upperBound...].range(of: "\r\n--b--")
            else { return text }
            let inner = Base64.decode(Array(text[start.upperBound..<end.lowerBound].utf8)[...])
                .bytes
            return text[..<start.lowerBound] + String(decoding: inner, as: UTF8.self)
        }
        let answers = [Self.right, Self.wrong].map { guess in
            let local = String(guess.split(separator: "@")[0])
            return shown(Self.sent(reply(guess))).replacing(guess, with: "GUESS").replacing(
                local, with: "LOCAL")
        }
        #expect(answers[0] == answers[1])
        let text = answers[1]
        #expect(
            text.contains("See \(Self.own)") && text.contains("Are you [address], LOCAL?"),
            "\(text)")
        #expect(text.contains("From: billing@app.example\r\nTo: \(Self.own)\r\n"), "\(text)")
        #expect(
            text.contains("Subject: [address] LOCAL\r\n") && !text.contains("X-Guess"), "\(text)")
    }

    /// A message of another person, which never passed the relay.
    @Test func attachedMessageOfAnother_keepsTheFieldsOfLetters() {
        let text = Self.sent(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nReceived: from mx.home.example\r\nX-Sender: x\r\nFrom: Bob <bob@inbox.example>\r\nTo: \(Self.right)\r\nSubject: Lunch\r\n\r\nWith bob@inbox.example and \(Self.right)\r\n--b--\r\n"
        )
        #expect(
            text.contains(
                "\r\n\r\nFrom: Bob <bob@inbox.example>\r\nTo: \(Self.own)\r\nSubject: Lunch\r\n\r\nWith bob@inbox.example and \(Self.own)\r\n"
            ), "\(text)")
    }

    @Test(arguments: [
        "application/octet-stream", "application/octet-stream; name=a.eml",
        "application/octet-stream; name=a.txt",
    ])
    func messageOfTheTeam_underTheTypeOfAFile_isNeutral(type: String) {
        let text = Self.both(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee\r\n--b\r\nContent-Type: \(type)\r\n\r\nFrom: x@app.example\r\nTo: \(Self.own)\r\nSubject: GUESS\r\n\r\nAre you LOCAL?\r\n--b--\r\n"
        )
        #expect(text.contains("Subject: [address]\r\n\r\nAre you LOCAL?"), "\(text)")
    }

    // MARK: Text that cannot be written again

    @Test(arguments: [
        "Content-Transfer-Encoding: quoted-printable\r\n\r\nYes\r\n\r\n> LOCAL=@home.example =4 a@b.example\r\n",
        "Content-Transfer-Encoding: base64\r\n\r\nWWVzDQoNCj4gYUBiLmV4YW1wbGUNCg=\r\nQ!!Q==\r\n",
    ]) func damagedQuotation_isNeverAReasonToRefuse(part: String) {
        let text = Self.both("Content-Type: text/plain\r\n" + part)
        #expect(text.hasPrefix("From: "), "\(text)")
    }

    @Test func quotationInAnUnknownCharset_goes() {
        let text = Self.both(
            "Content-Type: text/plain; charset=x-none\r\n\r\nYes\r\n\r\nOn Friday 21 November 2025, Billing wrote:\r\n> \u{e9}\u{e9} GUESS\r\n"
        )
        #expect(text.contains("Yes\r\n\r\n[quotation removed]\r\n"), "\(text)")
    }

    @Test func blockOfPGP_inAQuotation_isNeverAReasonToRefuse() {
        let text = Self.both(
            Self.plain(
                "Yes\r\n\r\n-----Original Message-----\r\nFrom: Billing <\(Self.reverse("billing@app.example"))>\r\nSent: Friday, 21 November 2025\r\n\r\n-----BEGIN PGP MESSAGE-----\r\n\r\nhQ==\r\n-----END PGP MESSAGE-----\r\nGUESS LOCAL\r\n"
            ))
        #expect(text.contains("Yes\r\n") && text.contains("[address] LOCAL"), "\(text)")
    }
}
