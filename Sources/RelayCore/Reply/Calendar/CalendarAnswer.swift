// Rebuilds the answer to a team's invitation. The content of the invitation returns unchanged; of
// the user's data, only the answer is sent.

import InternetMessage
import Support

/// An iTIP object (RFC 5546) that answers an invitation of the team.
struct CalendarAnswer {
    private let root: CalendarComponent
    private let method: [UInt8]?
    /// Whether the calendar had more content than can be read.
    private let isOverfull: Bool

    /// Methods by which an attendee answers an organizer (RFC 5546 section 1.4).
    private static let answers = ["REPLY", "COUNTER", "DECLINECOUNTER", "REFRESH"].map {
        Array($0.utf8)
    }

    /// Nil if the calendar is the user's own: it is not an answer, and its organizer has no reverse
    /// address.
    init?(_ text: [UInt8], isReverse: (AddrSpec) -> Bool) {
        guard let root = CalendarComponent.read(text) else {
            // Only the method is read, which comes before all components.
            method = Self.method(in: text)
            guard method.map(Self.answers.contains) == true || Self.namesReverse(text, isReverse)
            else { return nil }
            (self.root, isOverfull) = (CalendarComponent(name: []), true)
            return
        }
        let all = root.all
        method = all.first { $0.isNamed("METHOD") }.map { CalendarProperty.upper($0.value) }
        let isAnswer = all.contains {
            $0.isNamed("METHOD") && Self.answers.contains(CalendarProperty.upper($0.value))
        }
        guard isAnswer || all.contains(where: { Self.isOfTeam($0, isReverse) }) else { return nil }
        (self.root, isOverfull) = (root, false)
    }

    private static func isOfTeam(
        _ property: CalendarProperty, _ isReverse: (AddrSpec) -> Bool
    ) -> Bool {
        guard property.isNamed("ORGANIZER") else { return false }
        if let address = property.address, isReverse(address) { return true }
        return property.parameter("EMAIL").flatMap(CalendarProperty.address).map(isReverse) ?? false
    }

    private static func properties(_ text: [UInt8]) -> some Sequence<CalendarProperty> {
        ContentLines.Unfolded(text).octets.split(separator: 0x0A).lazy.compactMap {
            CalendarProperty($0.last == 0x0D ? $0.dropLast() : $0)
        }
    }

    private static func method(in text: [UInt8]) -> [UInt8]? {
        properties(text).first { $0.isNamed("METHOD") }.map { CalendarProperty.upper($0.value) }
    }

    private static func namesReverse(_ text: [UInt8], _ isReverse: (AddrSpec) -> Bool) -> Bool {
        properties(text).contains { isOfTeam($0, isReverse) }
    }

    // MARK: Writing

    /// The addresses in the answer, and the rewriting of its text.
    struct Parties {
        /// The user, under the address that the team knows.
        let attendee: AddrSpec
        /// The recipient of the answer, if the calendar does not name the organizer.
        let organizer: AddrSpec?
        /// Returns the correspondent behind a reverse address of the account.
        let correspondent: (AddrSpec) -> AddrSpec?
        /// Whether an address is a reverse address of the account.
        let isReverse: (AddrSpec) -> Bool
        /// A text without addresses.
        let neutral: ([UInt8]) -> [UInt8]
    }

    /// The calendar as the team gets it, in UTF-8.
    func rebuilt(for parties: Parties) -> [UInt8] {
        var writer = CalendarWriter(parties: parties)
        let calendars = root.children.filter { $0.isNamed("VCALENDAR") }
        for calendar in calendars.isEmpty ? [root] : calendars {
            writer.line("BEGIN:VCALENDAR")
            writer.line("PRODID:-//Postern//Relay//EN")
            writer.line("VERSION:2.0")
            if calendar.properties.contains(where: { $0.isNamed("CALSCALE") }) {
                writer.line("CALSCALE:GREGORIAN")
            }
            let own = calendar.properties.first { $0.isNamed("METHOD") }.map {
                CalendarProperty.upper($0.value)
            }
            if let method = own ?? method, method.count <= 20,
                method.allSatisfy({ $0.isASCIILetter || $0 == UInt8(ascii: "-") })
            {
                writer.line(Array("METHOD:".utf8) + method)
            }
            if !isOverfull {
                for component in calendar.children { writer.write(component) }
            }
            writer.line("END:VCALENDAR")
        }
        return writer.output
    }
}

/// Writes the lines of an answer.
private struct CalendarWriter {
    let parties: CalendarAnswer.Parties
    private(set) var output: [UInt8] = []

    init(parties: CalendarAnswer.Parties) { self.parties = parties }

    mutating func line(_ text: String) { line(Array(text.utf8)) }

    mutating func line(_ octets: [UInt8]) {
        output += ContentLines.fold(octets, lineBreak: [0x0D, 0x0A]) + [0x0D, 0x0A]
    }

    private static func set(_ names: String) -> Set<[UInt8]> {
        Set(names.utf8.split { $0 == 0x20 || $0 == 0x0A }.map { Array($0) })
    }

    private static let components = set("VEVENT VTODO VJOURNAL VFREEBUSY VTIMEZONE")
    private static let observances = set("STANDARD DAYLIGHT")
    /// Properties with a value that is a time, a number or a rule.
    private static let plain = set(
        """
        SEQUENCE DTSTAMP RECURRENCE-ID DTSTART DTEND DUE DURATION COMPLETED PERCENT-COMPLETE RRULE RDATE EXDATE EXRULE STATUS
        PRIORITY FREEBUSY LAST-MODIFIED TZOFFSETFROM TZOFFSETTO CREATED TRANSP
        """)
    /// Properties that may occur more than once.
    private static let repeated = set("RDATE EXDATE FREEBUSY COMMENT REQUEST-STATUS RRULE")
    private static let parameters = set("VALUE RANGE FBTYPE RELATED")
    /// Vocabularies of RFC 5545 section 3.2.
    private static let participation: [([UInt8], Set<[UInt8]>)] = [
        ("CUTYPE", "INDIVIDUAL GROUP RESOURCE ROOM UNKNOWN"),
        ("ROLE", "CHAIR REQ-PARTICIPANT OPT-PARTICIPANT NON-PARTICIPANT"),
        ("PARTSTAT", "NEEDS-ACTION ACCEPTED DECLINED TENTATIVE DELEGATED COMPLETED IN-PROCESS"),
        ("RSVP", "TRUE FALSE"),
    ].map { (Array($0.0.utf8), set($0.1)) }

    mutating func write(_ component: CalendarComponent) {
        guard Self.components.contains(component.name) || Self.observances.contains(component.name)
        else { return }
        line(Array("BEGIN:".utf8) + component.name)
        let attendee = attendee(of: component)
        var seen: Set<[UInt8]> = []
        for property in component.properties
        where seen.insert(property.name).inserted || Self.repeated.contains(property.name) {
            write(property, attendee)
        }
        for child in component.children
        where component.isNamed("VTIMEZONE") && Self.observances.contains(child.name) {
            write(child)
        }
        line(Array("END:".utf8) + component.name)
    }

    private mutating func write(_ property: CalendarProperty, _ attendee: CalendarProperty?) {
        switch String(decoding: property.name, as: UTF8.self) {
        case "UID", "TZID":
            // Unchanged, as the team looks for it.
            guard property.value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return }
            line(property.name + [UInt8(ascii: ":")] + property.value)
        case "SUMMARY", "COMMENT", "TZNAME":
            let text = Self.escaped(parties.neutral(Self.unescaped(property.value)))
            line(property.name + [UInt8(ascii: ":")] + text)
        case "REQUEST-STATUS": requestStatus(property.value)
        case "ORGANIZER":
            let named = property.address.flatMap(parties.correspondent)
            guard let organizer = named ?? parties.organizer else { return }
            line(Array("ORGANIZER:mailto:".utf8) + Self.uri(organizer))
        case "ATTENDEE":
            guard let attendee else { return }
            var text = Array("ATTENDEE".utf8)
            for (name, words) in Self.participation {
                guard
                    let value = attendee.parameter(String(decoding: name, as: UTF8.self)).map({
                        CalendarProperty.upper($0)
                    }),
                    words.contains(value)
                else { continue }
                text += [UInt8(ascii: ";")] + name + [UInt8(ascii: "=")] + value
            }
            line(text + Array(":mailto:".utf8) + Self.uri(parties.attendee))
        default:
            guard Self.plain.contains(property.name), Self.isPlain(property.value) else { return }
            line(property.name + parameters(of: property) + [UInt8(ascii: ":")] + property.value)
        }
    }

    /// The address with the characters of RFC 6068 unencoded, as calendar programs compare it octet
    /// by octet.
    private static func uri(_ address: AddrSpec) -> [UInt8] {
        MailtoURI.percentEncoded(Array(address.wireForm.utf8), true)
    }

    /// The attendee who answers. Found by the form of the calendar, never by the identity of the
    /// user.
    private func attendee(of component: CalendarComponent) -> CalendarProperty? {
        let all = component.properties.filter { $0.isNamed("ATTENDEE") }
        let others = all.filter { !($0.address.map(parties.isReverse) ?? false) }
        let answering = others.first {
            $0.parameter("PARTSTAT").map { !$0.equalsIgnoringASCIICase("NEEDS-ACTION".utf8) }
                ?? false
        }
        return answering ?? others.first ?? all.first
    }

    private static func isPlain(_ value: [UInt8]) -> Bool {
        !value.isEmpty && value.count <= 2_000
            && value.allSatisfy {
                (0x41...0x5A).contains($0) || $0.isASCIIDigit || ":/;=,+-.".utf8.contains($0)
            }
    }

    private func parameters(of property: CalendarProperty) -> [UInt8] {
        var text: [UInt8] = []
        for (name, values) in property.parameters {
            guard let value = values.first else { continue }
            if name.elementsEqual("TZID".utf8) {
                // It names a VTIMEZONE of this calendar.
                guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") })
                else { continue }
                let quote: [UInt8] =
                    value.contains { ",;:".utf8.contains($0) } ? [UInt8(ascii: "\"")] : []
                text += [UInt8(ascii: ";")] + name + [UInt8(ascii: "=")] + quote + value + quote
            } else if Self.parameters.contains(name), value.count <= 40,
                value.allSatisfy({ $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") })
            {
                text += [UInt8(ascii: ";")] + name + [UInt8(ascii: "=")] + value
            }
        }
        return text
    }

    /// RFC 5546 section 3.6: the received code, with the words of the standard.
    private mutating func requestStatus(_ value: [UInt8]) {
        let code = value.prefix { $0 != UInt8(ascii: ";") }
        guard code.count >= 3, code.count <= 8,
            code.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: ".") })
        else { return }
        let words =
            switch code.first {
            case UInt8(ascii: "1"): "Preliminary success"
            case UInt8(ascii: "2"): "Success"
            case UInt8(ascii: "3"): "Client error"
            case UInt8(ascii: "4"): "Scheduling error"
            default: "Service error"
            }
        line(Array("REQUEST-STATUS:".utf8) + code + Array(";".utf8) + Array(words.utf8))
    }

    private static func unescaped(_ value: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        var index = 0
        while index < value.count {
            if value[index] == UInt8(ascii: "\\"), index + 1 < value.count,
                "nN\\,;".utf8.contains(value[index + 1])
            {
                let next = value[index + 1]
                text.append(next | 0x20 == UInt8(ascii: "n") ? 0x0A : next)
                index += 2
            } else {
                text.append(value[index])
                index += 1
            }
        }
        return text
    }

    private static func escaped(_ text: [UInt8]) -> [UInt8] {
        text.flatMap { octet -> [UInt8] in
            switch octet {
            case 0x0A: Array("\\n".utf8)
            case UInt8(ascii: "\\"), UInt8(ascii: ","), UInt8(ascii: ";"):
                [UInt8(ascii: "\\"), octet]
            case 0x09, 0x20...0x7E, 0x80...: [octet]
            default: []
            }
        }
    }
}
