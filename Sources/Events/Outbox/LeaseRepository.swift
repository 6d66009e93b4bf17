// Leases for work that only one process on a store does at a time. By a lease's number, the store
// distinguishes a former holder from the present one.

import Database

/// A lease of a process. Its holder's writes name it, and are refused after another process has
/// taken the lease.
package struct Lease: Sendable, Hashable {
    package let name: String
    /// Increases each time the lease is taken.
    package let fence: Int64
    /// A random value of the process. It is needed because after a failover, a standby that lacks
    /// the last changes may give the same fence again.
    package let holder: String
}

/// The state of a lease in the store. It changes while its holder works: a process that sees it
/// unchanged for long may take the lease. So clocks of different machines are not compared.
package struct LeaseState: Sendable, Hashable {
    fileprivate let fence: Int64
    package let holder: String
    fileprivate let beat: Int64

    /// Whether its last holder released it, or it never had a holder.
    package var isFree: Bool { holder.isEmpty }
}

/// Takes, renews and releases leases.
package struct LeaseRepository: Sendable {
    let database: any Database

    package func state(_ name: String) throws(StoreFailure) -> LeaseState {
        let row = try database.row("SELECT fence, holder, beat FROM leases WHERE name = \(name)")
        guard let row else { return LeaseState(fence: 0, holder: "", beat: 0) }
        return try LeaseState(fence: row["fence"], holder: row["holder"], beat: row["beat"])
    }

    /// Takes the lease if its state is still `seen`; nil if it is not. Durable: a fence is never
    /// given twice.
    package func take(
        _ name: String, seen: LeaseState, holder: String
    ) throws(StoreFailure) -> Lease? {
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

    /// Shows other processes that the holder works; false if it does not have the lease any longer.
    package func renew(_ lease: Lease) throws(StoreFailure) -> Bool {
        try change(lease, "beat = beat + 1")
    }

    /// Releases the lease if this holder still has it: another process may take it at once.
    package func release(_ lease: Lease) throws(StoreFailure) {
        _ = try change(lease, "holder = '', beat = beat + 1")
    }

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
    /// Whether the holder still has the lease, in this transaction.
    func holds(_ lease: Lease) throws(StoreFailure) -> Bool {
        try row(
            "SELECT fence FROM leases WHERE name = \(lease.name) AND fence = \(lease.fence) AND holder = \(lease.holder)"
        ) != nil
    }
}
