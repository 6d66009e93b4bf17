// The columns of an import, and the conversion of their texts to a row.

import Accounts
import Database
import Foundation
import InternetMessage
import MailCrypto
import Support

/// A column of a CSV file, or a key of a JSON line.
package enum ImportColumn: String, CaseIterable, Sendable {
    case user, name
    case inbox, verified, `default`, replyOnly = "reply_only"
    case team, app, sub, address, forwarding, sharesName = "shares_name", realUserStatus =
        "real_user_status", since,
        lastSeen = "last_seen"

    /// All names, for messages.
    package static let names = allCases.map(\.rawValue).joined(separator: ", ")
    /// The position of the column in `ImportFields`.
    var index: Int { Self.places[self] ?? 0 }

    private static let places = Dictionary(
        uniqueKeysWithValues: allCases.enumerated().map { ($1, $0) })

    /// For a column, the columns that need it.
    static let dependents: [(ImportColumn, [ImportColumn])] = [
        (.inbox, [.verified, .default, .replyOnly]),
        (
            .team,
            [.app, .sub, .address, .forwarding, .sharesName, .realUserStatus, .since, .lastSeen]
        ),
    ]
}

/// The texts of one row by column; nil and an empty text both mean absent.
package struct ImportFields: Sendable {
    private var texts = [String?](repeating: nil, count: ImportColumn.allCases.count)

    package init() {}

    package subscript(column: ImportColumn) -> String? {
        get { texts[column.index].flatMap { $0.isEmpty ? nil : $0 } }
        set { texts[column.index] = newValue }
    }
}

/// Converts fields to rows.
package struct ImportReading: Sendable {
    /// Whether `verified` is trusted.
    package let trustsVerified: Bool
    /// In lower case; relay addresses must be at one of these.
    package let relayDomains: [String]
    /// Local parts at the relay domains, in lower case, whose mail goes to the operator.
    package let operatorMailboxes: Set<String>
    /// Seconds since 1970; `since` and `last_seen` must not be later.
    package let now: Int64

    /// - Parameter localRecipients: the local parts that the configuration forwards to other
    ///   addresses.
    package init(
        trustsVerified: Bool, relayDomains: [String], localRecipients: some Sequence<String> = [],
        now: Int64
    ) {
        self.trustsVerified = trustsVerified
        operatorMailboxes = OperatorMailbox.names.union(localRecipients)
        self.relayDomains = relayDomains
        self.now = now
    }

    /// The parts of a row that were left out.
    package struct LeftOut: Sendable, Hashable {
        /// Its `verified`, which is not trusted.
        package let isVerified: Bool
        /// Characters that a name must not contain.
        package let isOfName: Bool
    }

    /// The row, and the parts that were left out. Throws a refusal with the reason, without
    /// repeating an inbox address.
    package func row(
        _ fields: ImportFields
    ) throws(StoreFailure) -> (row: ImportRow, leftOut: LeftOut) {
        guard let user = fields[.user] else { throw .refused(.invalid, "user is missing") }
        for (column, dependents) in ImportColumn.dependents where fields[column] == nil {
            if let lone = dependents.first(where: { fields[$0] != nil }) {
                throw .refused(.invalid, "\(lone.rawValue) is given without \(column.rawValue)")
            }
        }
        let isVerified = try flag(fields, .verified) ?? false
        let inbox = try fields[.inbox].map { text throws(StoreFailure) in
            ImportRow.Inbox(
                address: InboxAddress(try AddrSpec.typed(text)),
                isVerified: isVerified && trustsVerified,
                isDefault: try flag(fields, .default) ?? false,
                isReplyOnly: try flag(fields, .replyOnly) ?? false)
        }
        if let inbox, inbox.isDefault, inbox.isReplyOnly {
            throw .refused(.invalid, "a reply-only inbox cannot be the default")
        }
        let account = try fields[.team].map { team throws(StoreFailure) in
            try self.account(team: team, fields)
        }
        let name = fields[.name].map(PersonText.cleaned)
        return (
            ImportRow(
                user: user, name: name.flatMap { $0.text.isEmpty ? nil : $0.text }, inbox: inbox,
                account: account),
            LeftOut(
                isVerified: isVerified && !trustsVerified,
                isOfName: name.map { $0.removed > 0 } ?? false)
        )
    }

    private func account(
        team: String, _ fields: ImportFields
    ) throws(StoreFailure) -> ImportRow.Account {
        let sub = try fields[.sub].map(self.sub)
        let address = try fields[.address].map(self.address)
        let status = try fields[.realUserStatus].map(self.status)
        let lastSeen = try time(fields, .lastSeen)
        // An account existed at the latest when it was last seen.
        let since = try time(fields, .since) ?? lastSeen
        if let since, let lastSeen, lastSeen < since {
            throw .refused(.invalid, "last_seen is before since")
        }
        return ImportRow.Account(
            team: team, app: fields[.app], sub: sub, address: address,
            isForwardingOn: try forwarding(fields),
            sharesName: try flag(fields, .sharesName) ?? false, realUserStatus: status,
            since: since,
            lastSeen: lastSeen)
    }

    private func flag(_ fields: ImportFields, _ column: ImportColumn) throws(StoreFailure) -> Bool?
    {
        guard let text = fields[column] else { return nil }
        guard let value = Self.truth(text) else {
            throw .refused(.invalid, "\(column.rawValue) must be true or false")
        }
        return value
    }

    /// A spreadsheet writes TRUE and FALSE in its user's language.
    static func truth(_ text: String) -> Bool? {
        let word = Array(text.lowercased().utf8)
        return truths.contains(word) ? true : falsehoods.contains(word) ? false : nil
    }

    private static let truths = Set(
        [
            "true", "yes", "1", "wahr", "ja", "vrai", "oui", "verdadero", "sí", "si", "vero",
            "verdadeiro", "sim", "waar",
            "prawda", "истина", "да", "真",
        ]
        .map { Array($0.utf8) })
    private static let falsehoods = Set(
        [
            "false", "no", "0", "falsch", "nein", "faux", "non", "falso", "não", "nao", "onwaar",
            "nee", "fałsz", "ложь", "нет",
            "偽", "假",
        ]
        .map { Array($0.utf8) })

    private func forwarding(_ fields: ImportFields) throws(StoreFailure) -> Bool {
        switch fields[.forwarding]?.lowercased() {
        case nil, "on": return true
        case "off": return false
        case let word?:
            guard let value = Self.truth(word) else {
                throw .refused(.invalid, "forwarding must be on or off")
            }
            return value
        }
    }

    /// A subject of another system. It is stored in clear text, so it must not be an email address.
    private func sub(_ text: String) throws(StoreFailure) -> String {
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "@") }
        guard isPlain, text.utf8.count <= 255 else {
            throw .refused(.invalid, "sub must be 1 to 255 visible ASCII characters without @")
        }
        return text
    }

    private func address(_ text: String) throws(StoreFailure) -> AddrSpec {
        let address = try AddrSpec.typed(text).folded
        guard relayDomains.contains(address.domain) else {
            throw .refused(
                .invalid,
                "address is not at a relay domain: set relay_domains, or omit it for a new one")
        }
        guard (10...16).contains(address.localPart.utf8.count),
            Base32.isEncoded(address.localPart.utf8)
        else {
            throw .refused(
                .invalid, "the local part of address is not 10 to 16 characters of a-z and 2-7")
        }
        guard !operatorMailboxes.contains(address.localPart) else {
            throw .refused(
                .invalid,
                "the address is a mailbox of the operator: mail to it would never reach the user")
        }
        return address
    }

    private func status(_ text: String) throws(StoreFailure) -> Int {
        guard let status = Int(text), (0...2).contains(status) else {
            throw .refused(.invalid, "real_user_status must be 0, 1 or 2")
        }
        return status
    }

    /// 1990: no account on the Internet is older.
    private static let earliestNumber: Int64 = 631_152_000

    /// Whether day and time exist, because Foundation reads 31 February as 3 March. True for texts
    /// of another form, which are refused elsewhere.
    private static func isInCalendar(_ text: String) -> Bool {
        let octets = Array(text.utf8)
        guard octets.count >= 19, octets[4] == UInt8(ascii: "-"), octets[7] == UInt8(ascii: "-")
        else { return true }
        func number(_ range: Range<Int>) -> Int? {
            Int(String(decoding: octets[range], as: UTF8.self))
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month)
        else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
        return (1...days).contains(day) && hour <= 23 && minute <= 59 && second <= 60
    }

    private func time(_ fields: ImportFields, _ column: ImportColumn) throws(StoreFailure) -> Int64?
    {
        guard let text = fields[column] else { return nil }
        // A date without a time is the beginning of that day in UTC.
        let full = text.utf8.count == 10 ? text + "T00:00:00Z" : text
        guard Int64(text) != nil || Self.isInCalendar(full) else {
            throw .refused(.invalid, "\(column.rawValue) is a day or a time that does not exist")
        }
        let seconds =
            Int64(text)
            ?? (try? Date(full, strategy: .iso8601)).flatMap {
                Int64(exactly: $0.timeIntervalSince1970.rounded(.down))
            }
        guard let seconds, seconds >= 0 else {
            throw .refused(
                .invalid,
                "\(column.rawValue) must be seconds since 1970, or as in 2026-11-21 or 2026-11-21T06:49:30Z"
            )
        }
        // Such a number may be a spreadsheet's date, in days since 1900, or a date typed as 2024 or
        // 20240501.
        guard seconds >= Self.earliestNumber || Int64(text) == nil else {
            throw .refused(
                .invalid,
                "\(column.rawValue) is a number that cannot be seconds since 1970: give a date as in 2026-11-21"
            )
        }
        guard seconds <= now else {
            throw .refused(.invalid, "\(column.rawValue) is in the future")
        }
        return seconds
    }
}
