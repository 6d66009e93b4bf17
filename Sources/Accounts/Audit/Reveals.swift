// Uses of commands that show personal data: what they are, why they were used, and a report of a
// year.

import Database
import Support

/// An action that shows an administrator personal data. The audit has a line for each use.
package enum RevealAction: String, Sendable, Hashable, CaseIterable {
    /// The inboxes and the name of a user, or of all users.
    case user = "user.reveal"
    /// The correspondent in an address with a token.
    case address = "address.reveal"
    /// Addresses in the logs of Postfix and Postern.
    case trace = "mail.trace"
    /// The rows that a hold keeps.
    case hold = "hold.export"

    private static let mark = "reason: "

    /// The detail of a line.
    static func detail(_ detail: String, reason: String?) -> String {
        [detail, reason.map { mark + $0 } ?? ""].filter { !$0.isEmpty }.joined(separator: "; ")
    }

    /// The reason in a line's detail; nil if none was given.
    static func reason(in detail: String) -> String? {
        guard let range = detail.utf8.firstRange(of: mark.utf8) else { return nil }
        return String(detail[range.upperBound...])
    }
}

/// How often an administrator used one action for one reason in a month.
package struct RevealCount: Sendable, Hashable {
    /// 1 … 12, in UTC.
    package let month: Int
    /// As in the audit.
    package let actor: String
    package let action: RevealAction
    /// Nil: none was given.
    package let reason: String?
    package let uses: Int
    /// The different users, accounts or holds that it was used for.
    package let subjects: Int
}

extension AuditRepository {
    /// Years that a report can be about.
    package static let years = 2000...9999

    /// Writes the line for a use of an action that shows personal data.
    /// - Parameter reason: as `AuditReason` allows it.
    package func note(
        _ change: Change, _ action: RevealAction, _ subject: String, _ detail: String = "",
        reason: String?
    ) throws(StoreFailure) {
        try note(
            change, action.rawValue, subject, RevealAction.detail(detail, reason: reason))
    }

    /// Who used actions that show personal data in a year (UTC), by month, actor, action and
    /// reason.
    package func reveals(year: Int) throws(StoreFailure) -> [RevealCount] {
        struct Key: Hashable {
            let month: Int
            let actor: [UInt8]
            let action: RevealAction
            let reason: [UInt8]?
        }
        let starts = (1...13).map { month in
            Self.start(year: month == 13 ? year + 1 : year, month: month == 13 ? 1 : month)
        }
        var found: [Key: (uses: Int, subjects: Set<[UInt8]>)] = [:]
        let actions = RevealAction.allCases.map(\.rawValue)
        let ends = try database.row(
            """
            SELECT MIN(id) AS first, MAX(id) AS last FROM audit WHERE at >= \(starts[0]) AND at < \(starts[12])
            """)
        guard let ends, var next: Int64 = try ends["first"], let last: Int64 = try ends["last"]
        else { return [] }
        while next <= last {
            let rows = try database.rows(
                """
                SELECT at, actor, action, subject, detail FROM audit
                WHERE id >= \(next) AND id < \(next + Self.range) AND at >= \(starts[0]) AND at < \(starts[12])
                    AND action IN \(list: actions)
                """)
            for row in rows {
                let (at, name): (Int64, String) = try (row["at"], row["action"])
                guard let action = RevealAction(rawValue: name),
                    let month = starts.lastIndex(where: { $0 <= at })
                else { continue }
                let (actor, subject, detail): (String, String, String) = try (
                    row["actor"], row["subject"], row["detail"]
                )
                let key = Key(
                    month: month + 1, actor: Array(actor.utf8), action: action,
                    reason: RevealAction.reason(in: detail).map { Array($0.utf8) })
                found[key, default: (0, [])].uses += 1
                found[key, default: (0, [])].subjects.insert(Array(subject.utf8))
            }
            next += Self.range
        }
        return found.map { key, value in
            RevealCount(
                month: key.month, actor: String(decoding: key.actor, as: UTF8.self),
                action: key.action,
                reason: key.reason.map { String(decoding: $0, as: UTF8.self) }, uses: value.uses,
                subjects: value.subjects.count)
        }.sorted {
            ($0.month, $0.actor, $0.action.rawValue, $0.reason ?? "")
                < ($1.month, $1.actor, $1.action.rawValue, $1.reason ?? "")
        }
    }

    /// The first second of a month in UTC, by the days of the Gregorian calendar.
    private static func start(year: Int, month: Int) -> Int64 {
        // Years begin in March here, so that the leap day is the last.
        let (year, month) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5
        return Int64(days - 719_468) * 86_400
    }
}
