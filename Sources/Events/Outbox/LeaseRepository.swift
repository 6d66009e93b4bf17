// Leases: what one of all processes on a store does at a time, with a number by which the store tells a former holder from the
// present one.

import Database

/// A lease that was taken. What its holder writes names it, and is refused once someone else has taken the lease.
package struct Lease: Sendable, Hashable {
    package let name: String
    /// Rises with each taking.
    package let fence: Int64
    /// Random, of the process: a standby that lacks the last changes may give a fence twice after a failover.
    package let holder: String
}

/// What the store knows of a lease. While its holder works it changes: whoever sees it unchanged for long may take it. So no
/// clock is compared with another machine's.
package struct LeaseState: Sendable, Hashable {
    fileprivate let fence: Int64
    package let holder: String
    fileprivate let beat: Int64

    /// Whether its last holder gave it back, or it never had one.
    package var isFree: Bool { holder.isEmpty }
}

/// Takes, renews and gives back leases.
package struct LeaseRepository: Sendable {
    let database: any Database

    package func state(_ name: String) throws(StoreFailure) -> LeaseState {
        let row = try database.row("SELECT fence, holder, beat FROM leases WHERE name = \(name)")
        guard let row else { return LeaseState(fence: 0, holder: "", beat: 0) }
        return try LeaseState(fence: row["fence"], holder: row["holder"], beat: row["beat"])
    }

    /// Takes the lease if it is still as it was seen; nil where it is not. Durable: a fence that was given is never given again.
    package func take(_ name: String, seen: LeaseState, holder: String) throws(StoreFailure) -> Lease? {
        try database.write(.durable) { connection throws(StoreFailure) in
            let fence: Int64? = try connection.value(
                """
                INSERT INTO leases (name, fence, holder, beat) VALUES (\(name), 1, \(holder), 1)
                ON CONFLICT (name) DO UPDATE SET fence = leases.fence + 1, holder = excluded.holder, beat = leases.beat + 1
                    WHERE leases.fence = \(seen.fence) AND leases.holder = \(seen.holder) AND leases.beat = \(seen.beat)
                RETURNING fence
                """)
            return fence.map { Lease(name: name, fence: $0, holder: holder) }
        }
    }

    /// Shows the others that the holder works; false where it holds the lease no more.
    package func renew(_ lease: Lease) throws(StoreFailure) -> Bool { try change(lease, "beat = beat + 1") }

    /// Gives it back, if it is ours still: another one may take it at once.
    package func release(_ lease: Lease) throws(StoreFailure) { _ = try change(lease, "holder = '', beat = beat + 1") }

    private func change(_ lease: Lease, _ assignments: SQL) throws(StoreFailure) -> Bool {
        try database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run(
                """
                UPDATE leases SET \(assignments)
                WHERE name = \(lease.name) AND fence = \(lease.fence) AND holder = \(lease.holder)
                """) == 1
        }
    }
}

extension DatabaseConnection {
    /// Whether the lease is still its holder's, in this transaction.
    func holds(_ lease: Lease) throws(StoreFailure) -> Bool {
        try row(
            "SELECT fence FROM leases WHERE name = \(lease.name) AND fence = \(lease.fence) AND holder = \(lease.holder)") != nil
    }
}
