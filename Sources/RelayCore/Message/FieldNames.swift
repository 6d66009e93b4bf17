// The header fields with addresses or links that a program answers or follows. docs/MAIL.md shows
// this table.

import InternetMessage

package enum FieldNames {
    /// How a forward changes a field.
    package enum InForward: String, Sendable {
        case reverse = "every address becomes a reverse address"
        case links =
            "`mailto:` addresses become reverse addresses; a text that is no link but has an address is removed"
        case ids = "the user's own ids come back"
        case removed = "removed"
    }

    /// How a reply changes a field.
    package enum InReply: String, Sendable {
        case written = "written with the relay address"
        case correspondents = "the people behind the reverse addresses; every other address goes"
        case ids = "ids that the team knows; others are hidden"
        case removed = "removed"
    }

    package struct Row: Sendable {
        /// Names in any letter case; `*` at the beginning or end matches any text.
        package let names: [String]
        package let inForward: InForward
        package let inReply: InReply
        fileprivate let patterns: [Pattern]

        fileprivate init(_ inForward: InForward, _ inReply: InReply, _ names: String...) {
            (self.names, self.inForward, self.inReply) = (names, inForward, inReply)
            patterns = names.map { Pattern($0) }
        }
    }

    /// In the order of look-up: the first match decides.
    package static let rows: [Row] = [
        Row(.reverse, .written, "From"),
        Row(.reverse, .correspondents, "To", "Cc"),
        Row(.reverse, .removed, "Reply-To", "Sender"),
        Row(.ids, .ids, "In-Reply-To", "References"),
        Row(.links, .removed, "List-*", "X-List-*", "*Unsubscribe*", "Archived-At"),
        // Fields that request receipts and answers elsewhere; complaints (RFC 9477), which a
        // provider would send with the inbox in them; recipients.
        Row(
            .removed, .removed, "*-To", "Resent-*", "Author", "Bcc", "Return-Path",
            "Return-Receipt-*", "X-Confirm-*",
            "Disposition-Notification-*", "Generate-Delivery-Report", "Prevent-NonDelivery-Report",
            "Content-Return",
            "Registered-Mail-Reply-Requested-By", "Original-Recipient", "X-PMRQC", "CFBL-Address",
            "CFBL-Feedback-ID",
            "X-Envelope-From", "X-Forwarded-For"),
    ]

    /// How a forward changes a field; nil for a field that leads nowhere.
    static func inForward(_ field: HeaderField) -> InForward? {
        rows.first { $0.patterns.contains { $0.matches(field.bytes[..<field.nameLength]) } }?
            .inForward
    }

    /// A name with any text before or after it.
    fileprivate struct Pattern: Sendable {
        /// In lower case.
        private let text: [UInt8]
        private let isOpenBefore: Bool
        private let isOpenAfter: Bool

        init(_ name: String) {
            isOpenBefore = name.utf8.first == UInt8(ascii: "*")
            isOpenAfter = name.utf8.last == UInt8(ascii: "*")
            text = name.utf8.filter { $0 != UInt8(ascii: "*") }.map(\.asciiLowercased)
        }

        func matches(_ name: ArraySlice<UInt8>) -> Bool {
            let more = name.count - text.count
            guard more >= 0, isOpenBefore || isOpenAfter || more == 0 else { return false }
            let starts = isOpenBefore ? (isOpenAfter ? 0...more : more...more) : 0...0
            return starts.contains { start in
                let first = name.startIndex + start
                return text.indices.allSatisfy { name[first + $0].asciiLowercased == text[$0] }
            }
        }
    }
}
