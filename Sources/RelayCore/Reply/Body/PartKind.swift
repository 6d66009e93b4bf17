// The kind of a part: text that can be rewritten, or content that can only be searched.

import InternetMessage

enum PartKind {
    private static let textApplications: Set<String> = [
        "ics", "json", "xml", "xhtml+xml", "javascript", "ecmascript", "x-javascript", "vcard",
        "x-vcard", "rtf", "sql", "yaml",
        "x-yaml",
        "toml", "x-sh", "x-ics", "ld+json", "rss+xml", "atom+xml", "x-www-form-urlencoded",
    ]

    /// Whether the body is text that can be rewritten. A `message/…` that was not parsed is fields
    /// and text.
    static func isText(_ type: ContentType) -> Bool {
        if type.matches("text") || type.matches("message") || type.matches("multipart") {
            return true
        }
        if type.subtype.hasSuffix("+xml") || type.subtype.hasSuffix("+json") { return true }
        guard type.matches("application") else { return false }
        return textApplications.contains(type.subtype)
    }

    static func syntax(_ type: ContentType) -> TextSyntax {
        let isMarkup =
            ["enriched", "richtext"].contains(type.subtype) || type.subtype.hasSuffix("xml")
            || holdsHTML(type.subtype)
        return isMarkup ? .markup : .plain
    }

    /// Whether `html` is anywhere in a subtype. The standard library's search takes longer than all
    /// other work on a small part.
    private static func holdsHTML(_ subtype: String) -> Bool {
        var word: UInt32 = 0
        for octet in subtype.utf8 {
            word = word << 8 | UInt32(octet)
            if word == 0x6874_6D6C { return true }
        }
        return false
    }

    /// Whether lines are folded as in iCalendar and vCard (RFC 5545 section 3.1, RFC 6350 section
    /// 3.2).
    static func isContentLines(_ type: ContentType) -> Bool {
        ["calendar", "vcard", "x-vcard", "directory", "x-vcalendar", "ics", "x-ics"].contains(
            type.subtype)
    }

    /// The same for a part. In a forward, the name of its file can also make a text a calendar.
    static func isContentLines(_ part: MIMEPart) -> Bool {
        isContentLines(part.contentType)
            || (isCalendar(part)
                && !["calendar+xml", "calendar+json"].contains(part.contentType.subtype))
    }

    /// Whether the body is text that no user writes: a drawing, or a calendar in a form for
    /// programs.
    static func isWrittenByProgram(_ type: ContentType) -> Bool {
        type.matches("image") || ["calendar+xml", "calendar+json"].contains(type.subtype)
    }

    /// Whether a part of a forward is a calendar, by its type or by the name of its file, like in
    /// calendar programs.
    static func isCalendar(_ part: MIMEPart) -> Bool {
        let type = part.contentType
        if ["calendar", "x-vcalendar", "ics", "x-ics", "calendar+xml", "calendar+json"].contains(
            type.subtype)
        {
            return true
        }
        guard !type.matches("multipart"), !type.matches("message") else { return false }
        let name = (part.fileName ?? "").lowercased()
        return [".ics", ".ical", ".icalendar", ".vcs", ".ifb"].contains { name.hasSuffix($0) }
    }

    /// Whether a part of a forward is text that programs show, with working links. An attached file
    /// stays unchanged.
    static func isShown(_ part: MIMEPart) -> Bool {
        let type = part.contentType
        guard type.matches("text") || type.matches("application", "xhtml+xml") else { return false }
        return part.disposition?.disposition != "attachment" && !isContentLines(type)
    }

    /// Whether the body is a vCard, in which a property may be a key (RFC 6350 section 6.8.1).
    static func isVCard(_ type: ContentType) -> Bool {
        ["vcard", "x-vcard", "directory"].contains(type.subtype)
    }

    /// Whether the body is header fields: of a message, or of a report about one.
    static func isHeaderFields(_ type: ContentType) -> Bool {
        type.matches("text", "rfc822-headers") || type.matches("text", "rfc822-header")
            || type.matches("message", "global-headers") || isReport(type)
    }

    /// Whether the body is the fields of a report.
    static func isReport(_ type: ContentType) -> Bool {
        guard type.matches("message") else { return false }
        return [
            "delivery-status", "global-delivery-status", "disposition-notification",
            "global-disposition-notification",
            "feedback-report", "tracking-status",
        ].contains(type.subtype)
    }

    /// Whether a part of another declared type may still be text, as attachments of unknown type
    /// often are.
    static func mayBeText(_ part: MIMEPart) -> Bool {
        let type = part.contentType
        if type.matches("application", "octet-stream") || type.matches("application", "x-unknown") {
            return true
        }
        guard !type.matches("image"), !type.matches("audio"), !type.matches("video"),
            !type.subtype.contains("pgp"),
            !type.subtype.contains("pkcs7"), !type.subtype.contains("signature")
        else { return false }
        let name = (part.fileName ?? "").lowercased()
        return [
            ".txt", ".ics", ".vcf", ".eml", ".csv", ".htm", ".html", ".md", ".log", ".xml", ".json",
        ].contains {
            name.hasSuffix($0)
        }
    }
}

extension MIMEPart {
    /// The file name of a part, as programs read it.
    var fileName: String? { disposition?.filename ?? contentType.parameters["name"] }
}
