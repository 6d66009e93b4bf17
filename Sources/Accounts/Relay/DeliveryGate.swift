// Which teams' mail to which providers is slowed or held, in memory for the mail path.

import Database
import RelayCore
import Synchronization

/// A copy of the standings, refreshed from the store every few seconds. While the store is away,
/// the last copy counts.
package final class DeliveryGate: Sendable {
    private struct Key: Hashable {
        let team: [UInt8]
        let provider: ProviderFamily

        init(_ team: String, _ provider: ProviderFamily) {
            (self.team, self.provider) = (Array(team.utf8), provider)
        }
    }

    private struct Entry {
        let standing: DeliveryStanding
        /// The hour (since 1970) of the counts.
        let hour: Int64
        /// Messages of this hour: all hosts' when the copy was made, and this host's since.
        var messages: Int
    }

    private let entries = Mutex<[Key: Entry]>([:])

    package init() {}

    /// Reads the standings. Each of several hosts is at most as far behind as the time between two
    /// calls, and may exceed the messages of the hour by those of that time.
    package func refresh(_ deliveries: DeliveryRepository, now: Int64) throws(StoreFailure) {
        let hour = now / 3_600
        let found = try deliveries.limits(now: now).map { limit throws(StoreFailure) in
            (
                Key(limit.team, limit.provider),
                Entry(
                    standing: limit.inForce(now: now), hour: hour,
                    messages: limit.inForce(now: now) == .slowed
                        ? try deliveries.forwarded(
                            team: limit.team, provider: limit.provider, hour: hour)
                        : 0)
            )
        }.filter { $0.1.standing != .open }
        entries.withLock { entries in
            var next = Dictionary(found) { first, _ in first }
            for (key, entry) in next {
                // Counts of this host that are not in the store yet.
                guard let known = entries[key], known.hour == entry.hour else { continue }
                next[key]?.messages = max(entry.messages, known.messages)
            }
            entries = next
        }
    }

    /// As `RelayDirectory.admission`.
    package func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) -> DeliveryAdmission {
        let key = Key(team, provider)
        return entries.withLock { entries in
            guard let entry = entries[key] else { return .open }
            switch entry.standing {
            case .open: return .open
            case .held: return .held
            case .slowed:
                let messages = entry.hour == now / 3_600 ? entry.messages : 0
                guard messages < perHour else { return .slowed }
                entries[key] = Entry(
                    standing: .slowed, hour: now / 3_600, messages: messages + 1)
                return .open
            }
        }
    }
}
