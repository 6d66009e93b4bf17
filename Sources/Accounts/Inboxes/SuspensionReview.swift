// Ends suspensions that came from a provider's block, once the rules for reports no longer count what a blocking provider says.

import Database
import InternetMessage

/// Inboxes of one provider whose suspension has ended.
package struct ReturnedInboxes: Sendable, Hashable {
    /// Its first domain.
    package let provider: String
    package let count: Int
}

extension InboxRepository {
    /// So many inboxes of one provider, suspended within a day, are the work of a block: people do not lose their mailboxes at
    /// once.
    private static let mass = 5
    private static let massWindow: Int64 = 86_400
    /// Lines that are read back from the audit, and how many of its ranges are searched for them.
    private static let notes = 20
    private static let ranges = 5
    private static let actor = "relay"
    private static let action = "inbox.resume"

    /// Looks once at each suspension by earlier rules. The answers themselves are not kept, so five or more suspensions of one
    /// provider within a day count as those of a block, and end. If the mailboxes are gone after all, new failures suspend them
    /// again.
    /// - Parameter rules: the version in force.
    package func reviewSuspensions(
        rules: Int64, providers: ProviderRules, now: Int64
    ) throws(StoreFailure) -> [ReturnedInboxes] {
        let earlier: SQL = "suspended_at IS NOT NULL AND COALESCE(suspended_rules, 0) < \(rules)"
        // Mostly there are none: then nothing is locked.
        guard try database.row("SELECT 1 AS found FROM inboxes WHERE \(earlier) LIMIT 1") != nil else { return [] }
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
                        provider: ProviderRules.sisters(of: domain).first ?? domain, at: at, user: user, inbox: inbox.id))
            }
            suspended.sort { ($0.provider, $0.at) < ($1.provider, $1.at) }
            let ended = Self.ofBlocks(suspended)
            for suspension in ended {
                try tracker.snapshot(.user(suspension.user))
                try connection.forgetFailures(inbox: suspension.inbox, change)
            }
            let returned = ended.reduce(into: [ReturnedInboxes]()) { all, suspension in
                let count = all.last.map { $0.provider.hasSameOctets(as: suspension.provider) ? $0.count : 0 } ?? 0
                if count > 0 { all.removeLast() }
                all.append(ReturnedInboxes(provider: suspension.provider, count: count + 1))
            }
            for group in returned {
                try connection.audit(
                    change, Self.action, "provider:\(group.provider)",
                    "\(group.count) inboxes: suspended within a day, by answers of which some kinds no longer count")
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

    /// Those of which at least five of one provider began within a day.
    /// - Parameter suspended: by provider, then by time.
    private static func ofBlocks(_ suspended: [Suspension]) -> [Suspension] {
        var isOfBlock = suspended.map { _ in false }
        for end in suspended.indices.dropFirst(mass - 1) {
            let start = end - mass + 1
            // Sorted: what is between two of one provider is of it too.
            guard suspended[start].provider.hasSameOctets(as: suspended[end].provider),
                suspended[end].at - suspended[start].at <= massWindow
            else { continue }
            for index in start...end { isOfBlock[index] = true }
        }
        return zip(suspended, isOfBlock).filter(\.1).map(\.0)
    }

    /// What `reviewSuspensions` ended since a time, as the audit has it, the latest first.
    package func returned(since time: Int64) throws(StoreFailure) -> [AuditEntry] {
        let audit = AuditRepository(database: database)
        var (lines, next) = try audit.page(since: time, action: Self.action, limit: Self.notes)
        for _ in 1..<Self.ranges {
            guard let before = next, lines.count < Self.notes else { break }
            let (more, further) = try audit.page(since: time, action: Self.action, before: before, limit: Self.notes)
            lines += more
            next = further
        }
        return lines
    }
}
