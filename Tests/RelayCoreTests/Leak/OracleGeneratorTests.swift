// Forwards with a guess of the user's addresses planted anywhere, once right and once wrong, and everything that can come back:
// what the team gets must be the same, but for the guess itself, and hold nothing of what the user wrote of the inbox.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct OracleGeneratorTests {
    /// `POSTERN_ORACLE=SEED:COUNT` makes other pairs, and more of them.
    private static let (seed, count): (String, Int) = {
        let parts = (ProcessInfo.processInfo.environment["POSTERN_ORACLE"] ?? "postern:3000").split(separator: ":").map(
            String.init)
        return (parts[0], parts.count > 1 ? Int(parts[1]) ?? 3_000 : 3_000)
    }()

    private static let inboxes = ["max.k77x@home.example", "max.second42@work.example"]
    private static let max = Fixture.account(1, "annarelay2", team: "app.example", inboxes: inboxes)
    private static let clientAddress = "198.51.100.77"

    /// What a team may want to know, as it is and as it is not; of the same length.
    private static let guesses: [(right: String, wrong: String)] = [
        ("max.k77x@home.example", "moz.q41p@home.example"), ("max.second42@work.example", "moz.second31@work.example"),
        ("MAX.K77X@HOME.EXAMPLE", "MOZ.Q41P@HOME.EXAMPLE"), ("max.k77x+tag@home.example", "moz.q41p+tag@home.example"),
        ("max.k77x", "moz.q41p"), ("max.second42", "moz.second31"), ("max.k77x (at) home.example", "moz.q41p (at) home.example"),
        ("max.k77x%40home.example", "moz.q41p%40home.example"), ("home.example", "hume.example"),
        (clientAddress, "198.51.100.78"),
        ("desktop-7f3k2.home.example", "desktop-8g4m3.home.example"), ("mx.home.example", "my.home.example"),
    ]

    private enum Place: CaseIterable {
        case subject, encodedSubject, messageID, references, fromName, ccAddress, ccName, comments, beginning, middle, end, alone,
            signature, link
        case attribute, header, imitation, twice, many, fileName, contentID, attached
    }

    private enum Way: CaseIterable {
        case angle, angleWrapped, angleWithoutAttribution, angleInline, outlookPlain, originalMessage, topPosting, gmail, apple,
            outlook, thunderbird
        case attachedOriginal, headersOnly, subjectOnly, vacation, vacationQuoting, bounce
    }

    /// A message of the team's.
    private struct Original {
        var header: [String]
        var plain: String
        var html: String
        var attachment = ""
    }

    private static let filler = [
        "Dear customer,", "thank you for your order of three boxes of coloured chalk.",
        "We send it on Monday, 24 November, by parcel post.",
        "If you have any question, write to us: we answer within a day.",
        "The number of your order is 4711-B, see also our terms.",
        "Kind regards", "The people at the shop", "PS: the shop is closed on Sundays.",
    ]

    private static func original(_ place: Place, _ guess: String, _ random: inout SeededRandom) -> Original {
        var subject = "Your order 4711"
        var id = "order.4711@app.example"
        var more: [String] = []
        var from = "Billing <billing@app.example>"
        var to = "annarelay2@relay.example"
        var lines = Array(filler.shuffled(using: &random).prefix(2 + Int(random.next() % 7)))
        var attachment = ""
        switch place {
        case .subject: subject = ["About \(guess), again", guess, "\(guess): is it you?"][Int(random.next() % 3)]
        case .encodedSubject:
            subject = String(decoding: HeaderText.encodedWords(Array("Über \(guess)".utf8), startingAt: 10), as: UTF8.self)
        case .messageID: id = "\(guess.filter { $0 != " " }).7@esp.test"
        case .references:
            more = ["References: <\(guess.filter { $0 != " " })@app.example> <1.\(guess.filter { $0 != " " })@esp.test>"]
        case .fromName: from = "\"\(guess)\" <billing@app.example>"
        case .ccAddress: to += guess.contains("@") && !guess.contains(" ") ? ", \(guess)" : ", x@other.test"
        case .ccName: to += ", \"\(guess)\" <x@other.test>"
        case .comments: more = ["Comments: \(guess)"]
        case .beginning: lines.insert(guess + " is what we have.", at: 0)
        case .middle: lines.insert("We have \(guess) as your address.", at: lines.count / 2)
        case .end: lines.append("We have written to " + guess)
        case .alone: lines = [guess]
        case .signature: lines += ["-- ", "Billing", guess]
        case .link: lines.append("See https://app.example/?who=\(guess.replacing(" ", with: "%20")) for more")
        case .attribute, .header: lines.append("An end.")
        // The user's own signature, and an attribution, as the team has seen them in answers.
        case .imitation:
            lines += ["Best wishes", "Max", guess, "On Fri, 21 Nov 2025 at 10:15, Max <\(guess)> wrote:", "thank you"]
        case .twice: lines += ["We have \(guess) here", "and \(guess) there."]
        case .many: lines += (0..<40).map { "\($0): \(guess), or so we think, line \($0)." }
        case .fileName: attachment = "Content-Type: text/plain; name=\"\(guess).txt\"\r\n\r\nSome text\r\n"
        case .contentID:
            attachment = "Content-Type: text/plain\r\nContent-ID: <\(guess.filter { $0 != " " })>\r\n\r\nSome text\r\n"
        case .attached:
            attachment =
                "Content-Type: text/plain; name=a.txt\r\n\r\nSome text with \(guess) in it, and more text behind that\r\n"
        }
        if place == .header { more = ["X-Guess: \(guess)"] }
        var html = lines.map { "<p>\($0.replacing("<", with: "&lt;").replacing(">", with: "&gt;"))</p>" }.joined(
            separator: "\r\n")
        if place == .attribute {
            html += "<p><a href=\"mailto:\(guess)\" title=\"\(guess)\">write</a> and <img alt=\"\(guess)\" src=\"cid:a\"></p>"
        }
        return Original(
            header: [
                "From: \(from)", "To: \(to)", "Subject: \(subject)", "Date: Fri, 21 Nov 2025 05:00:00 +0000",
                "Message-ID: <\(id)>",
            ] + more,
            plain: lines.joined(separator: "\r\n"), html: html, attachment: attachment)
    }

    private static func message(_ original: Original, isHTML: Bool) -> String {
        let type = isHTML ? "text/html; charset=utf-8" : "text/plain; charset=utf-8"
        let text = isHTML ? original.html : original.plain
        guard !original.attachment.isEmpty else {
            return (original.header + ["MIME-Version: 1.0", "Content-Type: \(type)", "", text]).joined(separator: "\r\n") + "\r\n"
        }
        return
            (original.header + [
                "MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=BB", "", "--BB", "Content-Type: \(type)", "", text,
                "--BB",
            ])
            .joined(separator: "\r\n") + "\r\n" + original.attachment + "--BB--\r\n"
    }

    /// The user's answer to a message as it arrived.
    private static func answer(
        _ way: Way, to arrived: ModifiedMessage, _ original: Original, isHTML: Bool, _ random: inout SeededRandom
    ) -> String {
        let header = HeaderSection(arrived.header)
        let from = header.first("From")?.unfoldedValue ?? ""
        let fromReverse = AddressList.parse(header.first("From")?.rawValue ?? []).mailboxes.first
        let subject = header.first("Subject")?.unfoldedValue ?? ""
        let id = header.first("Message-ID")?.unfoldedValue ?? ""
        let references = header.first("References")?.unfoldedValue ?? ""
        let attribution =
            "On Fri, 21 Nov 2025 at 06:12, \(fromReverse?.displayName ?? "") <\(fromReverse?.addrSpec.wireForm ?? "")> wrote to \(inboxes[0]):"
        let typed = [
            "Thank you, it arrived.", "My address is \(inboxes[0]), or \(inboxes[1]).", "", "Best wishes", "Max", inboxes[0],
        ]
        let lines = (isHTML ? stripped(original.html) : original.plain).components(separatedBy: "\r\n")
        let html =
            isHTML
            ? original.html
            : original.plain.components(separatedBy: "\r\n").map { $0.replacing("<", with: "&lt;") }.joined(separator: "<br>\r\n")
        let block = [
            "From: \(from)", "Sent: Friday, 21 November 2025 06:00", "To: Max <\(inboxes[0])>",
            "Subject: \(EncodedWord.decode(Array(subject.utf8)[...]))", "",
        ]
        let typedHTML = typed.joined(separator: "<br>\r\n")
        let attributionHTML = attribution.replacing("<", with: "&lt;").replacing(">", with: "&gt;")
        var body: String
        var type = "text/plain; charset=utf-8"
        switch way {
        case .angle: body = (typed + ["", attribution] + lines.map { "> " + $0 }).joined(separator: "\r\n")
        case .angleWrapped:
            body = (typed + ["", attribution] + lines.flatMap { wrapped($0) }.map { "> " + $0 } + ["-- ", inboxes[0]]).joined(
                separator: "\r\n")
        case .angleWithoutAttribution: body = (lines.map { ">" + $0 } + typed).joined(separator: "\r\n")
        case .angleInline: body = ([attribution] + lines.flatMap { ["> " + $0, "Yes: \(inboxes[0])"] }).joined(separator: "\r\n")
        case .outlookPlain: body = (typed + ["", "________________________________"] + block + lines).joined(separator: "\r\n")
        case .originalMessage: body = (typed + ["", "-----Original Message-----"] + block + lines).joined(separator: "\r\n")
        case .topPosting: body = (typed + ["", attribution, ""] + lines).joined(separator: "\r\n")
        case .gmail:
            type = "text/html; charset=utf-8"
            body =
                "<div dir=\"ltr\">\(typedHTML)</div><br><div class=\"gmail_quote\"><div dir=\"ltr\" class=\"gmail_attr\">\(attributionHTML)<br></div>"
                + "<blockquote class=\"gmail_quote\" style=\"margin:0px\">\(html)</blockquote></div>"
        case .apple:
            type = "text/html; charset=utf-8"
            body =
                "<html><body>\(typedHTML)<div><br><blockquote type=\"cite\"><div>\(attributionHTML)</div><br class=\"Apple-interchange-newline\"><div>\(html)</div></blockquote></div></body></html>"
        case .outlook:
            type = "text/html; charset=utf-8"
            body =
                "<html><body><p class=MsoNormal>\(typedHTML)<o:p></o:p></p><div style='border:none;border-top:solid #E1E1E1 1.0pt'>"
                + block.dropLast().map { line in
                    let parts = line.split(separator: ":", maxSplits: 1)
                    return "<b>\(parts[0]):</b>\(parts[1].replacing("<", with: "&lt;").replacing(">", with: "&gt;"))<br>"
                }.joined(separator: "\r\n") + "</div><p class=MsoNormal><o:p>&nbsp;</o:p></p>\(html)</body></html>"
        case .thunderbird:
            type = "text/html; charset=utf-8"
            body =
                "<html><body>\(typedHTML)<div class=\"moz-cite-prefix\">\(attributionHTML)<br></div><blockquote type=\"cite\" cite=\"mid:x\">\(html)</blockquote><div class=\"moz-signature\">-- <br>\(inboxes[0])</div></body></html>"
        case .attachedOriginal, .headersOnly:
            type = "multipart/mixed; boundary=RR"
            let inner = String(decoding: way == .headersOnly ? header.serialized : arrived.bytes, as: UTF8.self)
            body =
                "--RR\r\nContent-Type: text/plain\r\n\r\n\(typed.joined(separator: "\r\n"))\r\n--RR\r\nContent-Type: \(way == .headersOnly ? "text/rfc822-headers" : "message/rfc822")\r\n\r\n\(inner)\r\n--RR--"
        case .subjectOnly: body = typed.joined(separator: "\r\n")
        case .vacation: body = "I am away. Write to \(inboxes[1])."
        case .vacationQuoting, .bounce:
            body = (["I am away. Write to \(inboxes[1]).", "", attribution, ""] + lines.map { "> " + $0 }).joined(
                separator: "\r\n")
        }
        let isAutomatic = way == .vacation || way == .vacationQuoting
        var recipients = [header.first("From")?.unfoldedValue, header.first("Cc")?.unfoldedValue].compactMap { $0 }
        if random.next() % 2 == 0 { recipients += [header.first("To")?.unfoldedValue].compactMap { $0 } }
        return
            ([
                "Received: from desktop-7f3k2.home.example (desktop-7f3k2 [\(clientAddress)]) by mx.home.example; Fri, 21 Nov 2025 05:10:00 +0000",
                "From: Max <\(inboxes[0])>", "To: \(recipients.joined(separator: ", "))",
                "Subject: \(isAutomatic ? "Automatic reply:" : "Re:") \(subject)",
                "Date: Fri, 21 Nov 2025 06:12:00 +0100", "Message-ID: <abc@home.example>", "In-Reply-To: \(id)",
                "References: \(references) \(id)",
                isAutomatic ? "Auto-Submitted: auto-replied" : "X-Mailer: none", "MIME-Version: 1.0", "Content-Type: \(type)", "",
                body,
            ]).joined(separator: "\r\n") + "\r\n"
    }

    private static func stripped(_ html: String) -> String {
        var output = ""
        var isTag = false
        for character in html.unicodeScalars {
            if character == "<" {
                isTag = true
            } else if character == ">" {
                isTag = false
            } else if !isTag {
                output.unicodeScalars.append(character)
            }
        }
        return output.replacing("&lt;", with: "<").replacing("&gt;", with: ">")
    }

    private static func wrapped(_ line: String) -> [String] {
        var lines: [String] = [""]
        for word in line.split(separator: " ", omittingEmptySubsequences: false) {
            if let last = lines.last, last.count + word.count > 34, !last.isEmpty { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
        }
        return lines
    }

    private static func report(_ arrived: ModifiedMessage) -> String {
        let returned = String(decoding: HeaderSection(arrived.header).serialized, as: UTF8.self)
        return
            "From: MAILER-DAEMON@home.example\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=B\r\n\r\n"
            + "--B\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.home.example\r\n\r\nFinal-Recipient: rfc822; \(inboxes[0])\r\nAction: failed\r\nStatus: 5.7.1\r\n"
            + "Diagnostic-Code: smtp; 550 5.7.1 <\(inboxes[0])>: content refused\r\n\r\n--B\r\nContent-Type: text/rfc822-headers\r\n\r\n\(returned)\r\n--B--\r\n"
    }

    private struct Said: Equatable {
        var outcome: String
        var text: String
    }

    /// What the team gets in the end, decoded as far as programs decode it.
    private static func comesBack(_ place: Place, _ way: Way, guess: String, number: Int) throws -> Said {
        var random = SeededRandom("\(seed) \(number)".utf8)
        let isHTML = place == .attribute || random.next() % 3 == 0
        let original = original(place, guess, &random)
        let sent = message(original, isHTML: isHTML)
        let forward = Fixture(accounts: [max], evidence: AuthenticationEvidence.signed("app.example"))
        let decision = forward.play(from: "bounces@app.example", to: ["annarelay2@relay.example"], message: sent).decision
        guard decision.outcome == .relay else { return Said(outcome: "forward: \(decision.outcome)", text: "") }
        let parsed = Message.parse(Array(sent.utf8))
        var arrived = ModifiedMessage(header: parsed.header, body: parsed.body, sender: "", recipients: [])
        arrived.apply(decision.modifications)

        let reply = Fixture(
            directory: forward.directory,
            engine: forward.engine.authenticating(by: TestAuthenticator(evidence: AuthenticationEvidence.signed("home.example"))))
        let from = AddressList.parse(HeaderSection(arrived.header).first("From")?.rawValue ?? []).mailboxes.first
        let reverse = try #require(from).addrSpec.wireForm
        let isNull = [.vacation, .vacationQuoting, .bounce].contains(way)
        let text = way == .bounce ? report(arrived) : answer(way, to: arrived, original, isHTML: isHTML, &random)
        let back = reply.play(from: isNull ? "" : inboxes[0], to: [isNull ? arrived.sender : reverse], message: text).decision
        guard back.outcome == .relay else { return Said(outcome: "\(back.outcome)", text: "") }
        let answered = Message.parse(Array(text.utf8))
        var out = ModifiedMessage(header: answered.header, body: answered.body, sender: "", recipients: [])
        out.apply(back.modifications)
        // A hidden id is another one for each id that it stands for.
        let hidden = /<a[ij][a-z2-7]{30,}@relay\.example>/
        return Said(outcome: "relayed to \(out.recipients)", text: read(out).replacing(hidden, with: "<hidden>"))
    }

    private static func read(_ message: ModifiedMessage) -> String {
        let body = Array(message.body.joined())
        let header = HeaderSection(message.header)
        var text = header.fields.map { "\($0.name): \($0.decodedValue)\n" }.joined()
        for part in MIMEPart.parse(header: header, body: body).flattened {
            text += part.header.fields.map { "\($0.name): \($0.decodedValue)\n" }.joined()
            guard !part.isComposite else { continue }
            let decoded = part.transferEncoding.decode(body[part.bodyRange])?.bytes ?? []
            if part.contentType.matches("text", "rfc822-headers") {
                text += HeaderSection.parse(decoded[...]).header.fields.map { "\($0.name): \($0.decodedValue)\n" }.joined()
            } else {
                text += String(decoding: decoded, as: UTF8.self)
            }
        }
        return text
    }

    @Test func noAnswerTellsWhichGuessWasRight() throws {
        var told: [String: Int] = [:]
        var relayed = 0
        for number in 0..<Self.count {
            var random = SeededRandom("choice \(Self.seed) \(number)".utf8)
            let guess = Self.guesses[Int(random.next() % UInt64(Self.guesses.count))]
            let place = Place.allCases[Int(random.next() % UInt64(Place.allCases.count))]
            let way = Way.allCases[Int(random.next() % UInt64(Way.allCases.count))]
            let right = try Self.comesBack(place, way, guess: guess.right, number: number)
            let wrong = try Self.comesBack(place, way, guess: guess.wrong, number: number)
            if wrong.outcome.hasPrefix("relayed") { relayed += 1 }
            let name = "\(number): \(guess.right) in \(place), \(way)"
            func righted(_ text: String) -> String {
                text.replacing(guess.wrong, with: guess.right).replacing(
                    guess.wrong.filter { $0 != " " }, with: guess.right.filter { $0 != " " }
                )
                .replacing(guess.wrong.replacing(" ", with: "%20"), with: guess.right.replacing(" ", with: "%20"))
                .replacing(guess.wrong.replacing("@", with: " at "), with: guess.right.replacing("@", with: " at "))
                // A link of the forward leads through the relay, and comes back written plainly.
                .replacing(guess.wrong.replacing("%40", with: "@"), with: guess.right.replacing("%40", with: "@"))
                .replacing(guess.wrong.replacing("+", with: "%2B"), with: guess.right.replacing("+", with: "%2B"))
                // A wrapped line ends within a guess that has spaces.
                .replacing(guess.wrong.prefix { $0 != " " }, with: guess.right.prefix { $0 != " " })
            }
            let expected = Said(outcome: righted(wrong.outcome), text: righted(wrong.text))
            if right != expected {
                told["\(place) \(way)", default: 0] += 1
                let lines = zip(right.text.split(whereSeparator: \.isNewline), expected.text.split(whereSeparator: \.isNewline))
                    .first { $0 != $1 }
                if told["\(place) \(way)"] == 1 {
                    Issue.record("\(name): \(right.outcome) | \(expected.outcome): \(lines.map { "«\($0.0)» «\($0.1)»" } ?? "")")
                }
            }
            for inbox in Self.inboxes where wrong.text.lowercased().contains(inbox) { Issue.record("\(name): the inbox leaves") }
        }
        #expect(relayed * 10 > Self.count * 9, "\(relayed) of \(Self.count) relayed")
        print(
            "guesses compared: \(Self.count), relayed \(relayed), told apart: \(told.values.reduce(0, +)) \(told.sorted { $0.key < $1.key })"
        )
    }
}
