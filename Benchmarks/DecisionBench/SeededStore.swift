// A store with many accounts that have earlier decisions, on either engine.

import Accounts
import BenchStores
import Database
import Foundation

/// The store of the benchmark.
struct SeededStore {
    let store: Store
    let team: Team
    let key: String
    /// The number of accounts that can be queried: each `stride`th.
    let asked: Int
    let stride: Int
    private let place: BenchDatabase

    /// Fills a new one, or opens the one of an earlier run.
    /// - Parameter kept: folder in which stores stay; nil for a temporary one.
    static func make(
        _ engine: Engine, accounts: Int, log: Int, kept: String?, now: Int64
    ) throws -> SeededStore {
        guard let keys = KeyRing(random: (0..<96).map { UInt8($0) }) else {
            throw CocoaError(.featureUnsupported)
        }
        func repositories(_ database: any Database) -> Store {
            Store(database: database, keys: keys, relayDomains: [Seeding.domain])
        }
        // Spread evenly over all: a request opens the inbox, to read its domain.
        let asked = min(accounts, 100_000)
        let stride = accounts / asked
        let place = try BenchDatabase.open(
            engine, name: "\(engine.rawValue)-\(accounts)-\(log)", kept: kept, now: now
        ) {
            let store = repositories($0)
            try Seeding.fill(store, engine, count: accounts, now: now)
            for start in Swift.stride(from: 1, through: asked, by: 10_000) {
                try Seeding.seal(
                    store, keys: keys,
                    users: (start..<min(start + 10_000, asked + 1)).map { $0 * stride })
            }
            try Seeding.fillLog(store, engine, count: log, accounts: accounts, now: now)
        }
        let store = repositories(place.database)
        let key = try store.apiKeys.issue(
            team: Seeding.team, scopes: [.decisionsWrite, .decisionsRead], expiresAt: nil, note: "",
            Change(actor: "bench", now: now))
        return SeededStore(
            store: store, team: try store.teams.team(Seeding.team), key: key.text.revealed,
            asked: asked, stride: stride,
            place: place)
    }

    var database: any Database { place.database }

    func end() { place.end() }

    /// The store's name of an account, from 1 to `asked`.
    func sub(_ number: Int) -> String { Seeding.localPart(number * stride) }
}
