// The header fields of parts: an allowlist, and their values rewritten, file names and parameters included.

import InternetMessage

enum PartHeader {
    /// Fields of a part that pass; every other one is dropped.
    private static let passing: Set<String> = [
        "content-type", "content-transfer-encoding", "content-disposition", "content-id", "content-description",
        "content-language",
        "content-location", "content-class", "content-duration", "content-features", "content-alternative", "mime-version",
    ]

    /// Fields of an attached message that are removed: its path, which reveals the user, and signatures that no longer hold.
    private static let droppedOfMessage: Set<String> = [
        "received", "return-path", "delivered-to", "x-delivered-to", "x-original-to", "x-envelope-to", "x-envelope-from",
        "envelope-to",
        "x-forwarded-to", "x-forwarded-for", "x-received", "received-spf", "authentication-results", "dkim-signature",
        "domainkey-signature", "x-google-dkim-signature", "arc-seal", "arc-message-signature", "arc-authentication-results",
        "x-gm-message-state", "x-originating-ip", "x-source-ip", "x-mailer-info", "content-md5", "content-length", "x-uid",
        "x-uidl",
        "status", "x-status", "x-mozilla-status", "x-mozilla-status2", "x-mozilla-keys", "x-account-key", "bcc",
        "autocrypt", "autocrypt-gossip", "autocrypt-setup-message", "openpgp", "x-pgp-sig", "x-pgp-key", "x-pgp-fingerprint",
    ]

    /// Fields that pass of a forward attached to an answer. Others may hold any text of the team, of which nothing is
    /// remembered.
    private static let passingOfForward: Set<String> = [
        "from", "to", "cc", "sender", "reply-to", "subject", "comments", "keywords", "date", "message-id", "in-reply-to",
        "references",
        "mime-version",
    ]

    /// Whether a field of a forward that is returned without its body passes.
    static func passesOfForward(_ name: String) -> Bool { passingOfForward.contains(name) && !idFields.contains(name) }

    /// Fields of an attached message that name messages: an id is the team's, or hidden.
    private static let idFields: Set<String> = ["message-id", "resent-message-id", "in-reply-to", "references"]

    /// Defects for which a header section is rewritten, even where each of its fields stays.
    private static let unsafe: Set<MessageDefect> = [.nul, .bareCR, .controlCharacter, .lineWithoutColon, .emptyName]

    /// The Content-* fields of the message itself.
    static func contentFields(
        of root: MIMEPart, with result: BodyRewriter.Result, text: TextRewriter, work: WorkBudget
    ) -> [HeaderField] {
        rewrite(root, with: result, place: .whole, text: text, work: work) { passing.contains($0) && $0 != "mime-version" }.fields
    }

    /// The fields of a part; nil where they are unchanged.
    static func partFields(
        of part: MIMEPart, with result: BodyRewriter.Result, isForward: Bool, text: TextRewriter, work: WorkBudget
    ) -> [HeaderField]? {
        let rewritten = rewrite(part, with: result, place: isForward ? .quoted : .whole, text: text, work: work) {
            passing.contains($0)
        }
        return rewritten.isChanged ? rewritten.fields : nil
    }

    /// The fields of an attached message; nil where they stay.
    static func messageFields(
        of message: MIMEPart, with result: BodyRewriter.Result, isForward: Bool, text: TextRewriter, work: WorkBudget
    ) -> [HeaderField]? {
        let rewritten = rewrite(message, with: result, place: isForward ? .quoted : .typed, text: text, work: work) {
            if isForward { return passingOfForward.contains($0) || $0.hasPrefix("content-") }
            return !(droppedOfMessage.contains($0) || $0.hasPrefix("x-postern-") || $0.hasPrefix("x-ms-exchange-") || $0.isEmpty)
        }
        return rewritten.isChanged ? rewritten.fields : nil
    }

    private static func rewrite(
        _ part: MIMEPart, with result: BodyRewriter.Result, place: TextPlace, text: TextRewriter, work: WorkBudget,
        keeps: (String) -> Bool
    ) -> (fields: [HeaderField], isChanged: Bool) {
        var fields: [HeaderField] = []
        var isChanged = !part.headerDefects.isEmpty && !part.headerDefects.isDisjoint(with: unsafe)
        var seen: Set<String> = []
        var ids: OutwardIDs?
        for field in part.header.fields {
            let name = field.name.lowercased()
            // Two programs could choose differently between two fields of one name.
            // A line like `From anna@example.org Tue May 10 11:28` has a name in its name.
            let isClean =
                !field.bytes[..<field.nameLength].contains(where: { $0 == 0x40 || $0 == 0x2E || $0 == 0x20 })
                || text.rewrite(Array(field.bytes[..<field.nameLength])) == nil
            guard isClean, keeps(name), !name.isEmpty, !name.hasPrefix("content-") || seen.insert(name).inserted else {
                isChanged = true
                continue
            }
            if idFields.contains(name) {
                let outward = ids ?? text.ids(in: part.header, work: work)
                ids = outward
                let old = MessageIDs.ids(in: field.rawValue)
                // The copy that is searched has none of the team's guesses.
                if text.names.isShadow { continue }
                let new = outward.outward(old)
                if !Set(old).isDisjoint(with: new) { _ = text.names.judge.keepsAnother() }
                // Text next to ids is not part of them (RFC 5322 section 3.6.4).
                if new == old, field.rawValue.filter({ !$0.isFoldingWhiteSpace }) == old.flatMap({ [0x3C] + $0 + [0x3E] }) {
                    fields.append(field)
                } else {
                    isChanged = true
                    if !new.isEmpty { fields.append(HeaderField(name: field.name, rawValue: MessageIDs.value(new))) }
                }
                continue
            }
            let new = rewrite(field, name: name, part: part, result: result, place: place, text: text)
            if new != nil { isChanged = true }
            fields.append(new ?? field)
        }
        if let encoding = result.transferEncoding, !seen.contains("content-transfer-encoding") {
            fields.append(HeaderField("Content-Transfer-Encoding", encoding.name))
            isChanged = true
        }
        if let type = result.contentType, !seen.contains("content-type") {
            fields.append(HeaderField(name: "Content-Type", rawValue: folded(type.serialized, name: "Content-Type")))
            isChanged = true
        }
        return (fields, isChanged)
    }

    /// The new field; nil where it stays.
    private static func rewrite(
        _ field: HeaderField, name: String, part: MIMEPart, result: BodyRewriter.Result, place: TextPlace, text: TextRewriter
    ) -> HeaderField? {
        switch name {
        case "content-type":
            var type = result.contentType ?? part.contentType
            var changed = rewrite(&type.parameters, place: place, text: text)
            if let start = type.parameters["start"], let id = text.contentIDs.outward(start.utf8) {
                type.parameters["start"] = String(decoding: id, as: UTF8.self)
                changed.isAny = true
            }
            guard
                changed.isAny || result.contentType != nil || !isSafe(field)
                    || holdsMention(field, beside: changed.kept, text: text)
            else { return nil }
            return HeaderField(name: field.name, rawValue: folded(type.serialized, name: field.name))
        case "content-disposition":
            var disposition = ContentDisposition.parse(field.rawValue)
            let changed = rewrite(&disposition.parameters, place: place, text: text)
            guard changed.isAny || !isSafe(field) || holdsMention(field, beside: changed.kept, text: text) else { return nil }
            return HeaderField(name: field.name, rawValue: folded(disposition.serialized, name: field.name))
        case "content-transfer-encoding":
            if let encoding = result.transferEncoding { return HeaderField(field.name, encoding.name) }
            guard !isSafe(field) || text.rewrite(field.bytes) != nil else { return nil }
            return HeaderField(field.name, part.transferEncoding.name)
        case "content-id" where text.contentIDs.outward(field.rawValue) != nil:
            return text.contentIDs.outward(field.rawValue).map { HeaderField(name: field.name, rawValue: [0x20] + $0) }
        default:
            let value = text.rewriteUnstructured(field, place: place)
            return value.elementsEqual(field.rawValue) ? nil : HeaderField(name: field.name, rawValue: value)
        }
    }

    private static func isSafe(_ field: HeaderField) -> Bool { field.controls.isEmpty && field.bytes.isValidUTF8 }

    /// Rewrites the values. The boundary is not among them: it changes together with its delimiter lines.
    /// - Returns: whether anything was changed, and the parameters that keep a mention of the team's.
    private static func rewrite(
        _ parameters: inout MIMEParameters, place: TextPlace, text: TextRewriter
    ) -> (isAny: Bool, kept: Set<String>) {
        var isChanged = false
        var kept: Set<String> = []
        for index in parameters.list.indices {
            let value = Array(parameters.list[index].value.utf8)
            let isBoundary = parameters.list[index].name == "boundary"
            guard let rewritten = isBoundary ? nil : text.rewrite(value, syntax: .fileName, place: place) else {
                if text.keepsMention(value, syntax: .fileName, place: place) { kept.insert(parameters.list[index].name.text) }
                continue
            }
            parameters.list[index].bytes = rewritten
            parameters.list[index].charset = rewritten.allSatisfy({ $0 < 0x80 }) ? nil : "utf-8"
            isChanged = true
        }
        return (isChanged, kept)
    }

    /// Whether a field holds a mention outside the parameters that keep one: for example in a comment, which no value shows.
    private static func holdsMention(_ field: HeaderField, beside kept: Set<String>, text: TextRewriter) -> Bool {
        guard !kept.isEmpty else { return text.rewrite(field.bytes) != nil }
        var seen: Set<String> = []
        var rest = Array(field.bytes[...field.nameLength])
        for segment in segments(field.unfoldedBytes) {
            let name = String(decoding: segment.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self).lowercased().filter {
                $0 != " " && $0 != "\t"
            }
            // `filename*0*` is a piece of `filename` (RFC 2231 section 3).
            let isKept =
                kept.contains(String(name.prefix { $0 != "*" }))
                && isOneValue(segment.drop { $0 != UInt8(ascii: "=") }.dropFirst())
            if !isKept || !seen.insert(name).inserted { rest += segment + [UInt8(ascii: ";")] }
        }
        return text.rewrite(rest) != nil
    }

    /// The text between the semicolons that are not within a quoted string.
    private static func segments(_ value: some Collection<UInt8>) -> [[UInt8]] {
        var segments: [[UInt8]] = [[]]
        var isQuoted = false
        var isEscaped = false
        for octet in value {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, octet == UInt8(ascii: "\\") {
                isEscaped = true
            } else if octet == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if octet == UInt8(ascii: ";"), !isQuoted {
                segments.append([])
                continue
            }
            segments[segments.count - 1].append(octet)
        }
        return segments
    }

    /// Whether this is one token or one quoted string, and nothing else.
    private static func isOneValue(_ value: some Collection<UInt8>) -> Bool {
        let value = HeaderField.trim(Array(value)[...])
        guard value.first == UInt8(ascii: "\"") else { return !value.contains { $0.isWhiteSpace || "()\"".utf8.contains($0) } }
        var isEscaped = false
        for index in value.indices.dropFirst() {
            if isEscaped {
                isEscaped = false
            } else if value[index] == UInt8(ascii: "\\") {
                isEscaped = true
            } else if value[index] == UInt8(ascii: "\"") {
                return index == value.index(before: value.endIndex)
            }
        }
        return false
    }

    private static func folded(_ value: String, name: String) -> [UInt8] {
        [0x20] + HeaderText.fold(Array(value.utf8), startingAt: name.utf8.count + 2)
    }
}
