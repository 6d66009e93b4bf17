// Databases with the schema of this program. The migrations run once in a process for each engine;
// every further database is a copy.

import Accounts
import Database
import Foundation
import PosternPostgres
import PosternSQLite
import PostgresHarness

package enum MigratedStore {
    /// A migrated file, closed and without a log.
    private static let file: Result<String, any Error> = Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-schema-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.appendingPathComponent("postern.db").path
        let database = try SQLiteDatabase(path: path, creating: true)
        _ = try Migrator().migrate(database, now: 1)
        try database.close()
        atexit { MigratedStore.removeFile() }
        return path
    }

    private static func removeFile() {
        guard let path = try? file.get() else { return }
        try? FileManager.default.removeItem(
            at: URL(fileURLWithPath: path).deletingLastPathComponent())
    }

    /// A new file at `path`. Its writers wait for each other for as long as a busy machine may
    /// need.
    package static func sqlite(at path: String, busyTimeout: Double = 60) throws -> SQLiteDatabase {
        try FileManager.default.copyItem(atPath: file.get(), toPath: path)
        return try SQLiteDatabase(path: path, busyTimeout: busyTimeout)
    }

    /// The script that creates a migrated schema on the shared server, with `schemaName` as its
    /// name.
    private static let script: Result<String, any Error>? = PostgresServer.shared.map { server in
        Result { try dump(server) }
    }

    private static func dump(_ server: PostgresServer) throws -> String {
        let database = try PostgresDatabase(url: server.url(schema: schemaName))
        _ = try Migrator().migrate(database, now: 1)
        try database.close()
        return try server.dump(schema: schemaName)
    }
    private static let schemaName = "postern_schema_of_tests"

    /// A new schema of the shared server.
    package static func postgres(
        schema: String, on server: PostgresServer, settings: PostgresDatabase.Settings = .init()
    ) throws -> PostgresDatabase {
        try server.psql((script?.get() ?? "").replacingOccurrences(of: schemaName, with: schema))
        return try PostgresDatabase(url: server.url(of: schema), settings: settings)
    }
}
