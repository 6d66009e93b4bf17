// The reports of the services in the store, and which services run.

import Accounts
import Database
import Foundation

/// A service's latest report.
package struct ServiceReport {
    /// As the service wrote it.
    package let entry: ServiceStatusRepository.Entry
    /// Nil if another version wrote it and it cannot be read.
    package let snapshot: ServiceSnapshot?
    /// Seconds since it was written, by the store's clock; negative if a clock was set back since.
    private let age: Int64

    /// Seconds since it was written, as far as the clocks can tell.
    package var silentFor: Int64 { isRunning ? max(0, age) : abs(age) }

    /// Whether the service still reports. A report with a future time does not come from a running
    /// service, because that would have written a newer one. If the report cannot be read, it is
    /// unknown by how much the service's clock is ahead.
    package var isRunning: Bool {
        age <= ServiceSnapshot.timeout && (age >= -ServiceSnapshot.timeout || snapshot == nil)
    }

    /// The reports of all services, the latest first.
    /// - Parameter now: seconds since 1970, by this machine's clock.
    package static func all(_ store: Store, now: Int64) throws(StoreFailure) -> [ServiceReport] {
        let now = now - ClockSkew.seconds(try ClockSkew.measure(store.database))
        return try store.serviceStatus.all().map { entry in
            let snapshot = try? JSONDecoder().decode(
                ServiceSnapshot.self, from: Data(entry.snapshot.utf8))
            return ServiceReport(
                entry: entry, snapshot: snapshot,
                age: now - entry.updatedAt + ClockSkew.seconds(snapshot?.clockAhead))
        }
    }
}

extension Store {
    /// Hosts and processes of the running services.
    /// - Parameter now: seconds since 1970.
    package func runningServices(now: Int64) throws(StoreFailure) -> [String] {
        try ServiceReport.all(self, now: now).filter(\.isRunning).map {
            "\($0.entry.host), pid \($0.entry.pid)"
        }
    }
}
