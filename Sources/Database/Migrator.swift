// Brings a database to the schema of this program, and refuses a newer one.

/// The result of a migration run.
package struct MigrationReport: Sendable, Hashable {
    /// The version before; 0 for an empty database.
    package let from: Int64
    /// The version after.
    package let to: Int64
    /// Names of the migrations applied now, as `0001-schema`.
    package let applied: [String]
}

/// Applies migrations in order, each in a separate transaction, recorded with its checksum.
package struct Migrator: Sendable {
    private let migrations: [Migration]

    package init(migrations: [Migration]) { self.migrations = migrations }

    /// The version this program needs.
    package var currentVersion: Int64 { migrations.last?.version ?? 0 }

    /// Applies missing migrations. Several processes may try at once: each step takes the writer's
    /// lock and checks again. Throws `newerSchema` if the database is newer than the program, and
    /// `changedMigration` if its history differs. A complete database is only read. Before anything
    /// is made, the engine is tested (`requireEngine`).
    package func migrate(
        _ database: any Database, now: Int64
    ) throws(StoreFailure) -> MigrationReport {
        if try pending(database).isEmpty {
            return MigrationReport(from: currentVersion, to: currentVersion, applied: [])
        }
        try database.requireEngine()
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.runScript(
                database.dialect.translate(
                    """
                    CREATE TABLE IF NOT EXISTS schema_migrations (
                        version {int} NOT NULL PRIMARY KEY,
                        name TEXT NOT NULL,
                        checksum TEXT NOT NULL,
                        applied_at {int} NOT NULL
                    )
                    """))
        }
        let from = try database.read(check)
        var applied: [String] = []
        for migration in migrations where migration.version > from {
            let isNew = try database.write(.durable) { connection throws(StoreFailure) in
                try connection.runScript(database.dialect.translate(Self.prologue))
                guard try check(connection) < migration.version else { return false }
                try connection.runScript(database.dialect.translate(migration.sql))
                try connection.run(
                    """
                    INSERT INTO schema_migrations (version, name, checksum, applied_at)
                    VALUES \(list: [migration.version, migration.name, migration.checksum, now])
                    """)
                return true
            }
            if isNew { applied.append(migration.title) }
        }
        // A first migration made the tables that the remaining tests need.
        if from == 0 { try database.requireEngine() }
        return MigrationReport(from: from, to: currentVersion, applied: applied)
    }

    /// Names of the missing migrations. Changes nothing.
    package func pending(_ database: any Database) throws(StoreFailure) -> [String] {
        try database.read { connection throws(StoreFailure) in
            let version: Int64
            do throws(StoreFailure) {
                version = try check(connection)
            } catch  where error.code == .permanent(.statement) {
                version = 0  // no table of migrations yet
            }
            return migrations.filter { $0.version > version }.map(\.title)
        }
    }

    /// The effects of the missing migrations. Changes nothing. Counts the rows of the tables that
    /// they process, which may take a while.
    package func plan(_ database: any Database) throws(StoreFailure) -> [MigrationStep] {
        let missing = Set(try pending(database))
        let isEmpty = missing.count == migrations.count
        var reader = MigrationReader(database.dialect)
        var steps: [MigrationStep] = []
        for migration in migrations where missing.contains(migration.title) {
            var step = reader.step(migration)
            for index in step.passes.indices where !isEmpty {
                step.passes[index].rows = try database.readAtLength {
                    connection throws(StoreFailure) in
                    try connection.rows(
                        "SELECT COUNT(*) AS found FROM \(step.passes[index].table)", []
                    ).first?["found"] ?? 0
                }
            }
            steps.append(step)
        }
        return steps
    }

    /// Whether any migration has been applied. Changes nothing.
    package func isBegun(_ database: any Database) throws(StoreFailure) -> Bool {
        try pending(database).count < migrations.count
    }

    /// Throws `corrupted` for an empty database: if a store was lost, mail to all its addresses
    /// would be refused permanently.
    package func requireBegun(_ database: any Database) throws(StoreFailure) {
        guard try !isBegun(database) else { return }
        throw .permanent(
            .empty,
            "the database contains no tables of Postern: restore a backup with postern store restore, or make a new installation with postern init"
        )
    }

    /// The version of the database, after comparing its history with this program's.
    private func check(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        let rows = try connection.rows(
            "SELECT version, checksum FROM schema_migrations ORDER BY version")
        var version: Int64 = 0
        for row in rows {
            version = try row["version"]
            guard let known = migrations.first(where: { $0.version == version }) else {
                let newest: Int64 = try rows.last?["version"] ?? version
                throw .permanent(
                    .newerSchema,
                    "the database has schema version \(newest), this program knows up to \(currentVersion): "
                        + "run the newer postern that migrated it")
            }
            guard try row["checksum"] == known.checksum else {
                throw .permanent(
                    .changedMigration,
                    "the database was made with another edit of \(known.title), and before the first release there is no upgrade: "
                        + "start again with postern init in an empty folder, with an empty database"
                )
            }
        }
        return version
    }

    /// SQLite has one writer, which does not wait. On PostgreSQL a step must see changes that were
    /// committed while it waited for its locks; a serializable one would see the state before the
    /// first lock. It begins when no other process is migrating, and has no time limit. Other
    /// writers do not take this lock.
    private static let prologue = """
        {postgresql}SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        {postgresql}SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
        {postgresql}LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE;
        """
}
