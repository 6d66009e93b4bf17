// The header fields of parts: an allowlist, and the rewriting of their values, including file names
// and parameters.

import InternetMessage
import LeakSearch

enum PartHeader {
    /// Fields of a part that are sent; every other field is removed.
    private static let passing: FieldNameSet = [
        "content-type", "content-transfer-encoding", "content-disposition", "content-id",
        "content-description",
        "content-language",
        "content-location", "content-class", "content-duration", "content-features",
        "content-alternative", "mime-version",
    ]

    /// Fields of an attached message that are sent. The others show the path of a message to the
    /// user, or are signatures that the changes have broken.
    private static let passingOfMessage: FieldNameSet = [
        "from", "to", "cc", "sender", "reply-to", "subject", "date", "message-id", "in-reply-to",
        "references", "mime-version",
        "importance", "priority", "x-priority", "x-msmail-priority", "sensitivity",
        "content-language", "precedence",
    ]
    private static let addressFields: FieldNameSet = ["from", "to", "cc", "sender", "reply-to"]

    /// Whether a field is sent of a message that is returned without its body.
    static func passesWithoutBody(_ field: HeaderField) -> Bool {
        passingOfMessage.contains(field) && !idFields.contains(field)
    }

    /// Fields of an attached message that name messages. An id is the team's, or is hidden.
    private static let idFields: FieldNameSet = ["message-id", "in-reply-to", "references"]

    /// Defects for which a header section is rewritten, even if each of its fields stays.
    private static let unsafe: Set<MessageDefect> = [
        .nul, .bareCR, .controlCharacter, .lineWithoutColon, .emptyName,
    ]

    /// The Content-* fields of the message itself.
    static func contentFields(
        of root: MIMEPart, with result: BodyRewriter.Result, place: TextPlace, text: TextRewriter,
        work: WorkBudget
    ) -> [HeaderField] {
        rewrite(root, with: result, place: place, text: text, work: work) {
            passing.contains($0) && !$0.isNamed("MIME-Version")
        }
        .fields
    }

    /// The fields of a part; nil if they are unchanged.
    static func partFields(
        of part: MIMEPart, with result: BodyRewriter.Result, place: TextPlace, text: TextRewriter,
        work: WorkBudget
    ) -> [HeaderField]? {
        let rewritten = rewrite(part, with: result, place: place, text: text, work: work) {
            passing.contains($0)
        }
        return rewritten.isChanged ? rewritten.fields : nil
    }

    /// The fields of an attached message; nil if they stay.
    static func messageFields(
        of message: MIMEPart, with result: BodyRewriter.Result, place: TextPlace,
        text: TextRewriter, work: WorkBudget
    ) -> [HeaderField]? {
        let rewritten = rewrite(message, with: result, place: place, text: text, work: work) {
            passingOfMessage.contains($0) || passing.contains($0)
        }
        return rewritten.isChanged ? rewritten.fields : nil
    }

    /// The content of a field that stays or was rewritten.
    static func kind(of field: HeaderField, place: TextPlace) -> StretchMap.Kind {
        // Ids are the team's, or hidden. The addresses of a message that is not the user's are
        // correspondents.
        if idFields.contains(field) || field.isNamed("Content-ID") { return .made }
        if place == .typed { return .typed }
        return addressFields.contains(field) ? .made : .neutral
    }

    /// The kind of each field of a header section.
    /// - Parameter old: as received.
    static func map(
        of header: HeaderSection, old: HeaderSection, place: TextPlace, text: TextRewriter
    ) -> StretchMap {
        let isMade = text.makes(old.serialized, place: place)
        var map = StretchMap()
        for field in header.fields {
            map.append(field.bytes.count + 2, isMade ? .made : kind(of: field, place: place))
        }
        return map
    }

    /// The same for a header section that stays, including damage between its fields.
    static func map(of part: MIMEPart, place: TextPlace, text: TextRewriter) -> StretchMap {
        let map = map(of: part.header, old: part.header, place: place, text: text)
        if map.end == part.headerRange.count { return map }
        var whole = StretchMap()
        whole.append(part.headerRange.count, place == .typed ? .typed : .neutral)
        return whole
    }

    private static func rewrite(
        _ part: MIMEPart, with result: BodyRewriter.Result, place: TextPlace, text: TextRewriter,
        work: WorkBudget,
        keeps: (HeaderField) -> Bool
    ) -> (fields: [HeaderField], isChanged: Bool) {
        var fields: [HeaderField] = []
        var isChanged = !part.headerDefects.isEmpty && !part.headerDefects.isDisjoint(with: unsafe)
        var seen: Set<[UInt8]> = []
        var ids: OutwardIDs?
        for field in part.header.fields {
            let name = field.bytes[..<field.nameLength].map(\.asciiLowercased)
            // Two programs could choose differently between two fields of the same name.
            guard keeps(field), !passing.contains(field) || seen.insert(name).inserted else {
                isChanged = true
                continue
            }
            if idFields.contains(field) {
                if text.search.isCounting { continue }
                let outward = ids ?? text.ids(in: part.header, work: work)
                ids = outward
                let old = MessageIDs.ids(in: field.rawValue)
                let new = outward.outward(old)
                // Text next to ids is not part of them (RFC 5322 section 3.6.4).
                if new == old,
                    field.rawValue.filter({ !$0.isFoldingWhiteSpace })
                        == old.flatMap({ [0x3C] + $0 + [0x3E] })
                {
                    fields.append(field)
                } else {
                    isChanged = true
                    if !new.isEmpty {
                        fields.append(
                            HeaderField(name: field.name, rawValue: MessageIDs.value(new)))
                    }
                }
                continue
            }
            let new =
                place != .typed && addressFields.contains(field)
                ? addresses(field, text: text)
                : rewrite(field, part: part, result: result, place: place, text: text)
            if new != nil { isChanged = true }
            fields.append(new ?? field)
        }
        if let encoding = result.transferEncoding,
            !seen.contains(Array("content-transfer-encoding".utf8))
        {
            fields.append(HeaderField("Content-Transfer-Encoding", encoding.name))
            isChanged = true
        }
        if let type = result.contentType, !seen.contains(Array("content-type".utf8)) {
            fields.append(
                HeaderField(
                    name: "Content-Type", rawValue: folded(type.serialized, name: "Content-Type")))
            isChanged = true
        }
        let legal = LegalFields(part.header)
        for (index, field) in fields.enumerated() {
            guard let value = legal.value(field) else { continue }
            fields[index] = HeaderField(name: field.name, rawValue: value)
            isChanged = true
        }
        return (fields, isChanged)
    }

    /// Replaces an address that is not the team's in a field that requires an address (RFC 2606).
    private static let removed = AddrSpec(localPart: "address", domain: "removed.invalid")

    /// The addresses of a message that is not the user's: the correspondents behind reverse
    /// addresses, and the user's relay address. Any other address is removed with its name.
    private static func addresses(_ field: HeaderField, text: TextRewriter) -> HeaderField? {
        let names = text.names
        let mailboxes = AddressList.parse(field.rawValue).mailboxes.map { mailbox in
            if let correspondent = names.correspondent(mailbox.addrSpec) {
                return Mailbox(
                    displayName: mailbox.displayName.flatMap { text.neutralName($0) },
                    addrSpec: correspondent)
            }
            return mailbox.addrSpec.folded == names.relayAddress.folded
                ? Mailbox(displayName: nil, addrSpec: names.relayAddress)
                : Mailbox(
                    displayName: String(decoding: NeutralMark.address, as: UTF8.self),
                    addrSpec: removed)
        }
        guard !mailboxes.isEmpty else {
            return HeaderField(
                name: field.name, rawValue: text.rewriteUnstructured(field, place: .quoted))
        }
        return HeaderField(
            name: field.name,
            rawValue: AddressFieldValue.write(
                mailboxes.map { .mailbox($0) }, nameLength: field.nameLength))
    }

    /// The new field; nil if it stays.
    private static func rewrite(
        _ field: HeaderField, part: MIMEPart, result: BodyRewriter.Result, place: TextPlace,
        text: TextRewriter
    ) -> HeaderField? {
        if field.isNamed("Content-Type") {
            var type = result.contentType ?? part.contentType
            var isChanged = rewrite(&type.parameters, place: place, text: text)
            if let start = type.parameters["start"], let id = text.contentIDs.outward(start.utf8) {
                type.parameters["start"] = String(decoding: id, as: UTF8.self)
                isChanged = true
            }
            guard
                isChanged || result.contentType != nil || !isSafe(field)
                    || text.rewrite(Array(field.rawValue), place: place) != nil
            else {
                return nil
            }
            return HeaderField(
                name: field.name, rawValue: folded(type.serialized, name: field.name))
        }
        if field.isNamed("Content-Disposition") {
            var disposition = ContentDisposition.parse(field.rawValue)
            let isChanged = rewrite(&disposition.parameters, place: place, text: text)
            guard
                isChanged || !isSafe(field)
                    || text.rewrite(Array(field.rawValue), place: place) != nil
            else { return nil }
            return HeaderField(
                name: field.name, rawValue: folded(disposition.serialized, name: field.name))
        }
        if field.isNamed("Content-Transfer-Encoding") {
            if let encoding = result.transferEncoding {
                return HeaderField(field.name, encoding.name)
            }
            guard !isSafe(field) || text.rewrite(Array(field.rawValue), place: place) != nil else {
                return nil
            }
            return HeaderField(field.name, part.transferEncoding.name)
        }
        if field.isNamed("Content-ID") {
            if let id = text.contentIDs.outward(field.rawValue) {
                return HeaderField(name: field.name, rawValue: [0x20] + id)
            }
            // The links to it stay as well.
            if place != .typed, isSafe(field) { return nil }
        }
        let value = text.rewriteUnstructured(field, place: place)
        return value.elementsEqual(field.rawValue)
            ? nil : HeaderField(name: field.name, rawValue: value)
    }

    private static func isSafe(_ field: HeaderField) -> Bool {
        field.controls.isEmpty && field.bytes.isValidUTF8
    }

    /// Rewrites the values, except the boundary, which changes together with its delimiter lines.
    /// - Returns: whether anything was changed.
    private static func rewrite(
        _ parameters: inout MIMEParameters, place: TextPlace, text: TextRewriter
    ) -> Bool {
        var isChanged = false
        for index in parameters.list.indices where parameters.list[index].name != "boundary" {
            let value = Array(parameters.list[index].value.utf8)
            guard let rewritten = text.rewrite(value, syntax: .fileName, place: place) else {
                continue
            }
            parameters.list[index].bytes = rewritten
            parameters.list[index].charset = rewritten.allSatisfy({ $0 < 0x80 }) ? nil : "utf-8"
            isChanged = true
        }
        return isChanged
    }

    private static func folded(_ value: String, name: String) -> [UInt8] {
        [0x20] + HeaderText.fold(Array(value.utf8), startingAt: name.utf8.count + 2)
    }
}
