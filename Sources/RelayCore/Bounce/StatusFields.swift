// message/delivery-status (RFC 3464 section 2.1): groups of fields, one for the message and
// one for each recipient.

import InternetMessage

enum StatusFields {
    /// Maximum recipients read from one report; a report about this relay's mail has one.
    private static let maximumRecipients = 50

    /// The recipients of a delivery-status body. Groups are recognised by their fields, as many
    /// programs omit or repeat the empty lines.
    static func recipients(in body: [UInt8]) -> [RecipientReport] {
        var recipients: [RecipientReport] = []
        var group: [String: String] = [:]
        func finish() {
            defer { group = [:] }
            guard recipients.count < maximumRecipients, let recipient = recipient(group) else {
                return
            }
            recipients.append(recipient)
        }
        for (name, value) in fields(in: body) {
            let begins =
                name == "final-recipient" && group["final-recipient"] != nil
                || name == "original-recipient" && group["final-recipient"] != nil
                    && group["status"] != nil
                || name.isEmpty
                    && (group["final-recipient"] != nil || group["original-recipient"] != nil)
                    && (group["status"] != nil || group["action"] != nil)
            if begins { finish() }
            if !name.isEmpty, group[name] == nil { group[name] = value }
        }
        finish()
        return recipients
    }

    /// Unfolded fields. An empty name represents an empty line.
    static func fields(in body: [UInt8]) -> [(String, String)] {
        var fields: [(String, String)] = []
        for line in body.split(separator: 0x0A, omittingEmptySubsequences: false) {
            let line = line.last == 0x0D ? line.dropLast() : line
            if let first = line.first, first.isWhiteSpace, let last = fields.last, !last.0.isEmpty {
                fields[fields.count - 1].1 += " " + text(line)
            } else if line.allSatisfy(\.isWhiteSpace) {
                fields.append(("", ""))
            } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
                let name = String(decoding: line[..<colon], as: UTF8.self).lowercased().filter {
                    $0 != " " && $0 != "\t"
                }
                fields.append((name, text(line[(colon + 1)...])))
            }
        }
        return fields
    }

    private static func text(_ octets: ArraySlice<UInt8>) -> String {
        String(decoding: HeaderField.trim(octets), as: UTF8.self)
    }

    private static func recipient(_ group: [String: String]) -> RecipientReport? {
        guard
            let named = group["final-recipient"] ?? group["original-recipient"]
                ?? group["x-actual-recipient"]
        else {
            // Some servers send one group for all recipients.
            guard group["action"] != nil, group["status"] != nil else { return nil }
            return make(address: "", group)
        }
        var recipient = make(address: value(named), group)
        recipient.originalAddress = group["original-recipient"].map(value) ?? ""
        return recipient
    }

    private static func make(address: String, _ group: [String: String]) -> RecipientReport {
        let diagnostic = value(group["diagnostic-code"] ?? "")
        let stated = group["status"].flatMap { StatusCodes.enhanced(in: $0) }
        let word = (group["action"] ?? "").lowercased().prefix { $0.isLetter }
        let action =
            DeliveryAction(rawValue: String(word))
            ?? (stated?.level == 2
                ? .delivered : word.hasPrefix("delay") || stated?.level == 4 ? .delayed : .failed)
        let status = StatusCodes.status(stated: stated, action: action, diagnostic: diagnostic)
        return RecipientReport(
            address: address, action: action, status: status, diagnostic: diagnostic,
            understood: StatusCodes.understood(status, diagnostic: diagnostic))
    }

    /// The text after `type;` (`rfc822; anna@example.org`, `smtp; 550 …`).
    private static func value(_ field: String) -> String {
        guard let mark = field.firstIndex(of: ";"),
            field[..<mark].allSatisfy({ $0.isLetter || $0.isNumber || "- /._".contains($0) }),
            field[..<mark].count <= 24
        else { return trim(field) }
        return trim(String(field[field.index(after: mark)...]))
    }

    private static func trim(_ text: String) -> String {
        String(decoding: HeaderField.trim(Array(text.utf8)[...]), as: UTF8.self)
    }
}
