// A mail in the user's program: the text that it shows, and the parts that it uses in an answer.

/// A mailbox of a field, in the form of programs that split it.
struct ReadMailbox {
    var name: String
    var address: String

    /// The mailboxes of a value with its encoded words.
    static func list(_ value: [UInt8]) -> [ReadMailbox] {
        var pieces: [[UInt8]] = [[]]
        var (isQuoted, isAngle) = (false, false)
        var isEscaped = false
        for octet in value {
            if isEscaped {
                isEscaped = false
            } else if octet == UInt8(ascii: "\\"), isQuoted {
                isEscaped = true
            } else if octet == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if !isQuoted, octet == UInt8(ascii: "<") {
                isAngle = true
            } else if !isQuoted, octet == UInt8(ascii: ">") {
                isAngle = false
            }
            if octet == UInt8(ascii: ","), !isQuoted, !isAngle {
                pieces.append([])
            } else {
                pieces[pieces.count - 1].append(octet)
            }
        }
        return pieces.compactMap { piece in
            let piece = Octets.trim(piece)
            guard !piece.isEmpty else { return nil }
            guard let opening = piece.lastIndex(of: UInt8(ascii: "<")),
                piece.last == UInt8(ascii: ">")
            else {
                return ReadMailbox(name: "", address: String(decoding: piece, as: UTF8.self))
            }
            var name = Octets.trim(MailReader.words(Array(piece[..<opening])))
            if name.first == UInt8(ascii: "\""), name.last == UInt8(ascii: "\""), name.count > 1 {
                var plain: [UInt8] = []
                var isEscaped = false
                for octet in name.dropFirst().dropLast() {
                    if octet == UInt8(ascii: "\\"), !isEscaped {
                        isEscaped = true
                    } else {
                        plain.append(octet)
                        isEscaped = false
                    }
                }
                name = plain
            }
            return ReadMailbox(
                name: String(decoding: name, as: UTF8.self),
                address: String(decoding: piece[(opening + 1)...].dropLast(), as: UTF8.self))
        }
    }

    var written: String {
        guard !name.isEmpty else { return address }
        let isASCII = name.utf8.allSatisfy { $0 < 0x80 }
        guard isASCII else { return "\(TeamMail.words(name, isBase64: true)) <\(address)>" }
        return
            "\"\(Octets.replace("\"", with: "\\\"", in: Octets.replace("\\", with: "\\\\", in: name)))\" <\(address)>"
    }
}

enum MailReader {
    static func words(_ value: [UInt8]) -> [UInt8] { ReadPart.decodeWords(value) }
}

package struct Arrived {
    let octets: [UInt8]
    let part: ReadPart
    let sender: String
    let from: ReadMailbox
    let to: [ReadMailbox]
    let cc: [ReadMailbox]
    let replyTo: [ReadMailbox]
    let subject: String
    let messageID: String
    let references: String
    let plain: String
    /// The content of `body`, if it has markup.
    let html: String?
    let calendar: String?
    /// A picture's complete part, as received.
    let picture: [UInt8]?

    /// The destination of an answer.
    package var authorAddress: String { from.address }

    /// - Parameters:
    ///   - sender: the reverse-path, without angle brackets.
    ///   - shown: the text that the program shows if it reads it from a part with a special type.
    package init(_ octets: [UInt8], sender: String, shown: String?, isSanitized: Bool) {
        self.octets = octets
        self.sender = sender
        part = ReadPart(octets)
        from =
            ReadMailbox.list(part.value("from") ?? []).first ?? ReadMailbox(name: "", address: "")
        to = ReadMailbox.list(part.value("to") ?? [])
        cc = ReadMailbox.list(part.value("cc") ?? [])
        replyTo = ReadMailbox.list(part.value("reply-to") ?? [])
        subject = part.text("subject")
        messageID = part.text("message-id")
        references = part.text("references")
        let markup = part.first("text/html").map { String(decoding: $0.content, as: UTF8.self) }
        html = markup.map { Self.inner($0, isSanitized: isSanitized) }
        plain = Self.withoutEnd(
            shown ?? part.first("text/plain").map { String(decoding: $0.content, as: UTF8.self) }
                ?? html.map(Self.text) ?? "")
        calendar = part.first("text/calendar").map { String(decoding: $0.content, as: UTF8.self) }
        picture = Self.picture(octets)
    }

    private static func withoutEnd(_ text: String) -> String {
        var octets = Array(text.utf8)
        while let last = octets.last, last == 10 || last == 13 { octets.removeLast() }
        return String(decoding: octets, as: UTF8.self)
    }

    private static func picture(_ octets: [UInt8]) -> [UInt8]? {
        guard let start = Octets.find(Array("Content-Type: image/png".utf8), in: octets),
            let end = Octets.find(Array("\r\n--".utf8), in: octets, from: start)
        else { return nil }
        return Array(octets[start..<end])
    }

    /// Without comments, and without the content of these elements.
    private static func without(_ element: String, _ end: String, _ html: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var start = 0
        while let opening = Octets.find(
            Array(element.utf8), in: html, from: start, ignoringCase: true),
            let closing = Octets.find(Array(end.utf8), in: html, from: opening, ignoringCase: true)
        {
            output += html[start..<opening]
            start = closing + end.utf8.count
        }
        return output + html[start...]
    }

    private static func inner(_ markup: String, isSanitized: Bool) -> String {
        var html = Array(markup.utf8)
        if let body = Octets.find(Array("<body".utf8), in: html, ignoringCase: true),
            let start = html[body...].firstIndex(of: UInt8(ascii: ">"))
        {
            let end =
                Octets.find(Array("</body".utf8), in: html, from: start, ignoringCase: true)
                ?? html.count
            html = Array(html[(start + 1)..<end])
        }
        if isSanitized {
            for (element, end) in [
                ("<!--", "-->"), ("<style", "</style>"), ("<script", "</script>"),
            ] {
                html = without(element, end, html)
            }
        }
        return String(decoding: html, as: UTF8.self)
    }

    /// The text of markup: line breaks at blocks, references decoded.
    static func text(_ html: String) -> String {
        var octets = Array(html.utf8)
        for (element, end) in [("<!--", "-->"), ("<style", "</style>"), ("<script", "</script>")] {
            octets = without(element, end, octets)
        }
        var output: [UInt8] = []
        var index = 0
        while index < octets.count {
            let octet = octets[index]
            if octet == UInt8(ascii: "<"),
                let end = octets[index...].firstIndex(of: UInt8(ascii: ">"))
            {
                let name = Octets.lower(
                    octets[(index + 1)..<end].prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") })
                if ["p", "br", "div", "tr", "pre", "li"].contains(where: {
                    name.elementsEqual($0.utf8)
                }), !output.isEmpty {
                    output += [13, 10]
                }
                index = end + 1
            } else if octet == UInt8(ascii: "&"),
                let end = octets[index...].prefix(12).firstIndex(of: UInt8(ascii: ";"))
            {
                output += decoded(octets[(index + 1)..<end])
                index = end + 1
            } else {
                if octet != 13, octet != 10 { output.append(octet) }
                index += 1
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func decoded(_ reference: ArraySlice<UInt8>) -> [UInt8] {
        let name = String(decoding: reference, as: UTF8.self)
        switch name {
        case "lt": return [UInt8(ascii: "<")]
        case "gt": return [UInt8(ascii: ">")]
        case "amp": return [UInt8(ascii: "&")]
        case "quot": return [UInt8(ascii: "\"")]
        case "commat": return [UInt8(ascii: "@")]
        case "period": return [UInt8(ascii: ".")]
        case "nbsp": return [0x20]
        case "shy": return Array("\u{AD}".utf8)
        default:
            let digits = name.dropFirst()
            let number =
                digits.utf8.first == UInt8(ascii: "x")
                ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            guard name.utf8.first == UInt8(ascii: "#"), let number,
                let scalar = UnicodeScalar(number)
            else {
                return [UInt8(ascii: "&")] + reference + [UInt8(ascii: ";")]
            }
            return Array(String(scalar).utf8)
        }
    }
}
