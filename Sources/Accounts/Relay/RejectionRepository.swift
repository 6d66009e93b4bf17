// Refusals of teams' mail: written in batches, read by the team.

import Database
import InternetMessage
import RelayCore
import Synchronization

package struct RejectionRepository: Sendable {
    let database: any Database

    /// Records refusals for every team that registered the author. If a refusal reveals something
    /// about the account, only the account's own team gets it, and only if that team registered the
    /// author.
    /// - Parameter beside: writes related data in the same transaction.
    package func add(
        _ events: [RefusedForward],
        _ beside: (any DatabaseConnection) throws(StoreFailure) -> Void = { _ in }
    ) throws(StoreFailure) {
        guard !events.isEmpty else { return }
        try database.write(.relaxed) { connection throws(StoreFailure) in
            var rows: [(team: Int64, source: String, event: RefusedForward)] = []
            for event in events where event.attribution.isRegistered {
                rows += try teams(connection, event).map { ($0.0, $0.1, event) }
            }
            // Every host locks rows in the same order, so that no two hosts block each other.
            for row in rows.sorted(by: {
                (
                    $0.team, $0.event.at / 3600, $0.source, $0.event.status,
                    $0.event.reason.rawValue, $0.event.at
                )
                    < (
                        $1.team, $1.event.at / 3600, $1.source, $1.event.status,
                        $1.event.reason.rawValue, $1.event.at
                    )
            }) {
                try connection.run(
                    """
                    INSERT INTO rejections (team_id, source, hour, answer, reason, first_at, last_at, count, reference)
                    VALUES (\(row.team), \(row.source), \(row.event.at / 3600), \(row.event.status), \(row.event.reason.rawValue),
                        \(row.event.at), \(row.event.at), 1, \(row.event.reference))
                    ON CONFLICT (team_id, hour, source, answer, reason) DO UPDATE
                        SET count = rejections.count + 1, last_at = excluded.last_at, reference = excluded.reference
                    """)
            }
            try beside(connection)
        }
    }

    /// For each team, its most specific source that covers the author.
    private func teams(
        _ connection: any DatabaseConnection, _ event: RefusedForward
    ) throws(StoreFailure) -> [(Int64, String)] {
        var found: [Int64: String] = [:]
        let isOfAccount = event.reply.facts.audience == .ownTeam
        for value in SourceRepository.values(covering: event.attribution.author) {
            let teams: [Int64] = try connection.values(
                """
                SELECT DISTINCT s.team_id FROM outbound_sources s WHERE s.value = \(value)
                    AND (\(isOfAccount) = 0 OR s.team_id = (SELECT a.team_id FROM accounts a
                        WHERE a.id = \(event.attribution.account.stored)))
                """)
            for team in teams where found[team] == nil { found[team] = value }
        }
        return found.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// A team's refusals before the number `before`, the newest first.
    package func rejections(
        team: Int64, before: Int64? = nil, limit: Int
    ) throws(StoreFailure) -> [Rejection] {
        try database.rows(
            """
            SELECT id, source, answer, reason, first_at, last_at, count, reference FROM rejections
            WHERE team_id = \(team) AND id < \(before ?? .max) ORDER BY id DESC LIMIT \(limit)
            """
        ).map { row throws(StoreFailure) in
            try Rejection(
                number: row["id"], source: row["source"], answer: row["answer"],
                reason: row["reason"],
                firstAt: row["first_at"],
                lastAt: row["last_at"], count: row["count"], reference: row["reference"])
        }
    }

    /// Deletes refusals from before a time, at most `limit`. Returns the number.
    package func deleteExpired(before time: Int64, limit: Int = 1000) throws(StoreFailure) -> Int {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.deletePast(.rejections, where: "x.last_at < \(time)", limit: limit)
        }
    }
}

extension SourceRepository {
    /// Values of sources that can cover an address, the most specific first: the address, its
    /// domain, and the parent domains.
    static func values(covering author: AddrSpec) -> [String] {
        let folded = author.folded
        let labels = folded.domain.split(separator: ".").suffix(10)
        return [folded.wireForm] + labels.indices.map { labels[$0...].joined(separator: ".") }
    }
}

/// Collects refusals in memory, outside the mail path; `flush` writes them in few transactions.
package final class RejectionBuffer: Sendable {
    /// Refusals kept while the store is unavailable; further ones are dropped.
    package static let capacity = 10_000
    /// Refusals written in one transaction: some ten milliseconds if the store is near.
    package static let step = 100

    private let write: @Sendable ([RefusedForward]) throws(StoreFailure) -> Void
    private let events = Mutex<[RefusedForward]>([])

    package init(write: @escaping @Sendable ([RefusedForward]) throws(StoreFailure) -> Void) {
        self.write = write
    }

    /// Never blocks on the store.
    package func add(_ event: RefusedForward) {
        events.withLock { if $0.count < Self.capacity { $0.append(event) } }
    }

    /// Writes the collected refusals. If the store is unavailable, it keeps the rest for the next
    /// time and throws the error.
    package func flush() throws(StoreFailure) {
        var rest = events.withLock { events in
            defer { events = [] }
            return events[...]
        }
        while !rest.isEmpty {
            do { try write(Array(rest.prefix(Self.step))) } catch {
                events.withLock { $0 = Array((rest + $0).prefix(Self.capacity)) }
                throw error
            }
            rest = rest.dropFirst(Self.step)
        }
    }
}
