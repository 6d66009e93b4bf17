// The answer of a program to a received mail: its message, and its envelope.

import Glibc
import TestSupport

package struct ProgramAnswer {
    package private(set) var octets: [UInt8] = []
    /// Without angle brackets; empty for the null sender.
    package private(set) var sender = Guess.inbox
    /// Its recipients at the relay domain.
    package private(set) var recipients: [String] = []

    private let form: ProgramForm
    private let mail: Arrived
    private let pair: PairSpec
    private let text: ProgramText

    /// - Parameter mail: in the form of the user's program.
    package init(_ form: ProgramForm, to mail: Arrived, _ pair: PairSpec) {
        (self.form, self.mail, self.pair) = (form, mail, pair)
        text = ProgramText(mail.plain, form)
        compose()
    }

    // MARK: Typed text

    private var typed: [String] {
        var lines = ["Thank you, it arrived.", "See you on Monday at 10:30."]
        if pair.typesInbox { lines.append("My address is \(Guess.inbox), or \(Guess.second).") }
        for number in 0..<pair.typesOthers {
            lines.append("Write to friend\(number)@friends.test too.")
        }
        return lines + ["", "Best wishes", "Jane"]
    }

    // MARK: Values

    private func address(_ box: ReadMailbox?) -> String { box?.address ?? "" }

    private func calendar(_ name: String) -> String {
        mail.calendar.flatMap { Invitation.property(name, in: $0)?.value } ?? ""
    }

    private var organizer: (name: String, address: String) {
        guard let calendar = mail.calendar,
            let property = Invitation.property("ORGANIZER", in: calendar)
        else {
            return (mail.from.name, mail.from.address)
        }
        let name = ReadPart.parameter("CN", of: Array(property.parameters.utf8)) ?? []
        return (
            String(decoding: name, as: UTF8.self),
            Octets.replace("mailto:", with: "", in: property.value)
        )
    }

    /// The link that the user clicks to leave a list, or to write.
    private var mailto: (address: String, subject: String, body: String) {
        let field = String(decoding: mail.part.value("list-unsubscribe") ?? [], as: UTF8.self)
        let octets = Array(field.utf8)
        guard let start = Octets.find(Array("mailto:".utf8), in: octets, ignoringCase: true) else {
            return (mail.from.address, "unsubscribe", "")
        }
        let uri = octets[(start + 7)...].prefix { $0 != UInt8(ascii: ">") }
        let pieces = uri.split(separator: UInt8(ascii: "?"), maxSplits: 1)
        var (subject, body) = ("unsubscribe", "")
        for word in pieces.dropFirst().first?.split(separator: UInt8(ascii: "&")) ?? [] {
            let pair = word.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { continue }
            let value = Octets.percentDecoded(String(decoding: pair[1], as: UTF8.self))
            if Octets.lower(pair[0]).elementsEqual("subject".utf8) { subject = value }
            if Octets.lower(pair[0]).elementsEqual("body".utf8) { body = value }
        }
        return (
            Octets.percentDecoded(String(decoding: pieces.first ?? [], as: UTF8.self)), subject,
            body
        )
    }

    private var html: String {
        mail.html
            ?? Octets.lines(of: mail.plain).map { TeamMail.escaped($0) }.joined(separator: "<br>\n")
    }

    private func halfHTML(_ number: Int) -> String {
        let lines = Octets.lines(of: html)
        let middle = (lines.count + 1) / 2
        return (number == 1 ? lines[..<middle] : lines[middle...]).joined(separator: "\n")
    }

    private func list(_ boxes: [ReadMailbox]) -> String {
        boxes.map(\.written).joined(separator: ", ")
    }

    private func value(_ name: String) -> String {
        if let value = text.value(name, seed: pair.seed) { return value }
        switch name {
        case "typed", "partner_typed": return typed.joined(separator: "\n")
        case "typed_1": return typed.dropLast(3).joined(separator: "\n")
        case "typed_2": return typed.suffix(2).joined(separator: "\n")
        case "original_raw": return String(decoding: mail.octets, as: UTF8.self)
        case "from_name": return mail.from.name.isEmpty ? mail.from.address : mail.from.name
        case "from_address": return mail.from.address
        case "from":
            return mail.from.name.isEmpty
                ? mail.from.address : "\(mail.from.name) <\(mail.from.address)>"
        case "to_name": return mail.to.first?.name ?? ""
        case "to_address": return address(mail.to.first)
        case "original_to": return list(mail.to)
        case "cc", "original_cc": return list(mail.cc)
        case "reply_to": return mail.replyTo.isEmpty ? mail.from.address : list(mail.replyTo)
        case "organization": return mail.part.text("organization")
        case "date": return form.date ?? "Fri, 21 Nov 2025 at 05:00"
        case "read_date": return "Fri, 21 Nov 2025 06:12:00 +0100"
        case "weekday": return "Fri"
        case "year": return "2025"
        case "month": return "11"
        case "day": return "21"
        case "hour": return "05"
        case "minute": return "00"
        case "zone": return "+0000"
        case "subject": return mail.subject
        case "message_id", "mailto_in_reply_to": return mail.messageID
        case "message_id_bare":
            return Octets.replace(
                ">", with: "", in: Octets.replace("<", with: "", in: mail.messageID))
        case "references": return mail.references
        case "original_recipient": return address(mail.to.first)
        case "list": return "list"
        case "initials": return "JU"
        case "user_name": return "Jane"
        case "user_address": return Guess.inbox
        case "user_address_encoded": return Octets.percentEncoded(Guess.inbox)
        case "user_domain": return "home.example"
        case "user_host": return "desktop-7f3k2.home.example"
        case "vacation_subject": return "Out of office"
        case "uuid": return "7D0C1C5E-1111-4C0A-8E2A-0123456789AB"
        case "colleague_address": return "colleague@home.example"
        case "partner_address": return "partner@partner.example"
        case "relay_address": return TeamMail.relay
        case "relay_address_of_partner": return "annaother2@relay.example"
        case "other_name": return "Kim"
        case "other_address": return "kim@other.test"
        case "mailto_to": return mailto.address
        case "mailto_subject": return mailto.subject
        case "mailto_body": return mailto.body
        case "url_encoded": return Octets.percentEncoded("https://juice.example/orders/4711")
        case "url_v3": return "https://juice.example/orders/4711"
        case "uid": return calendar("UID")
        case "sequence": return "2"
        case "dtstamp": return "20251121T060000Z"
        case "dtstart": return "20251201T090000Z"
        case "dtend": return "20251201T100000Z"
        case "dtstart_local": return "20251201T090000"
        case "dtend_local": return "20251201T100000"
        case "recurrence_id": return "20251201T090000Z"
        case "timezone": return "Europe/Berlin"
        case "organizer_name": return organizer.name
        case "organizer_address": return organizer.address
        case "summary": return calendar("SUMMARY")
        case "location": return calendar("LOCATION")
        case "description": return calendar("DESCRIPTION")
        // A program may copy the organizer's text.
        case "comment": return pair.seed % 2 == 0 ? calendar("COMMENT") : "I come"
        case "tnef": return mail.plain
        default: return ""
        }
    }

    private func escapedValue(_ name: String) -> String {
        switch name {
        case "typed_html", "partner_typed_html":
            typed.map { TeamMail.escaped($0) }.joined(separator: "<br>\n")
        case "typed_html_1":
            typed.dropLast(3).map { TeamMail.escaped($0) }.joined(separator: "<br>\n")
        case "typed_html_2":
            typed.suffix(2).map { TeamMail.escaped($0) }.joined(separator: "<br>\n")
        case "original_html": html
        case "original_html_1": halfHTML(1)
        case "original_html_2": halfHTML(2)
        case "original_quoted_html": value(name)
        case "description_html": calendar("DESCRIPTION")
        case "mailto_body_html": TeamMail.escaped(mailto.body)
        default: TeamMail.escaped(value(name))
        }
    }

    private func calendarValue(_ name: String) -> String {
        let value = value(name)
        guard
            ["summary", "location", "description", "comment"].contains(where: {
                name.utf8.elementsEqual($0.utf8)
            })
        else {
            return value
        }
        return Octets.replace(
            "\n", with: "\\n",
            in: ["\\", ";", ","].reduce(value) { Octets.replace($1, with: "\\" + $1, in: $0) })
    }

    // MARK: Parts

    private func content(_ text: String) -> [UInt8] {
        let lines = Octets.lines(text.utf8).joined(separator: [13, 10])
        return form.charset.flatMap { Self.convert(Array(lines), to: $0) } ?? Array(lines)
    }

    /// Nil if the charset lacks a character.
    private static func convert(_ octets: [UInt8], to charset: String) -> [UInt8]? {
        guard let converter = iconv_open(charset, "UTF-8"), converter != iconv_t(bitPattern: -1)
        else { return nil }
        defer { iconv_close(converter) }
        var input = octets.map { CChar(bitPattern: $0) }
        var output = [CChar](repeating: 0, count: octets.count * 4 + 16)
        let (inputCount, outputCount) = (input.count, output.count)
        let left = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output -> Int? in
                var (from, fromLeft) = (input.baseAddress, inputCount)
                var (to, toLeft) = (output.baseAddress, outputCount)
                guard iconv(converter, &from, &fromLeft, &to, &toLeft) != -1 else { return nil }
                return toLeft
            }
        }
        return left.map { output[..<(outputCount - $0)].map { UInt8(bitPattern: $0) } }
    }

    private func encoded(
        _ type: String, _ content: [UInt8], more: String = "", isBase64: Bool = false
    ) -> [UInt8] {
        var coding = isBase64 ? PairSpec.Coding.base64 : pair.answerCoding
        if coding == .plain, Octets.lines(content).contains(where: { $0.count > 900 }) {
            coding = .quotedPrintable
        }
        let (name, octets) =
            switch coding {
            case .base64: ("base64", Octets.base64Lines(content))
            case .quotedPrintable: ("quoted-printable", Octets.quotedPrintable(content))
            case .plain: (content.allSatisfy { $0 < 0x80 } ? "7bit" : "8bit", content)
            }
        return Array(
            "Content-Type: \(type)\r\n\(more)Content-Transfer-Encoding: \(name)\r\n\r\n".utf8)
            + octets + [13, 10]
    }

    private static func multipart(_ kind: String, _ boundary: String, _ parts: [[UInt8]]) -> [UInt8]
    {
        Array("Content-Type: multipart/\(kind); boundary=\"\(boundary)\"\r\n\r\n".utf8)
            + parts.flatMap { Array("--\(boundary)\r\n".utf8) + $0 }
            + Array("--\(boundary)--\r\n".utf8)
    }

    private func body() -> [UInt8] {
        let charset = form.charset ?? "utf-8"
        var alternatives: [[UInt8]] = []
        if let plain = form.plain {
            alternatives.append(
                encoded(
                    "text/plain; charset=\(charset)\(form.isFlowed ? "; format=flowed" : "")",
                    content(plain.filled(value))))
        }
        if let html = form.html {
            var part = encoded("text/html; charset=\(charset)", content(html.filled(escapedValue)))
            if let picture = mail.picture {
                part = Self.multipart("related", "=_rel", [part, picture + [13, 10]])
            }
            alternatives.append(part)
        }
        var again: [[UInt8]] = []
        if let calendar = form.calendar {
            let octets = Array(Invitation.folded(calendar.filled(calendarValue)).utf8)
            alternatives.append(
                encoded(
                    form.calendarType ?? "text/calendar; charset=utf-8; method=REPLY", octets,
                    isBase64: form.isCalendarBase64))
            if let other = form.calendarAgain {
                again.append(
                    encoded(
                        "\(other.type); name=\"\(other.name)\"", octets,
                        more: "Content-Disposition: attachment; filename=\"\(other.name)\"\r\n",
                        isBase64: true))
            }
        }
        var whole =
            alternatives.count == 1
            ? alternatives[0] : Self.multipart("alternative", "=_alt", alternatives)
        if alternatives.isEmpty {
            whole = encoded("text/plain", content(typed.joined(separator: "\n")))
        }
        if let report = form.report {
            var parts = [
                whole,
                Array("Content-Type: message/\(form.reportType)\r\n\r\n".utf8)
                    + content(report.filled(value)) + [13, 10],
            ]
            if let returned = form.returned {
                let header = mail.octets[
                    ..<(Octets.find([13, 10, 13, 10], in: mail.octets) ?? mail.octets.count)]
                let original =
                    returned.utf8.elementsEqual("text/rfc822-headers".utf8)
                    ? Array(header) + [13, 10] : mail.octets
                parts.append(Array("Content-Type: \(returned)\r\n\r\n".utf8) + original + [13, 10])
            }
            return Self.multipart("report; report-type=\(form.reportType)", "=_rep", parts)
        }
        let parts = form.parts.map { part -> [UInt8] in
            let name = part.name.map {
                "\"\(Octets.replace("\"", with: "'", in: $0.filled(value)))\""
            }
            var more = ""
            if let disposition = part.disposition {
                more +=
                    "Content-Disposition: \(disposition)\(name.map { "; filename=\($0)" } ?? "")\r\n"
            }
            if let description = part.description {
                more += "Content-Description: \(description.filled(value))\r\n"
            }
            let type = part.type + (name.map { "; name=\($0)" } ?? "")
            guard part.type.utf8.starts(with: "message/".utf8) else {
                return encoded(
                    type, Array(part.body.filled(value).utf8), more: more, isBase64: true)
            }
            return Array("Content-Type: \(type)\r\n\(more)\r\n".utf8)
                + Array(part.body.filled(value).utf8) + [13, 10]
        }
        return parts.isEmpty && again.isEmpty
            ? whole : Self.multipart("mixed", "=_mix", [whole] + parts + again)
    }

    // MARK: Header section

    private static func isNamed(_ name: String, _ other: String) -> Bool {
        Octets.lower(name.utf8).elementsEqual(other.utf8)
    }

    /// A value in the form of programs: encoded if necessary, and folded if long.
    private static func written(_ value: String) -> String {
        let value =
            value.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x80 }
            ? value : TeamMail.words(value, isBase64: true)
        guard value.utf8.count > 800 else { return value }
        var output: [UInt8] = []
        var column = 0
        for octet in value.utf8 {
            if octet == 0x20, column > 60 {
                output += [13, 10]
                column = 0
            }
            output.append(octet)
            column += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private mutating func compose() {
        var to = form.action == "vacation" || form.action == "receipt" ? [] : mail.replyTo
        if to.isEmpty { to = [mail.from] }
        if form.action == "receipt", let address = mail.part.value("disposition-notification-to") {
            to = ReadMailbox.list(address)
        }
        if form.isCalendar { to = [ReadMailbox(name: "", address: organizer.address)] }
        if form.isUnsubscribe { to = [ReadMailbox(name: "", address: mailto.address)] }
        var cc = pair.isToAll ? mail.to + mail.cc : []
        var from = "Jane <\(Guess.inbox)>"
        var fields: [(name: String, value: String)] = []
        for (name, value) in form.headers {
            var value = value.filled(self.value)
            if Self.isNamed(name, "from") {
                from = value
            } else if Self.isNamed(name, "to") {
                to = ReadMailbox.list(Array(value.utf8))
            } else if Self.isNamed(name, "cc") {
                cc = ReadMailbox.list(Array(value.utf8))
            } else if !Self.isNamed(name, "content-type"), !Self.isNamed(name, "mime-version"),
                !Self.isNamed(name, "content-transfer-encoding")
            {
                if Self.isNamed(name, "subject"), let limit = form.subjectLimit {
                    value = String(decoding: value.utf8.prefix(limit), as: UTF8.self)
                }
                fields.append((name, Self.written(value)))
            }
        }
        sender = form.envelopeFrom?.filled(value) ?? Guess.inbox
        for box in to + cc
        where Octets.lower(box.address.utf8).suffix(14).elementsEqual("@relay.example".utf8) {
            if !Octets.lower(box.address.utf8).elementsEqual(TeamMail.relay.utf8),
                !recipients.contains(box.address)
            {
                recipients.append(box.address)
            }
        }
        // An answering program without its own sender writes to the reverse-path.
        if sender.isEmpty, form.action == "vacation" || form.isBounce { recipients = [mail.sender] }
        var header = [
            "Received: from desktop-7f3k2.home.example ([198.51.100.77]) by mx.home.example; Fri, 21 Nov 2025 05:10:00 +0000",
            "From: \(from)", "To: \(list(to))",
        ]
        if !cc.isEmpty { header.append("Cc: \(list(cc))") }
        header += fields.map { "\($0.name): \($0.value)" }
        if !fields.contains(where: { Self.isNamed($0.name, "subject") }) {
            header.append("Subject: \(Self.written("Re: " + mail.subject))")
        }
        header += [
            "Date: Fri, 21 Nov 2025 06:12:00 +0100", "Message-ID: <abc@home.example>",
            "MIME-Version: 1.0",
        ]
        octets = Array((header.joined(separator: "\r\n") + "\r\n").utf8) + body()
    }
}

/// The mail of a partner that quotes the team's mail, when it arrives at the relay: the result of
/// the partner's program.
package enum PartnerMail {
    package static func octets(
        _ form: ProgramForm, quoting team: TeamMail, _ pair: PairSpec
    ) -> [UInt8] {
        let view = Arrived(
            team.octets, sender: team.sender, shown: team.shown, isSanitized: pair.isSanitized)
        var answer = Octets.lines(ProgramAnswer(form, to: view, pair).octets)
        // It comes from the partner, through the team's own servers.
        let end = answer.firstIndex(of: []) ?? 0
        var header = answer[..<end].filter { line in
            !["received:", "from:", "to:", "cc:"].contains {
                Octets.lower(line).starts(with: $0.utf8)
            }
        }
        header.insert(
            contentsOf: ["From: Partner <partner@juice.example>", "To: \(TeamMail.relay)"].map {
                Array($0.utf8)
            }, at: 0)
        answer = header + answer[end...]
        return Array(answer.joined(separator: [13, 10]))
    }
}
