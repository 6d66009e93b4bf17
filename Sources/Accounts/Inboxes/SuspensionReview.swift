// Ends suspensions that a provider's block caused, after the rules for reports stopped counting the
// replies of a blocking provider.

import Database
import InternetMessage

/// Inboxes of one provider whose suspension has ended.
package struct ReturnedInboxes: Sendable, Hashable {
    /// Its first domain.
    package let provider: String
    package let count: Int
}

extension InboxRepository {
    /// This number of inboxes of one provider, suspended within a day, points to a block: people do
    /// not lose their mailboxes at the same time.
    private static let mass = 5
    private static let massWindow: Int64 = 86_400
    /// The number of lines to read from the audit, and the number of its ranges to search for them.
    private static let notes = 20
    private static let ranges = 5
    private static let actor = "relay"
    private static let action = "inbox.resume"

    /// Reviews each suspension by earlier rules once. The replies themselves are not stored. So
    /// five or more suspensions of one provider within a day count as a block, and end. If the
    /// mailboxes do not exist after all, new failures suspend them again.
    /// - Parameter rules: the version in force.
    package func reviewSuspensions(
        rules: Int64, providers: ProviderRules, now: Int64
    ) throws(StoreFailure) -> [ReturnedInboxes] {
        let earlier: SQL = "suspended_at IS NOT NULL AND COALESCE(suspended_rules, 0) < \(rules)"
        // Usually no such suspension exists: then this locks nothing.
        guard try database.row("SELECT 1 AS found FROM inboxes WHERE \(earlier) LIMIT 1") != nil
        else { return [] }
        let change = Change(actor: Self.actor, now: now)
        return try events.write(at: now) { connection, tracker throws(StoreFailure) in
            var suspended: [Suspension] = []
            for row in try connection.rows("\(Self.select) WHERE \(earlier)") {
                let user: Int64 = try row["user_id"]
                let inbox = try inbox(row: row, user: user)
                guard let at = inbox.suspendedAt else { continue }
                let domain = providers.canonical(inbox.address.revealed).domain
                suspended.append(
                    Suspension(
                        provider: ProviderRules.sisters(of: domain).first ?? domain, at: at,
                        user: user, inbox: inbox.id))
            }
            suspended.sort { ($0.provider, $0.at) < ($1.provider, $1.at) }
            let ended = Self.ofBlocks(suspended)
            for suspension in ended {
                try tracker.snapshot(.user(suspension.user))
                try connection.forgetFailures(inbox: suspension.inbox, change)
            }
            let returned = ended.reduce(into: [ReturnedInboxes]()) { all, suspension in
                let count =
                    all.last.map {
                        $0.provider.hasSameOctets(as: suspension.provider) ? $0.count : 0
                    } ?? 0
                if count > 0 { all.removeLast() }
                all.append(ReturnedInboxes(provider: suspension.provider, count: count + 1))
            }
            for group in returned {
                try connection.audit(
                    change, Self.action, "provider:\(group.provider)",
                    "\(group.count) inboxes: suspended within a day because of replies that no longer count"
                )
            }
            try connection.run("UPDATE inboxes SET suspended_rules = \(rules) WHERE \(earlier)")
            return returned
        }
    }

    private struct Suspension {
        let provider: String
        let at: Int64
        let user: Int64
        let inbox: Int64
    }

    /// The suspensions that began within a day of at least four others of the same provider.
    /// - Parameter suspended: by provider, then by time.
    private static func ofBlocks(_ suspended: [Suspension]) -> [Suspension] {
        var isOfBlock = suspended.map { _ in false }
        for end in suspended.indices.dropFirst(mass - 1) {
            let start = end - mass + 1
            // The list is sorted, so all entries between two of one provider are of that provider.
            guard suspended[start].provider.hasSameOctets(as: suspended[end].provider),
                suspended[end].at - suspended[start].at <= massWindow
            else { continue }
            for index in start...end { isOfBlock[index] = true }
        }
        return zip(suspended, isOfBlock).filter(\.1).map(\.0)
    }

    /// The suspensions that `reviewSuspensions` ended since a time, from the audit, the latest
    /// first.
    package func returned(since time: Int64) throws(StoreFailure) -> [AuditEntry] {
        let audit = AuditRepository(database: database)
        var (lines, next) = try audit.page(since: time, action: Self.action, limit: Self.notes)
        for _ in 1..<Self.ranges {
            guard let before = next, lines.count < Self.notes else { break }
            let (more, further) = try audit.page(
                since: time, action: Self.action, before: before, limit: Self.notes)
            lines += more
            next = further
        }
        return lines
    }
}
