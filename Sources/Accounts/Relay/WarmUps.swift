// How many forwards of new hosts went to each family of providers on a day.

import Database
import RelayCore
import Support

/// The counts of a host at a provider on one day.
package struct WarmUpCount: Sendable, Hashable {
    package let host: String
    package let provider: ProviderFamily
    /// Since 1970 (UTC).
    package let day: Int64
    /// Forwards that left.
    package let messages: Int
    /// How often a forward was deferred: a sender that tries again counts again.
    package let deferred: Int
}

extension DeliveryRepository {
    /// Counts one forward unless that would exceed the ceiling; then counts that it was deferred.
    /// Exact over all processes.
    /// - Parameters:
    ///   - day: since 1970 (UTC).
    ///   - ceiling: 1 or more.
    /// - Returns: whether the forward was counted.
    package func reserveWarmUp(
        host: String, provider: ProviderFamily, day: Int64, ceiling: Int
    ) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            let count: Int? = try connection.value(
                """
                INSERT INTO warm_up_counts (host, provider, day, messages, deferred)
                VALUES (\(host), \(provider), \(day), 1, 0)
                ON CONFLICT (host, provider, day) DO UPDATE SET messages = warm_up_counts.messages + 1
                    WHERE warm_up_counts.messages < \(ceiling)
                RETURNING messages
                """)
            if count != nil { return true }
            try connection.run(
                """
                UPDATE warm_up_counts SET deferred = deferred + 1
                WHERE host = \(host) AND provider = \(provider) AND day = \(day)
                """)
            return false
        }
    }

    /// Takes back a count of `reserveWarmUp`, for a message that was not accepted after all.
    package func releaseWarmUp(
        host: String, provider: ProviderFamily, day: Int64
    ) throws(StoreFailure) {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE warm_up_counts SET messages = messages - 1
                WHERE host = \(host) AND provider = \(provider) AND day = \(day) AND messages >= 1
                """)
        }
    }

    /// The result that `reserveWarmUp` would have now, without counting: for `postern explain`.
    package func wouldReserveWarmUp(
        host: String, provider: ProviderFamily, day: Int64, ceiling: Int
    ) throws(StoreFailure) -> Bool {
        try warmUpCounts(day: day).first {
            $0.host.hasSameOctets(as: host) && $0.provider == provider
        }
        .map { $0.messages < ceiling } ?? true
    }

    /// The counts of a day (since 1970, UTC), of all hosts.
    package func warmUpCounts(day: Int64) throws(StoreFailure) -> [WarmUpCount] {
        try database.rows(
            """
            SELECT host, provider, day, messages, deferred FROM warm_up_counts
            WHERE day = \(day) ORDER BY host, provider
            """
        ).map { row throws(StoreFailure) in
            try WarmUpCount(
                host: row["host"], provider: row["provider"], day: row["day"],
                messages: row["messages"], deferred: row["deferred"])
        }
    }
}
