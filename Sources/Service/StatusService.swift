// Reports the service's state to the database every two seconds.

import Accounts
import Concurrency
import Database
import Foundation
import HTTP
import Logging
import Monitoring
import ServiceLifecycle
import Synchronization

struct StatusService: Service {
    /// The pause between two reports.
    private static let interval: Duration = .seconds(2)
    /// The pause until the next report if the store did not accept one: until it does, `/readyz`
    /// answers 503.
    private static let retryPause: Duration = .milliseconds(250)

    let parts: ServiceParts
    let pool: BlockingPool
    /// The reason why Postfix's queue cannot be read; nil if it can, or was not read yet.
    let queueTrouble: ValueHolder<String?>
    /// The reason why Postfix's log cannot be read; nil if it can, or no log is named.
    let logTrouble: ValueHolder<String?>
    /// The reason why HTTP clients cannot connect, or should not trust the certificate.
    let certificateTrouble: @Sendable (_ now: Int64) -> String?
    /// The end of that certificate's validity; nil if there is no certificate.
    let certificateEnd: @Sendable () -> Int64?
    /// The keys that the mail path uses. They are the store's keys after the mail path switched to
    /// them.
    let keysInUse: ValueHolder<KeyRing>

    func run() async throws {
        let configuration = parts.installation.configuration
        let host = configuration.hostname
        let pid = Int64(getpid())
        var maker = SnapshotMaker(
            metrics: parts.metrics, startedAt: parts.now(), milter: configuration.milter.socket,
            http: configuration.http.listen.map { "\($0.host):\($0.port)" })
        let measurement = Mutex(StoreMeasurement())
        maker = await PeriodicTask.untilShutdown(keeping: maker) { maker in
            let now = parts.now()
            // If the store does not accept the report, these counts are reported with the next one.
            var next = maker
            let minute = next.minute(now: now)
            var made = next.snapshot(now: now)
            made.keys = keysInUse.current.summary
            made.queueTrouble = queueTrouble.current
            made.logTrouble = logTrouble.current
            made.certificateTrouble = certificateTrouble(now)
            parts.metrics.certificateEnd.set(Double(certificateEnd() ?? 0))
            let snapshot = made
            do {
                try await pool.run {
                    [
                        store = parts.store, installation = parts.installation,
                        metrics = parts.metrics
                    ] in
                    var snapshot = snapshot
                    // Only this task uses it, one round at a time.
                    var own = measurement.withLock { $0 }
                    snapshot.replicaTrouble = try own.take(installation, metrics)
                    measurement.withLock { [own] in $0 = own }
                    snapshot.clockAhead = try ClockSkew.measure(store.database)
                    let text = String(decoding: try JSONEncoder().encode(snapshot), as: UTF8.self)
                    try store.serviceStatus.report(
                        host: host, pid: pid, snapshot: text, minute: minute, now: now)
                }
                maker = next
                parts.metrics.storeWritable.set(1)
            } catch is CancellationError {
                // The service is ending.
            } catch {
                parts.metrics.storeWritable.set(0)
            }
            return parts.metrics.storeWritable.value > 0 ? Self.interval : Self.retryPause
        }
        let last = maker.minute(now: parts.now(), isLast: true)
        try? await pool.finish { [store = parts.store] in
            try store.serviceStatus.remove(host: host, pid: pid, minute: last)
        }
    }
}
