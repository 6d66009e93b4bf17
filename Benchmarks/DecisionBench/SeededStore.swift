// A store with many accounts that were asked about before, on either engine.

import Accounts
import BenchReport
import BenchStores
import Database
import Foundation
import PosternPostgres
import PosternSQLite
import PostgresHarness

/// The store of the benchmark.
struct SeededStore {
    let database: any Database
    let store: Store
    let team: Team
    let key: String
    /// How many accounts can be asked about: each `stride`th.
    let asked: Int
    let stride: Int
    private let folder: URL
    private let server: PostgresServer?

    /// Fills a new one.
    static func make(_ engine: Engine, accounts: Int, log: Int, now: Int64) throws -> SeededStore {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("postern-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let database: any Database
        var server: PostgresServer?
        switch engine {
        case .sqlite: database = try SQLiteDatabase(path: folder.appendingPathComponent("postern.db").path, creating: true)
        case .postgres:
            guard let binaries = PostgresServer.installed else { throw LoadError(description: "PostgreSQL is not installed") }
            let started = try PostgresServer(
                binaries: binaries, settings: ["shared_buffers=2GB", "max_wal_size=8GB", "maintenance_work_mem=1GB", "fsync=on"])
            server = started
            var settings = PostgresDatabase.Settings()
            settings.statementMilliseconds = 3_600_000
            database = try PostgresDatabase(url: try started.url(schema: "bench"), settings: settings)
        }
        _ = try Migrator().migrate(database, now: now)
        guard let keys = KeyRing(random: (0..<96).map { UInt8($0) }) else { throw CocoaError(.featureUnsupported) }
        let store = Store(database: database, keys: keys, relayDomains: [Seeding.domain])
        try Seeding.fill(store, engine, count: accounts, now: now)
        // Evenly among all: a question opens the inbox, to see whose domain it is.
        let asked = min(accounts, 100_000)
        let stride = accounts / asked
        for start in Swift.stride(from: 1, through: asked, by: 10_000) {
            try Seeding.seal(store, keys: keys, users: (start..<min(start + 10_000, asked + 1)).map { $0 * stride })
        }
        try Seeding.fillLog(store, engine, count: log, accounts: accounts, now: now)
        let key = try store.apiKeys.issue(
            team: "bench", scopes: [.decisionsWrite, .decisionsRead], expiresAt: nil, note: "", Change(actor: "bench", now: now))
        return SeededStore(
            database: database, store: store, team: try store.teams.team("bench"), key: key.text.revealed, asked: asked,
            stride: stride, folder: folder, server: server)
    }

    func remove() {
        try? database.close()
        server?.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// As the store names an account, of 1 to `asked`.
    func sub(_ number: Int) -> String { Seeding.localPart(number * stride) }
}
