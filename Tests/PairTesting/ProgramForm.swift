// The forms of answers that programs write, read from Tests/RelayCoreTests/Vectors/programs.

import Foundation

/// A text with placeholders that a program fills in.
package struct Template: Sendable {
    enum Piece: Sendable {
        case text(String)
        case value(String)
    }

    let pieces: [Piece]

    package init(_ text: String) {
        var pieces: [Piece] = []
        let octets = Array(text.utf8)
        var start = 0
        while let opening = Octets.find([0x7B, 0x7B], in: octets, from: start),
            let closing = Octets.find([0x7D, 0x7D], in: octets, from: opening)
        {
            pieces.append(.text(String(decoding: octets[start..<opening], as: UTF8.self)))
            pieces.append(.value(String(decoding: octets[(opening + 2)..<closing], as: UTF8.self)))
            start = closing + 2
        }
        self.pieces = pieces + [.text(String(decoding: octets[start...], as: UTF8.self))]
    }

    package func filled(_ value: (String) -> String) -> String {
        pieces.map { piece in
            switch piece {
            case .text(let text): text
            case .value(let name): value(name)
            }
        }.joined()
    }

    func uses(_ name: String) -> Bool {
        pieces.contains { if case .value(let other) = $0 { other == name } else { false } }
    }
}

/// The action of one program for a mail.
package struct ProgramForm: Sendable {
    struct Wrap: Sendable {
        var width: Int
        var isMarked: Bool
        /// Some lines lose their mark instead.
        var eachLine: Bool
    }

    struct Part: Sendable {
        var type: String
        var name: Template?
        var disposition: String?
        var description: Template?
        var body: Template
    }

    package let id: String
    package let action: String
    /// Whether its form has a source.
    package let isMadeUp: Bool
    /// The parts of it that have no source.
    package let madeUpParts: [String]
    /// Whether no reader can recognise it.
    package var isUnknown = false
    var plain: Template?
    var html: Template?
    var headers: [(name: String, value: Template)] = []
    var envelopeFrom: Template?
    var calendar: Template?
    var calendarType: String?
    var isCalendarBase64 = false
    var calendarAgain: (type: String, name: String)?
    var report: Template?
    var reportType = "disposition-notification"
    var returned: String?
    var parts: [Part] = []
    var mark = "> "
    var wrap: Wrap?
    var charset: String?
    var isFlowed = false
    var linkRewrite: Template?
    var subjectLimit: Int?
    var date: String?

    /// Whether it goes to the reverse-path, from the null sender.
    var isBounce: Bool { action == "bounce" }
    package var isCalendar: Bool { calendar != nil }
    package var isUnsubscribe: Bool {
        action == "unsubscribe" && headers.contains { $0.value.uses("mailto_to") }
    }
    package var isPartner: Bool { action == "partner-quotation" }
    /// Whether a person answers a mail with it, and it needs nothing else.
    package var isReply: Bool { action == "reply" && !isMadeUp && parts.isEmpty }
    /// Whether it breaks the lines that it quotes.
    package var breaksLines: Bool { wrap != nil || isFlowed }
    package var hasMarkup: Bool { html != nil }
    package var sendsFiles: Bool { !parts.isEmpty }
    /// Whether the text returns in a file of the program's own type (TNEF).
    package var sendsText: Bool { parts.contains { $0.body.uses("tnef") } }

    // MARK: Files

    private struct Entry: Decodable {
        struct Wrap: Decodable {
            var width: Int
            var continuation: String
            var each: String?
        }
        struct Part: Decodable {
            var type: String
            var name: String?
            var disposition: String?
            var description: String?
            var body: String
        }
        struct Again: Decodable {
            var type: String
            var name: String
        }
        struct CalendarPart: Decodable {
            var type: String?
            var encoding: String?
            var again_as: Again?
        }
        var id: String
        var action: String?
        var source: String
        var made_up_parts: [String]?
        var plain: String?
        var html: String?
        var template: String?
        var rule: String?
        var date: String?
        var headers: [[String]]?
        var envelope_from: String?
        var calendar: String?
        var calendar_part: CalendarPart?
        var report: String?
        var returned: String?
        var parts: [Part]?
        var mark: String?
        var wrap: Wrap?
        var charset: String?
        var format_flowed: Bool?
        var link_rewrite: String?
        var subject_limit: Int?
        var unknown_form: Bool?
    }

    private static func entries(_ file: String, _ folder: URL) throws -> [Entry] {
        try JSONDecoder().decode([Entry].self, from: Data(contentsOf: folder.appending(path: file)))
    }

    private init(_ entry: Entry) {
        id = entry.id
        action = entry.action ?? "reply"
        isMadeUp = entry.source == "made up"
        madeUpParts = entry.made_up_parts ?? []
        isUnknown = entry.unknown_form ?? false
        plain = entry.plain.map { Template($0) }
        html = entry.html.map { Template($0) }
        headers = (entry.headers ?? []).compactMap {
            $0.count == 2 ? ($0[0], Template($0[1])) : nil
        }
        envelopeFrom = entry.envelope_from.map { Template($0) }
        calendar = entry.calendar.map { Template($0) }
        calendarType = entry.calendar_part?.type
        isCalendarBase64 = entry.calendar_part?.encoding == "base64"
        calendarAgain = entry.calendar_part?.again_as.map { ($0.type, $0.name) }
        report = entry.report.map { Template($0) }
        returned = entry.returned
        parts = (entry.parts ?? []).map {
            Part(
                type: $0.type, name: $0.name.map { Template($0) }, disposition: $0.disposition,
                description: $0.description.map { Template($0) }, body: Template($0.body))
        }
        mark = entry.mark ?? "> "
        wrap = entry.wrap.map {
            Wrap(width: $0.width, isMarked: $0.continuation == "marked", eachLine: $0.each != nil)
        }
        charset = entry.charset
        isFlowed = entry.format_flowed ?? false
        linkRewrite = entry.link_rewrite.map { Template($0) }
        subjectLimit = entry.subject_limit
    }

    /// A reply with a line, or a block of fields, above its quotation.
    private init(
        _ id: String, above: String, below: String, date: String?, isHTML: Bool, isMadeUp: Bool
    ) {
        self.id = id
        action = "reply"
        self.isMadeUp = isMadeUp
        madeUpParts = []
        plain = Template("{{typed}}\n\n\(above)\n\(below)\n")
        if isHTML {
            let lines = Octets.lines(of: above).map {
                Octets.replace(">", with: "&gt;", in: Octets.replace("<", with: "&lt;", in: $0))
            }
            html = Template(
                "<div>{{typed_html}}</div><div>\(lines.joined(separator: "<br>"))</div><blockquote>{{original_html}}</blockquote>"
            )
        }
        headers = [
            ("Subject", Template("Re: {{subject}}")), ("In-Reply-To", Template("{{message_id}}")),
            ("References", Template("{{references}} {{message_id}}")),
        ]
        self.date = date
    }

    /// A provider's report about a mail.
    private init(
        _ id: String, plain: String, report: (type: String, text: String)?, returned: String?
    ) {
        self.id = id
        (action, isMadeUp, madeUpParts) = ("bounce", false, [])
        self.plain = Template(plain)
        headers = [
            ("From", Template("MAILER-DAEMON@home.example")),
            ("Subject", Template("Undelivered Mail Returned to Sender")),
            ("Auto-Submitted", Template("auto-replied")),
        ]
        envelopeFrom = Template("")
        self.report = report.map { Template($0.text) }
        reportType = report?.type ?? ""
        self.returned = returned
    }

    /// Reports in the form of RFC 3464 (Postfix), RFC 5965 and qmail.
    private static let reports: [ProgramForm] = {
        let said = "550 5.7.1 <{{user_address}}>: content refused"
        let failed =
            "Reporting-MTA: dns; mx.home.example\n\nFinal-Recipient: rfc822; {{user_address}}\n"
            + "Action: failed\nStatus: 5.7.1\nDiagnostic-Code: smtp; \(said)\n"
        let text =
            "This is the mail system at host mx.home.example.\n\n<{{user_address}}>: host mx2.home.example said: \(said)\n"
        let complaint =
            "Feedback-Type: abuse\nUser-Agent: Home/1\nVersion: 1\nOriginal-Rcpt-To: {{user_address}}\n"
        let prose =
            "Hi. This is the qmail-send program at home.example.\n\n<{{user_address}}>:\nContent refused (#5.7.1)\n\n"
            + "--- Below this line is a copy of the message.\n\n{{original_raw}}\n"
        return [
            ProgramForm(
                "bounce headers", plain: text, report: ("delivery-status", failed),
                returned: "text/rfc822-headers"),
            ProgramForm(
                "bounce message", plain: text, report: ("delivery-status", failed),
                returned: "message/rfc822"),
            ProgramForm("bounce prose", plain: prose, report: nil, returned: nil),
            ProgramForm(
                "complaint", plain: text, report: ("feedback-report", complaint),
                returned: "message/rfc822"),
        ]
    }()

    /// All forms: those of programs, then attributions with marks, attributions without (made up),
    /// and header blocks.
    package static func read(_ folder: URL) throws -> [ProgramForm] {
        var forms = try entries("programs.json", folder).map { ProgramForm($0) } + reports
        let attributions = try entries("attributions.json", folder)
        for entry in attributions {
            guard let above = entry.template else { continue }
            let isMadeUp = entry.source == "made up"
            forms.append(
                ProgramForm(
                    "attribution \(entry.id)", above: above, below: "\n{{original_quoted}}",
                    date: entry.date,
                    isHTML: forms.count % 3 == 0, isMadeUp: isMadeUp))
        }
        for entry in attributions {
            guard let above = entry.template else { continue }
            forms.append(
                ProgramForm(
                    "attribution without marks \(entry.id)", above: above,
                    below: "\n{{original_plain}}", date: entry.date,
                    isHTML: false, isMadeUp: true))
        }
        for entry in try entries("header-blocks.json", folder) {
            guard let above = entry.template else { continue }
            // If the block has marks, the text below it also has marks.
            let isMarked = above.utf8.first == UInt8(ascii: ">")
            forms.append(
                ProgramForm(
                    "block \(entry.id)", above: above,
                    below: isMarked ? ">\n{{original_quoted}}" : "\n{{original_plain}}",
                    date: entry.date, isHTML: false,
                    isMadeUp: entry.source == "made up"))
        }
        return forms
    }
}
