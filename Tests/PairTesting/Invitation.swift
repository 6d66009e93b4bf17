// Invitations of the team's, and the data that a calendar reads from them.

package enum Invitation {
    /// Its iCalendar object, folded; lines end with CRLF.
    package static func text(plants: [Plant], _ side: Side) -> String {
        func first(_ place: Place) -> String? { plants.first { $0.place == place }?.text(side) }
        func value(_ text: String) -> String {
            ["\\", ";", ","].reduce(text) { Octets.replace($1, with: "\\" + $1, in: $0) }
        }
        var lines = [
            "BEGIN:VCALENDAR", "PRODID:-//Juice//Shop//EN", "VERSION:2.0", "METHOD:REQUEST",
            "BEGIN:VEVENT",
            "UID:\(first(.uid) ?? "meeting-4711")@juice.example", "DTSTAMP:20251121T050000Z",
            "SEQUENCE:2",
        ]
        if let guess = first(.timeZone) {
            lines.append("DTSTART;TZID=\"\(guess)\":20251201T090000")
        } else {
            lines.append("DTSTART:20251201T090000Z")
        }
        lines += [
            "DTEND:20251201T100000Z",
            "ORGANIZER;CN=\"\(first(.organizerName) ?? "Juice")\":mailto:\(TeamMail.team)",
            "ATTENDEE;ROLE=REQ-PARTICIPANT;RSVP=TRUE;CN=\"\(first(.attendeeName) ?? "Jane")\":mailto:\(TeamMail.relay)",
            "SUMMARY\(first(.languageParameter).map { ";X-L=\"\($0)\"" } ?? ""):\(value(first(.summary) ?? "Meeting"))",
        ]
        if let address = first(.attendee) { lines.append("ATTENDEE;CN=Kim:mailto:\(address)") }
        if let guess = first(.calendarX) { lines.append("X-JUICE-ID:\(value(guess))") }
        if let guess = first(.calendarComment) { lines.append("COMMENT:\(value(guess))") }
        if let guess = first(.description) {
            lines.append("DESCRIPTION:We meet\\, \(value(guess))\\nand talk")
        }
        if let guess = first(.location) { lines.append("LOCATION:\(value(guess))") }
        if let guess = first(.calendarURL) {
            lines.append("URL:https://juice.example/?\(Octets.percentEncoded(guess))")
        }
        if let guess = first(.alternateText) {
            lines.append(
                "LOCATION;ALTREP=\"https://juice.example/\(Octets.percentEncoded(guess))\":Room")
        }
        if let guess = first(.contact) { lines.append("CONTACT:\(value(guess))") }
        if let guess = first(.categories) { lines.append("CATEGORIES:A,\(value(guess))") }
        if let guess = first(.markupDescription) {
            lines.append("X-ALT-DESC;FMTTYPE=text/html:<p>\(value(guess))</p>")
        }
        if let guess = first(.alarm) {
            lines += [
                "BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:-PT15M", "DESCRIPTION:\(value(guess))",
                "END:VALARM",
            ]
        }
        return folded((lines + ["END:VEVENT", "END:VCALENDAR"]).map { $0 + "\r\n" }.joined())
    }

    /// With lines of at most 75 octets (RFC 5545, 3.1).
    package static func folded(_ text: String) -> String {
        var output: [UInt8] = []
        for line in Octets.lines(text.utf8) where !line.isEmpty {
            var column = 0
            for octet in line {
                if column >= 74, octet & 0xC0 != 0x80 {
                    output += [13, 10, 0x20]
                    column = 1
                }
                output.append(octet)
                column += 1
            }
            output += [13, 10]
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// The first property of this name in the event: its parameters, and its value without escapes.
    package static func property(
        _ name: String, in text: String
    ) -> (parameters: String, value: String)? {
        var lines: [[UInt8]] = []
        for line in Octets.lines(text.utf8) {
            if let first = line.first, first == 0x20 || first == 9, !lines.isEmpty {
                lines[lines.count - 1] += line.dropFirst()
            } else {
                lines.append(line)
            }
        }
        for line in lines {
            guard line.starts(with: name.utf8), line.count > name.utf8.count else { continue }
            let next = line[name.utf8.count]
            guard next == UInt8(ascii: ":") || next == UInt8(ascii: ";") else { continue }
            var isQuoted = false
            guard
                let colon = line.firstIndex(where: {
                    if $0 == UInt8(ascii: "\"") { isQuoted.toggle() }
                    return $0 == UInt8(ascii: ":") && !isQuoted
                })
            else { continue }
            var value: [UInt8] = []
            var isEscaped = false
            for octet in line[(colon + 1)...] {
                if isEscaped {
                    value.append(octet == UInt8(ascii: "n") ? 10 : octet)
                    isEscaped = false
                } else if octet == UInt8(ascii: "\\") {
                    isEscaped = true
                } else {
                    value.append(octet)
                }
            }
            return (
                String(decoding: line[name.utf8.count..<colon], as: UTF8.self),
                String(decoding: value, as: UTF8.self)
            )
        }
        return nil
    }
}
