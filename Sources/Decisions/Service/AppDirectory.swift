// Apps in memory. A request needs no read for its app, and gets an answer while the store is
// unavailable.

import Accounts
import Database
import Synchronization

/// Apps by `client_id`. They are at most `freshness` old while the store answers, and as last known
/// while it does not.
package final class AppDirectory: Sendable {
    private struct Entry {
        let app: DecisionApp
        let readAt: Int64
    }

    /// Seconds after which an app is read again.
    package static let freshness: Int64 = 5
    /// Most apps in memory; beyond it all are read again.
    private static let capacity = 100_000

    private let repository: AppRepository
    private let entries = Mutex<[String: Entry]>([:])

    package init(_ repository: AppRepository) { self.repository = repository }

    /// Reads all apps, so that none is unknown if the store becomes unavailable. Blocks.
    package func preload(now: Int64) throws(StoreFailure) {
        let apps = try repository.decisionApps(limit: Self.capacity)
        entries.withLock { entries in
            for app in apps { entries[app.clientID] = Entry(app: app, readAt: now) }
        }
    }

    /// An app that is known and fresh; nil if it must be read again.
    package func fresh(_ clientID: String, now: Int64) -> DecisionApp? {
        entries.withLock { entries in
            guard let entry = entries[clientID], now - entry.readAt < Self.freshness else {
                return nil
            }
            return entry.app
        }
    }

    /// An app as last known.
    package func known(_ clientID: String) -> DecisionApp? {
        entries.withLock { $0[clientID]?.app }
    }

    /// Reads an app. Blocks.
    package func read(_ clientID: String, now: Int64) throws(StoreFailure) -> DecisionApp? {
        let app = try repository.decisionApp(clientID: clientID)
        entries.withLock { entries in
            if entries.count >= Self.capacity, entries[clientID] == nil { entries.removeAll() }
            entries[clientID] = app.map { Entry(app: $0, readAt: now) }
        }
        return app
    }
}
