// A benchmark's own database on either engine, which is deleted at the end or stays for the next
// run.

import Database
import Foundation
import PosternPostgres
import PosternSQLite
import PostgresHarness

/// Ends with `end`.
package struct BenchDatabase: Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    package let database: any Database
    private let folder: URL
    /// Whether it stays.
    private let isKept: Bool
    private let server: PostgresServer?

    /// Makes one with the current schema and fills it, or opens the one of an earlier run.
    /// - Parameters:
    ///   - name: of its folder.
    ///   - kept: folder in which databases stay; nil for a temporary one.
    ///   - fill: adds the data.
    package static func open(
        _ engine: Engine, name: String, kept: String?, now: Int64,
        fill: (any Database) throws -> Void
    ) throws -> BenchDatabase {
        let folder =
            (kept.map { URL(fileURLWithPath: $0) } ?? FileManager.default.temporaryDirectory)
            .appendingPathComponent(kept == nil ? "postern-bench-\(UUID().uuidString)" : name)
        let mark = folder.appendingPathComponent("filled")
        let isFilled = FileManager.default.fileExists(atPath: mark.path)
        // An incomplete one is useless.
        if !isFilled { try? FileManager.default.removeItem(at: folder) }
        // PostgreSQL's account looks for its data in there.
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        let open: () throws -> any Database
        var server: PostgresServer?
        switch engine {
        case .sqlite:
            open = {
                try SQLiteDatabase(
                    path: folder.appendingPathComponent("postern.db").path, creating: !isFilled)
            }
        case .postgres:
            guard let binaries = PostgresServer.installed else {
                throw Failure(description: "PostgreSQL is not installed")
            }
            let started = try PostgresServer(
                binaries: binaries,
                data: kept.map { _ in folder.appendingPathComponent("data").path },
                settings: [
                    "shared_buffers=2GB", "max_wal_size=8GB", "maintenance_work_mem=1GB",
                    "fsync=on",
                ])
            server = started
            var settings = PostgresDatabase.Settings()
            settings.statementMilliseconds = 3_600_000
            let url = try started.url(schema: "bench")
            open = { try PostgresDatabase(url: url, settings: settings) }
        }
        var database = try open()
        _ = try Migrator().migrate(database, now: now)
        if !isFilled {
            try fill(database)
            try Data().write(to: mark)
            // The connection that filled it has a page cache that no service has.
            try database.close()
            database = try open()
        }
        return BenchDatabase(
            database: database, folder: folder, isKept: kept != nil, server: server)
    }

    package func end() {
        try? database.close()
        if isKept { server?.stop() }
        server?.remove()
        if !isKept { try? FileManager.default.removeItem(at: folder) }
    }
}
