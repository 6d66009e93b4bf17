// A mail of the team's with its guesses, on arrival at the relay.

import TestSupport

/// Composes the mail that a pair specifies.
package struct TeamMail {
    package private(set) var octets: [UInt8] = []
    /// Without angle brackets.
    package private(set) var sender = "bounces@juice.example"
    /// The text that a program shows if only that program reads its parts: S/MIME, TNEF, a file.
    package private(set) var shown: String?

    private let pair: PairSpec
    private let side: Side
    private var random: SeededGenerator

    package static let team = "orders@juice.example"
    package static let relay = "annarelay2@relay.example"

    package init(_ pair: PairSpec, _ side: Side) {
        (self.pair, self.side) = (pair, side)
        random = SeededGenerator(seed: pair.seed &* 31)
        let body = pair.shape == .invitation ? invitation() : body()
        octets = Array((header() + "MIME-Version: 1.0\r\n").utf8) + body
    }

    private func plants(_ place: Place) -> [String] {
        pair.plants.filter { $0.place == place }.map { $0.text(side) }
    }

    private func first(_ place: Place) -> String? { plants(place).first }

    // MARK: Header section

    private static func printable(_ octets: ArraySlice<UInt8>) -> String {
        let digits = Octets.hexadecimal
        return String(
            decoding: octets.flatMap {
                $0 >= 0x61 && $0 <= 0x7A
                    ? [$0] : [UInt8(ascii: "="), digits[Int($0 >> 4)], digits[Int($0 & 15)]]
            }, as: UTF8.self)
    }

    static func words(_ text: String, isBase64: Bool) -> String {
        // In pieces, as an encoded word has at most 75 octets.
        var pieces: [String] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            var end = min(36, rest.count)
            while end < rest.count, rest[rest.startIndex + end] & 0xC0 == 0x80 { end -= 1 }
            let piece = rest.prefix(end)
            rest = rest.dropFirst(end)
            pieces.append(
                isBase64
                    ? "=?utf-8?B?\(String(decoding: Octets.base64(piece), as: UTF8.self))?="
                    : "=?utf-8?Q?\(printable(piece))?="
            )
        }
        return pieces.joined(separator: "\r\n ")
    }

    private func quoted(_ text: String) -> String {
        "\"" + Octets.replace("\"", with: "\\\"", in: Octets.replace("\\", with: "\\\\", in: text))
            + "\""
    }

    private mutating func header() -> String {
        var name =
            first(.fromName).map(quoted) ?? (pair.seed % 3 == 0 ? "Juice Shop" : "\"Juice Shop\"")
        if let words = first(.fromWords) {
            name = Self.words("Säfte \(words)", isBase64: pair.seed % 2 == 0)
        }
        let author = first(.fromLocal).map { "\($0)@juice.example" } ?? Self.team
        var to = first(.toName).map { "\(quoted($0)) <\(Self.relay)>" } ?? Self.relay
        var subject = "Your order 4711"
        if let guess = first(.subject) {
            subject = ["About \(guess), again", guess, "\(guess): is it you?"][Int(pair.seed % 3)]
        }
        if let guess = first(.subjectWords) {
            subject = Self.words("Über \(guess) und mehr", isBase64: pair.seed % 2 == 0)
        }
        if let guess = first(.subjectLong) {
            subject =
                (0..<30).map { "word\($0)" }.joined(separator: " ") + "\r\n \(guess) and "
                + (0..<12).map { "end\($0)" }.joined(separator: " ")
        }
        var fields =
            first(.received).map {
                ["Received: from \($0) by mx.juice.example; Fri, 21 Nov 2025 04:59:00 +0000"]
            } ?? []
        fields.append("From: \(name) <\(author)>")
        if let guess = first(.sender) {
            fields.append("Sender: \(quoted(guess)) <sender@juice.example>")
        }
        if let address = first(.replyTo) { fields.append("Reply-To: \(address)") }
        if let guess = first(.replyToLocal) { fields.append("Reply-To: \(guess)@juice.example") }
        if let guess = first(.replyToName) {
            fields.append("Reply-To: \(quoted(guess)) <help@juice.example>")
        }
        var others =
            plants(.cc) + plants(.ccName).map { "\(quoted($0)) <other@other.test>" }
            + plants(.ccLocal).map { "\($0)@other.test" }
        if pair.isInboxInCc { others.append(Guess.inbox) }
        if pair.seed % 5 == 0 { others.append("Kim <kim@other.test>") }
        if !others.isEmpty, pair.seed % 4 == 0 { to += ",\r\n \(others.removeFirst())" }
        fields.append("To: \(to)")
        if !others.isEmpty { fields.append("Cc: \(others.joined(separator: ", "))") }
        fields += [
            "Subject: \(subject)",
            "Date: Fri, 21 Nov 2025 05:00:00 +0000\(first(.dateComment).map { " (\($0))" } ?? "")",
        ]
        fields.append(
            "Message-ID: <\(first(.messageID).map { "\($0).7" } ?? "4711")@\(pair.seed % 2 == 0 ? "juice.example" : "esp.test")>"
        )
        if let guess = first(.references) {
            fields.append("References: <\(guess)@juice.example> <1.\(guess)@esp.test>")
        }
        if let guess = first(.inReplyTo) { fields.append("In-Reply-To: <\(guess)@juice.example>") }
        for (place, name) in [
            (Place.comments, "Comments"), (.keywords, "Keywords"), (.organization, "Organization"),
            (.otherField, "X-Customer"),
            (.threadTopic, "Thread-Topic"),
        ] { if let guess = first(place) { fields.append("\(name): \(guess)") } }
        if let guess = first(.listID) { fields.append("List-ID: <\(guess).juice.example>") }
        if let address = first(.listPost) { fields.append("List-Post: <mailto:\(address)>") }
        if let address = first(.receiptTo) {
            fields.append("Disposition-Notification-To: \(address)")
        }
        if let unsubscribe = unsubscribe() { fields.append("List-Unsubscribe: \(unsubscribe)") }
        sender = first(.envelopeSender).map { "bounces+\($0)@juice.example" } ?? sender
        return fields.map { $0 + "\r\n" }.joined()
    }

    private func unsubscribe() -> String? {
        let address = first(.unsubscribeAddress)
        let subject = first(.unsubscribeSubject).map(Octets.percentEncoded)
        let body = first(.unsubscribeBody).map(Octets.percentEncoded)
        let link = first(.unsubscribeLink)
        guard
            address != nil || subject != nil || body != nil || link != nil || pair.needsUnsubscribe
        else { return nil }
        var uri = "mailto:\(address ?? "off@juice.example")"
        let words = [subject.map { "subject=\($0)" }, body.map { "body=\($0)" }].compactMap { $0 }
        if !words.isEmpty { uri += "?" + words.joined(separator: "&") }
        return "<\(uri)>"
            + (link.map { ",\r\n <https://juice.example/off?\(Octets.percentEncoded($0))>" } ?? "")
    }

    // MARK: Text

    private static let filler = [
        "Dear customer,", "thank you for your order of three boxes of coloured chalk.",
        "We send it on Monday, 24 November, by parcel post.",
        "If you have any question, write to us: we answer within a day.",
        "The number of your order is 4711-B, see also our terms.", "Kind regards",
        "The people at the shop",
        "PS: the shop is closed on Sundays.", "",
        "See https://juice.example/orders/4711?lang=en for more.",
    ]

    private static func sentence(_ guess: String, _ variant: UInt64) -> String {
        switch variant % 9 {
        case 0: guess
        case 1: "We have \(guess) as your address."
        case 2: "\(guess) is what we have."
        case 3: "Write to us from \(guess)"
        case 4: "(\(guess))"
        case 5: "\"\(guess)\", it says"
        case 6: "E-Mail: \(guess)"
        case 7: "Dear \(guess):"
        default: "From: \(guess)"
        }
    }

    /// The lines of the text, each with a mark whether it is already markup.
    private mutating func lines() -> [String] {
        var lines = (0..<pair.fillers).map { _ in
            Self.filler[Int(random.next() % UInt64(Self.filler.count))]
        }
        for number in 0..<pair.crowd {
            lines.append("\(number): person\(number)@other.test, person.n\(number)")
        }
        for plant in pair.plants where plant.place.group == .text {
            let guess = plant.text(side)
            let sentence = Self.sentence(guess, plant.variant)
            switch plant.place {
            case .beginning: lines.insert(sentence, at: 0)
            case .end: lines.append(sentence)
            case .alone: lines = [guess]
            case .signature: lines += ["-- ", "Juice", sentence]
            case .longLine:
                lines.append(
                    "This is a line that a program breaks when it answers, as it is long, and \(guess) is in it, and more"
                )
            case .imitatedAttribution:
                lines += ["On Fri, 21 Nov 2025 at 10:15, Jane <\(guess)> wrote:", "thank you"]
            case .imitatedBlock:
                lines += [
                    "From: Jane <\(guess)>", "Sent: Friday", "To: Juice", "Subject: Hello", "",
                    "thank you",
                ]
            case .imitatedSignature: lines += ["Best wishes", "Jane", guess]
            case .history: lines += ["> \(sentence)", ">> \(guess)"]
            case .twice: lines += ["We have \(guess) here", "and \(guess) there."]
            case .many: lines += (0..<12).map { "\($0): \(guess), or so we think, line \($0)." }
            case .linkText: lines.append("See \(guess) (https://juice.example/a)")
            case .linkSubject:
                lines.append("mailto:help@juice.example?subject=\(Octets.percentEncoded(guess))")
            case .linkBody:
                lines.append(
                    "mailto:help@juice.example?subject=x&body=\(Octets.percentEncoded(guess))")
            case .table: lines.append("Name\tMail\r\nJane\t\(guess)")
            default: lines.insert(sentence, at: lines.count / 2)
            }
        }
        return lines.isEmpty ? ["Hello"] : lines
    }

    package static func escaped(_ text: String) -> String {
        Octets.replace(
            ">", with: "&gt;",
            in: Octets.replace("<", with: "&lt;", in: Octets.replace("&", with: "&amp;", in: text)))
    }

    private func markup(_ lines: [String]) -> String {
        var head = "<meta charset=\"utf-8\">"
        var html = lines.map { line in
            line.utf8.starts(with: "mailto:".utf8)
                ? "<p><a href=\"\(Self.escaped(line))\">Write to us</a></p>"
                : "<p>\(Self.escaped(line))</p>"
        }.joined(separator: "\r\n")
        for plant in pair.plants where plant.place.group == .markup {
            let guess = plant.text(side)
            let attribute = Octets.replace("\"", with: "&quot;", in: guess)
            switch plant.place {
            case .attribute:
                html +=
                    [
                        "<p title=\"\(attribute)\">x</p>",
                        "<img alt='\(attribute)' src=\"https://juice.example/a.png\">",
                        "<p data-x=\(Octets.percentEncoded(guess))>x</p>",
                    ][Int(plant.variant % 3)]
            case .target:
                html +=
                    [
                        "<a href=\"mailto:\(attribute)\">write</a>",
                        "<a href=\"https://juice.example/?\(attribute)\">see</a>",
                        "<img src=\"https://pix.other.test/\(Octets.percentEncoded(guess)).gif\">",
                    ][Int(plant.variant % 3)]
            case .markupComment: html += "<!-- \(guess) -->"
            case .style: html += "<style>.a { content: '\(guess)' }</style>"
            case .script: html += "<script>var a = '\(guess)'</script>"
            case .hidden: html += "<div style=\"display:none\">\(Self.escaped(guess))</div>"
            case .title: head += "<title>\(Self.escaped(guess))</title>"
            case .meta: head += "<meta name=\"x\" content=\"\(attribute)\">"
            case .preformatted: html += "<pre>\r\na  \(Self.escaped(guess))\r\n  b</pre>"
            case .conditional: html += "<!--[if mso]><p>\(guess)</p><![endif]-->"
            case .dataURL:
                html += "<img src=\"\(Self.pictureURL(guess))\">"
            default:
                html +=
                    plant.spelling.isMarkup
                    ? "<p>We have \(guess) here</p>"
                    : "<p>We have <i>\(Self.escaped(guess))</i></p>"
            }
        }
        return "<html><head>\(head)</head><body>\(html)</body></html>"
    }

    // MARK: Parts

    private func part(_ type: String, _ text: String, more: String = "") -> String {
        let octets = Array(text.utf8)
        return switch pair.coding {
        case .base64: Self.encoded(type, "base64", Octets.base64Lines(octets), more: more)
        case .quotedPrintable:
            Self.encoded(type, "quoted-printable", Octets.quotedPrintable(octets), more: more)
        case .plain:
            Self.encoded(
                type, octets.allSatisfy { $0 < 0x80 } ? "7bit" : "8bit", octets, more: more)
        }
    }

    private static func opaque(_ type: String, _ octets: [UInt8]) -> String {
        encoded(type, "base64", Octets.base64Lines(octets))
    }

    private static func encoded(
        _ type: String, _ coding: String, _ octets: [UInt8], more: String = ""
    ) -> String {
        let text = String(decoding: octets, as: UTF8.self)
        return
            "Content-Type: \(type)\r\n\(more)Content-Transfer-Encoding: \(coding)\r\n\r\n\(text)\r\n"
    }

    private func multipart(_ kind: String, _ boundary: String, _ parts: [String]) -> String {
        "Content-Type: multipart/\(kind); boundary=\"\(boundary)\"\r\n\r\n"
            + (first(.preamble).map { "\($0)\r\n" } ?? "")
            + parts.map { "--\(boundary)\r\n\($0)" }.joined()
            + "--\(boundary)--\r\n"
            + (first(.epilogue).map { "\($0)\r\n" } ?? "")
    }

    private func attachments() -> [String] {
        var parts: [String] = []
        for plant in pair.plants where plant.place.group == .part {
            let guess = plant.text(side)
            switch plant.place {
            case .fileName:
                parts.append(
                    part(
                        "text/plain", "Some text",
                        more:
                            "Content-Disposition: attachment; filename=\(quoted(guess + ".txt"))\r\n"
                    ))
            case .partName: parts.append(part("text/plain; name=\(quoted(guess))", "Some text"))
            case .partDescription:
                parts.append(
                    part("text/plain", "Some text", more: "Content-Description: \(guess)\r\n"))
            case .contentID:
                parts.append(
                    part(
                        "text/plain", "Some text", more: "Content-ID: <\(guess)@juice.example>\r\n")
                )
            case .contentLocation:
                parts.append(
                    part(
                        "text/plain", "Some text",
                        more:
                            "Content-Location: https://juice.example/\(Octets.percentEncoded(guess))\r\n"
                    ))
            case .textFile:
                parts.append(
                    part(
                        "text/plain; name=a.txt", "Some text with \(guess) in it, and more",
                        more: "Content-Disposition: attachment; filename=a.txt\r\n"))
            case .attachedMessage, .attachedSubject:
                let isSubject = plant.place == .attachedSubject
                parts.append(
                    "Content-Type: message/rfc822\r\n\r\nFrom: Kim <kim@other.test>\r\n"
                        + "To: \(isSubject ? "x@other.test" : "\(quoted(guess)) <x@other.test>")\r\n"
                        + "Subject: \(isSubject ? guess : "Hello")\r\n\r\nText \(isSubject ? "" : guess) of another\r\n"
                )
            case .picture: parts.append(Self.picture(guess))
            default: break
            }
        }
        return parts
    }

    static func pictureURL(_ text: String) -> String {
        "data:image/gif;base64,\(String(decoding: Octets.base64("GIF89a\(text)".utf8), as: UTF8.self))"
    }

    /// A PNG of one pixel with a text chunk.
    private static func picture(_ text: String) -> String {
        func chunk(_ kind: String, _ data: [UInt8]) -> [UInt8] {
            let content = Array(kind.utf8) + data
            var sum: UInt32 = 0xFFFF_FFFF
            for octet in content {
                sum ^= UInt32(octet)
                for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
            }
            func big(_ value: UInt32) -> [UInt8] {
                [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
            }
            return big(UInt32(data.count)) + content + big(~sum)
        }
        let png =
            [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10]
            + chunk("IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
            + chunk("tEXt", Array("Comment".utf8) + [0] + Array(text.utf8))
            + chunk("IDAT", [0x78, 0x9C, 0x63, 0x60, 0, 0, 0, 2, 0, 1]) + chunk("IEND", [])
        return
            encoded(
                "image/png; name=logo.png", "base64", Octets.base64Lines(png),
                more: "Content-ID: <logo@juice.example>\r\nContent-Disposition: inline\r\n")
    }

    private mutating func body() -> [UInt8] {
        let lines = lines()
        let text = lines.joined(separator: "\r\n")
        let markup = markup(lines)
        let plainPart = part("text/plain; charset=utf-8", text)
        let markupPart = part("text/html; charset=utf-8", markup)
        var whole: String
        switch pair.shape {
        case .plain, .invitation: whole = plainPart
        case .markup: whole = markupPart
        case .alternative: whole = multipart("alternative", "=_a", [plainPart, markupPart])
        case .signed:
            shown = text
            whole = Self.opaque(
                "application/pkcs7-mime; smime-type=signed-data; name=smime.p7m",
                [0x30, 0x80, 6, 9, 0x2A] + Array("Content-Type: text/plain\r\n\r\n\(text)".utf8) + [
                    0, 0,
                ])
        case .outlook:
            shown = text
            whole = Self.opaque(
                "application/ms-tnef; name=winmail.dat",
                [0x78, 0x9F, 0x3E, 0x22, 1, 0, 2, 0x0C, 0x80, 2, 0] + Array(text.utf8) + [0, 0, 0])
        case .file:
            shown = text
            whole = Self.opaque("application/octet-stream; name=a.txt", Array(text.utf8))
        }
        let attachments = attachments()
        if !attachments.isEmpty || first(.boundary) != nil || first(.preamble) != nil
            || first(.epilogue) != nil
        {
            whole = multipart(
                pair.plants.contains { $0.place == .picture } ? "related" : "mixed",
                first(.boundary).map { "b_\($0)" } ?? "=_m",
                [whole] + attachments)
        }
        return Array(whole.utf8)
    }

    // MARK: Invitation

    private mutating func invitation() -> [UInt8] {
        let text = lines().joined(separator: "\r\n")
        let calendar = Invitation.text(
            plants: pair.plants.filter { $0.place.group == .calendar }, side)
        let parts = [
            part("text/plain; charset=utf-8", text),
            part("text/html; charset=utf-8", markup(Octets.lines(of: text))),
            part("text/calendar; charset=utf-8; method=REQUEST", calendar),
        ]
        return Array(
            multipart("alternative", first(.boundary).map { "b_\($0)" } ?? "=_c", parts).utf8)
    }
}
