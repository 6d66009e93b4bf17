// The structure of the download, for programs that read it.

/// A section of the download, and the fields of its rows.
package struct UserExportShape: Sendable {
    /// The format of a value.
    package enum Kind: Sendable, Hashable {
        case integer, text, flag
        /// RFC 3339.
        case time, day
        case words, json
    }

    package let name: String
    package let fields: [(name: String, kind: Kind)]

    /// Every section, in the order of the download.
    package static let all: [UserExportShape] =
        UserExportSection.all(user: 0, id: "").map { section in
            UserExportShape(
                name: section.name, fields: section.fields.map { ($0.name, kind($0.kind)) })
        } + [
            UserExportShape(
                name: "earlier_accounts",
                fields: [("day", .day), ("deletions", .integer), ("failures", .integer)])
        ]

    private static func kind(_ kind: UserExportSection.Kind) -> Kind {
        switch kind {
        case .integer: .integer
        case .flag: .flag
        case .time: .time
        case .day: .day
        case .words: .words
        case .json: .json
        case .text, .counter, .refusal, .cause, .userName, .teamName, .passkeyName, .accountName,
            .accountNote, .inbox,
            .correspondent,
            .lastSender:
            .text
        }
    }
}
