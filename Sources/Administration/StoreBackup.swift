// Backups of a SQLite store, made while it runs, and their restore.

import Accounts
import Database
import Foundation
import PosternConfiguration
import PosternSQLite
import Support

package enum StoreBackup {
    /// The contents of a backup file.
    package struct Contents: Sendable, Hashable {
        package let schemaVersion: Int64
        package let teams: Int
        package let users: Int
        package let relayAddresses: Int
        /// The reason why the audit has no line of the backup; nil if it has one.
        package fileprivate(set) var auditFailure: StoreFailure?
    }

    /// Copies one consistent state of the database into a new, self-contained file, and checks it.
    /// The file gets its name when it is complete. Throws `ConfigurationError` (`exists`) instead
    /// of overwriting, and `unmet` for a server, which has its own tools.
    package static func make(
        _ location: DatabaseLocation, to file: String, _ change: Change
    ) throws -> Contents {
        let path = try path(
            location, file,
            "pg_dump --format=custom --file=\(RemedyCommand.quoted(file)) \(RemedyCommand.quoted("\(location)"))"
        )
        guard !FileManager.default.fileExists(atPath: file) else {
            throw ConfigurationError(.exists, at: file, "it exists and is not overwritten")
        }
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        guard access(folder, W_OK | X_OK) == 0 else {
            let code = errno
            throw ConfigurationError(
                code == EACCES ? .notPermitted : .inputOutput, at: file,
                "it cannot be created in \(folder): \(String(cString: strerror(code)))")
        }
        let database = try SQLiteDatabase(path: path)
        defer { try? database.close() }
        try Migrator().requireBegun(database)
        // The audit line is written before the copy, which then contains it. A store that accepts
        // no changes, for example on a full disk, is copied without it.
        var failure: StoreFailure?
        do {
            try database.write(.durable, timeout: .seconds(60)) { connection throws(StoreFailure) in
                try connection.audit(change, "store.backup", "store", file)
            }
        } catch { failure = error }
        let target: String
        do { target = try OwnedFile.resolve(file) } catch {
            throw ConfigurationError(.inputOutput, at: file, error.reason)
        }
        let leftovers = Leftovers.backups(at: target)
        leftovers.removeAbandoned()
        let new = leftovers.ownPath
        do {
            try database.backUp(to: new)
            var contents = try examine(new, keys: nil)
            contents.auditFailure = failure
            try place(new, at: target)
            return contents
        } catch {
            for end in ["", "-journal", "-wal", "-shm"] { unlink(new + end) }
            throw error
        }
    }

    /// Gives a complete file its name. Throws `ConfigurationError` (`exists`) if another file has
    /// that name by now.
    private static func place(_ new: String, at path: String) throws(ConfigurationError) {
        let code = link(new, path) == 0 ? 0 : errno
        if code == 0 {
            unlink(new)
        } else if [EPERM, ENOTSUP, EMLINK].contains(code),
            !FileManager.default.fileExists(atPath: path)
        {
            // The file system has no links, as on many removable disks.
            guard rename(new, path) == 0 else { throw unplaced(path, errno) }
        } else {
            throw unplaced(path, code)
        }
        let folder = open(
            URL(fileURLWithPath: path).deletingLastPathComponent().path,
            O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder >= 0 {
            fsync(folder)
            close(folder)
        }
    }

    private static func unplaced(_ path: String, _ code: Int32) -> ConfigurationError {
        ConfigurationError(
            code == EEXIST ? .exists : .inputOutput, at: path,
            "it cannot be created: \(String(cString: strerror(code)))")
    }

    /// Restores a backup to the configured place of the database, if no database exists there.
    /// Throws `ConfigurationError` (`exists`) instead of overwriting, and `unmet` while a service
    /// runs. Throws a permanent failure if the backup is damaged, or if a newer program or another
    /// key file made it.
    package static func restore(
        _ file: String, to location: DatabaseLocation, keys: KeyRing
    ) throws -> Contents {
        let path = try path(
            location, file,
            "pg_restore --dbname=\(RemedyCommand.quoted("\(location)")) \(RemedyCommand.quoted(file)), into an empty database"
        )
        guard let hold = try SQLiteDatabase.holdForRestore(path) else {
            throw StoreFailure.refused(
                .unmet,
                "postern serve is running on \(path), and still uses the files that were moved away: stop it first; nothing was changed"
            )
        }
        defer { hold.release() }
        for name in ["", "-wal", "-shm", "-journal"].map({ path + $0 })
        where FileManager.default.fileExists(atPath: name) {
            throw ConfigurationError(
                .exists, at: name,
                "it is not overwritten: stop postern serve, and move the database and its -wal and -shm files away first"
            )
        }
        guard FileManager.default.fileExists(atPath: file) else {
            throw ConfigurationError(.inputOutput, at: file, "the file does not exist")
        }
        // Checked before it is moved to its place, under a name that no program opens.
        let new = path + ".restoring"
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(new + suffix) }
        try copy(file, to: new)
        do {
            try requireOwnProgram(new)
            let contents = try examine(new, keys: keys)
            try place(new, at: path)
            return contents
        } catch {
            unlink(new)
            throw error
        }
    }

    /// Copies a backup. One without a log file beside it is complete and only read, because it may
    /// be mounted read-only. One with a log may be in use, so SQLite copies it, unless it cannot be
    /// written to.
    private static func copy(_ file: String, to new: String) throws(StoreFailure) {
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        let mayBeInUse = ["-wal", "-journal"].contains {
            FileManager.default.fileExists(atPath: file + $0)
        }
        guard mayBeInUse, access(file, W_OK) == 0, access(folder, W_OK) == 0 else {
            return try SQLiteDatabase.copyFile(file, to: new)
        }
        let source = try SQLiteDatabase(path: file)
        defer { try? source.close() }
        try source.backUp(to: new)
    }

    private static func path(
        _ location: DatabaseLocation, _ file: String, _ command: String
    ) throws -> String {
        if let path = location.path { return path }
        throw StoreFailure.refused(
            .unmet, "the database is on PostgreSQL, which has its own programs for this: \(command)"
        )
    }

    /// The keys may have been replaced since the backup was made.
    private static func requireKeys(_ keys: KeyRing, _ database: any Database) throws(StoreFailure)
    {
        let store = Store(database: database, keys: keys, relayDomains: [])
        for usage in try store.keyRotation.usage() where keys[usage.purpose]?[usage.key] == nil {
            throw StoreFailure.permanent(
                .unsealing,
                "\(usage.count) values in it were made with \(usage.purpose.rawValue) key \(usage.key), which the key file lacks: "
                    + "restore that line of the former key file, with the state old, and run postern keys file rotate afterwards"
            )
        }
    }

    /// Another person may have changed a backup. Triggers and views, which run when a database is
    /// read or written, must be those of our migrations; their texts are compared. The failure
    /// names the one that differs.
    private static func requireOwnProgram(_ path: String) throws(StoreFailure) {
        let own = path + "-own"
        let cleanUp = { (path: String) in
            for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) }
        }
        cleanUp(own)
        defer { cleanUp(own) }
        let database = try SQLiteDatabase(path: path)
        defer {
            try? database.close()
            for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
        }
        guard try Migrator().isBegun(database) else {
            throw StoreFailure.permanent(
                .unexpectedData, "it is not a backup of Postern: the file has none of its tables")
        }
        let (version, found) = try database.read { connection throws(StoreFailure) in
            let found = try program(connection)
            if let view = found.keys.filter({ $0.hasPrefix("view ") }).min() { throw foreign(view) }
            return (
                try connection.value("SELECT MAX(version) FROM schema_migrations", Int64.self) ?? 0,
                found
            )
        }
        // A schema from other migrations may have other triggers, so it is refused with that reason
        // first.
        _ = try Migrator().pending(database)
        let model = try SQLiteDatabase(path: own, creating: true)
        defer { try? model.close() }
        _ = try Migrator(migrations: Migration.all.filter { $0.version <= version }).migrate(
            model, now: 0)
        let expected = try model.read(program)
        if let name = found.filter({ expected[$0.key] != $0.value }).keys.min() {
            throw foreign(name)
        }
    }

    private static func foreign(_ name: String) -> StoreFailure {
        .permanent(
            .unexpectedData,
            "it has a \(name.withoutControls(limit: 80)) that Postern did not create: use another backup; nothing was restored"
        )
    }

    /// The names `trigger NAME` and `view NAME`, with their texts. White space and quotes are left
    /// out, because SQLite may change them when a table is renamed.
    private static func program(
        _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> [String: String] {
        let rows = try connection.rows(
            "SELECT type || ' ' || name AS name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"
        )
        var texts: [String: String] = [:]
        for row in rows {
            let sql: String = try row["sql"]
            texts[try row["name"]] = sql.filter { !$0.isWhitespace && $0 != "\"" }
        }
        return texts
    }

    private static func examine(_ path: String, keys: KeyRing?) throws(StoreFailure) -> Contents {
        let database = try SQLiteDatabase(path: path)
        defer {
            try? database.close()
            for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
        }
        let pending = try Migrator().pending(database)
        if let keys {
            try Store.checkKeys(keys, of: database, isInUse: false)
            if pending.isEmpty { try requireKeys(keys, database) }
        }
        return try database.read { connection throws(StoreFailure) in
            func count(_ table: String) throws(StoreFailure) -> Int {
                try connection.value("SELECT COUNT(*) FROM \(raw: table)") ?? 0
            }
            return Contents(
                schemaVersion: try connection.value("SELECT MAX(version) FROM schema_migrations")
                    ?? 0,
                teams: try count("teams"), users: try count("users"),
                relayAddresses: try count("relay_addresses"))
        }
    }
}
