// Migrations: from an empty database, repeated, with rows, from a newer program, with another
// history. Before the first release there is only one migration, so the tests add a second one.

import Accounts
import Foundation
import InternetMessage
import TestSupport
import Testing

@testable import Database

@Suite(.blocking) struct MigrationTests {
    /// Adds to a table that has rows, and fills a new table from it.
    private static let second = Migration(
        version: 2, name: "second",
        sql: """
            ALTER TABLE teams ADD COLUMN motto TEXT NOT NULL DEFAULT '';
            UPDATE teams SET motto = name;
            CREATE TABLE user_marks (id {id}, user_id {int} NOT NULL REFERENCES users (id) ON DELETE CASCADE, mark {bytes}) {strict};
            INSERT INTO user_marks (user_id) SELECT id FROM users;
            CREATE INDEX user_marks_user ON user_marks (user_id);
            {sqlite}CREATE TRIGGER mottos AFTER UPDATE OF name ON teams BEGIN
            {sqlite}    UPDATE teams SET motto = NEW.name WHERE id = NEW.id;
            {sqlite}END;
            """)
    /// The program after this one.
    private static let next = Migrator(migrations: Migration.all + [second])

    /// A store with a team and three users.
    private func filled(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        for user in ["anna", "bob", "eve"] {
            try test.user(user)
            _ = try test.address(user)
        }
        return test
    }

    // MARK: The schema

    @Test func schema_beforeTheFirstRelease_isOneMigration() throws {
        #expect(Migration.all.map(\.title) == ["0001-schema"])
        let sql = try #require(Migration.all.first).sql
        // The tables of the first and of the last file.
        #expect(sql.hasPrefix("CREATE TABLE teams") && sql.contains("CREATE TABLE service_minutes"))
        #expect(!sql.contains("\n--"), "a better comment must not change the checksum")
    }

    /// `store migrate --plan` would show a statement that it cannot read as one that takes no time.
    @Test(arguments: Engine.all) func schema_everyStatement_isUnderstoodByPlans(
        _ engine: Engine
    ) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let harmless: Set = ["CREATE TRIGGER", "DO $migration$"]
        for migration in Migration.all {
            let statements = MigrationReader.statements(of: migration, database.dialect)
            #expect(!statements.isEmpty, "\(migration.name)")
            for statement in statements {
                guard case .other = statement.shape else { continue }
                let beginning = statement.words.prefix(2).joined(separator: " ")
                #expect(harmless.contains(beginning), "\(migration.name): \(beginning)")
            }
        }
    }

    // MARK: Migrating

    @Test(arguments: Engine.all) func migrate_emptyDatabase_appliesEachMigrationOnce(
        _ engine: Engine
    ) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        #expect(try Self.next.pending(database) == ["0001-schema", "0002-second"])
        #expect(try !Self.next.isBegun(database))
        let first = try Self.next.migrate(database, now: 1)
        #expect(first == MigrationReport(from: 0, to: 2, applied: ["0001-schema", "0002-second"]))
        let again = try Self.next.migrate(database, now: 2)
        #expect(again == MigrationReport(from: 2, to: 2, applied: []))
        #expect(try Self.next.pending(database).isEmpty && Self.next.isBegun(database))
        #expect(
            try database.values(
                "SELECT applied_at FROM schema_migrations ORDER BY version", Int64.self) == [1, 1])
    }

    @Test(arguments: Engine.all) func migrate_storeWithRows_keepsThemAndAddsWhatIsMissing(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        #expect(
            try Self.next.migrate(test.database, now: 2)
                == MigrationReport(from: 1, to: 2, applied: ["0002-second"]))
        #expect(
            try test.database.values("SELECT motto FROM teams", String.self) == [
                "The Juice Company"
            ])
        #expect(try test.database.value("SELECT COUNT(*) FROM user_marks", Int.self) == 3)
        #expect(try test.store.users.all().map(\.id) == ["anna", "bob", "eve"])
        #expect(
            try test.store.inboxes.inboxes(user: "eve").map(\.address.revealed.wireForm) == [
                "eve@home.example"
            ])
        try test.store.users.remove("bob", TestStore.change)
        #expect(try test.database.value("SELECT COUNT(*) FROM user_marks", Int.self) == 2)
    }

    @Test(arguments: Engine.all) func migrate_brokenMigration_leavesNothingBehind(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        let broken = Migration(
            version: 2, name: "broken",
            sql:
                "UPDATE teams SET name = ''; CREATE TABLE half (id {id}); CREATE TABLE half (id {id})"
        )
        #expect(throws: StoreFailure.permanent(.statement)) {
            try Migrator(migrations: Migration.all + [broken]).migrate(test.database, now: 2)
        }
        #expect(throws: StoreFailure.permanent(.statement)) {
            try test.database.read { try $0.rows("SELECT * FROM half", []) }
        }
        #expect(try test.store.teams.all().map(\.name) == ["The Juice Company"])
        #expect(try Self.next.migrate(test.database, now: 3).applied == ["0002-second"])
    }

    @Test(arguments: Engine.all) func migrate_twoProcessesAtOnce_applyEachMigrationOnce(
        _ engine: Engine
    ) async throws {
        let test = try filled(engine)
        let other = try engine.open(test.folder.url)
        defer { try? other.close() }
        let applied = try await withThrowingTaskGroup(of: Int.self) { group in
            for database in [test.database, other] {
                group.addTask { try Self.next.migrate(database, now: 2).applied.count }
            }
            return try await group.reduce(0, +)
        }
        #expect(applied == 1)
        #expect(try test.database.value("SELECT COUNT(*) FROM user_marks", Int.self) == 3)
    }

    /// A migration must see changes that were committed while it waited for its locks, so that a
    /// copied table loses no row.
    @Test(arguments: Engine.all) func migrate_whileAnotherHostWrites_includesItsRows(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        let host = try engine.open(test.folder.url)
        defer { try? host.close() }
        let copies = Migration(
            version: 2, name: "copies",
            sql: "{postgresql}LOCK TABLE users IN ACCESS EXCLUSIVE MODE;\n" + Self.second.sql)
        let migrator = Migrator(migrations: Migration.all + [copies])
        let ended = DispatchSemaphore(value: 0)
        try host.write(.durable) { connection in
            try connection.run("INSERT INTO users (handle, created_at) VALUES ('late', 1)")
            Thread.detachNewThread {
                _ = try? migrator.migrate(test.database, now: 2)
                ended.signal()
            }
            // Until the migration waits for this transaction. On SQLite it waits before it reads,
            // which is not visible.
            guard engine.name == "postgresql" else { return }
            let end = Date(timeIntervalSinceNow: 60)
            while try connection.value(
                """
                SELECT COUNT(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE NOT l.granted AND n.nspname = current_schema()
                """) == 0
            {
                try #require(Date() < end, "no one waits")
            }
        }
        ended.wait()
        #expect(try migrator.pending(test.database).isEmpty)
        #expect(try test.database.value("SELECT COUNT(*) FROM user_marks", Int.self) == 4)
    }

    /// Commands that show their effects use a rehearsal, also with the tables of a later migration.
    @Test(arguments: Engine.all) func rehearsal_afterTheSecondMigration_changesNothing(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        _ = try Self.next.migrate(test.database, now: 2)
        let left = try test.database.rehearse { database throws(StoreFailure) in
            try database.write(.durable) { connection throws(StoreFailure) in
                try connection.run("DELETE FROM users WHERE handle = 'bob'")
                try connection.run("UPDATE teams SET motto = 'changed'")
            }
            return try database.value("SELECT COUNT(*) FROM user_marks", Int.self)
        }
        #expect(left == 2)
        #expect(try test.database.value("SELECT COUNT(*) FROM user_marks", Int.self) == 3)
        #expect(
            try test.database.values("SELECT motto FROM teams", String.self) == [
                "The Juice Company"
            ])
    }

    // MARK: Refusals

    @Test(arguments: Engine.all) func migrate_storeOfANewerProgram_isRefused(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        _ = try Self.next.migrate(test.database, now: 2)
        for attempt in [
            { _ = try Migrator().migrate(test.database, now: 3) },
            { _ = try Migrator().pending(test.database) },
            { _ = try Migrator().plan(test.database) },
        ] {
            let error = #expect(throws: StoreFailure.self, performing: attempt)
            #expect(error?.code == .permanent(.newerSchema))
            #expect(
                error?.message.contains("version 2, this program knows up to 1") == true,
                "\(String(describing: error))")
        }
        #expect(try test.database.value("SELECT COUNT(*) FROM user_marks", Int.self) == 3)
    }

    /// Until the first release, a change of the schema edits the first migration.
    @Test(arguments: Engine.all) func migrate_storeOfAnotherEdit_isToldToStartAgain(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        let edited = Migration(
            version: 1, name: "schema",
            sql: try #require(Migration.all.first).sql + "\nCREATE TABLE more (id {id});")
        // With a later migration too, the refusal names the edit as its reason.
        for migrations in [[edited], [edited, Self.second]] {
            let migrator = Migrator(migrations: migrations)
            let error = #expect(throws: StoreFailure.self) {
                try migrator.migrate(test.database, now: 2)
            }
            #expect(error?.code == .permanent(.changedMigration))
            #expect(
                error?.message.contains("another edit of 0001-schema") == true,
                "\(String(describing: error))")
            #expect(
                error?.message.contains("start again with postern init in an empty folder") == true)
            #expect(throws: StoreFailure.permanent(.changedMigration)) {
                try migrator.plan(test.database)
            }
        }
        #expect(try test.store.users.all().count == 3)
    }

    /// After the first release this is true of every applied migration.
    @Test(arguments: Engine.all) func migrate_editedSecondMigration_isRefused(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        _ = try Self.next.migrate(test.database, now: 2)
        let edited = Migration(version: 2, name: "second", sql: "CREATE TABLE other (id {id})")
        let error = #expect(throws: StoreFailure.self) {
            try Migrator(migrations: Migration.all + [edited]).migrate(test.database, now: 3)
        }
        #expect(error?.code == .permanent(.changedMigration))
        #expect(error?.message.contains("0002-second") == true)
    }

    // MARK: Plans

    @Test(arguments: Engine.all) func plan_storeWithRows_countsThemAndChangesNothing(
        _ engine: Engine
    ) throws {
        let test = try filled(engine)
        let plan = try Self.next.plan(test.database)
        #expect(plan.map(\.title) == ["0002-second"])
        #expect(
            plan.first?.passes.map { "\($0.work) \($0.rows) \($0.table)" } == [
                "rewrite 1 teams", "rewrite 3 users", "read 3 users",
            ])
        #expect(plan.first?.removed.isEmpty == true)
        #expect(try Self.next.plan(test.database) == plan)
        #expect(try Self.next.migrate(test.database, now: 2).applied == ["0002-second"])
        #expect(try Self.next.plan(test.database).isEmpty)
    }

    @Test(arguments: Engine.all) func plan_emptyDatabase_processesNoRows(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let plan = try Self.next.plan(database)
        #expect(plan.map(\.title) == ["0001-schema", "0002-second"])
        #expect(plan.allSatisfy { $0.octets == 0 && $0.milliseconds == 0 })
        #expect(try Self.next.pending(database).count == 2)
    }

    /// The report for an operator before an upgrade: the rows of existing tables, without tables
    /// that the migrations create.
    @Test(arguments: Engine.all)
    func plan_severalMigrations_namesTablesReadOrWrittenAndWhatOlderProgramsMiss(
        _ engine: Engine
    ) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let first = Migration(
            version: 1, name: "first",
            sql:
                "CREATE TABLE old (id {id}, a {int}, b {int}) {strict}; CREATE TABLE gone (id {id})"
        )
        _ = try Migrator(migrations: [first]).migrate(database, now: 1)
        try database.write(.relaxed) {
            for number in 1...3 { try $0.run("INSERT INTO old (a) VALUES (\(number))", []) }
        }
        let migrations = [
            first,
            Migration(
                version: 2, name: "adds",
                sql: """
                    -- UPDATE old: a comment; changes nothing.
                    CREATE TABLE new (id {id}, c {int}) {strict};
                    CREATE INDEX new_c ON new (c);
                    ALTER TABLE old ADD COLUMN d {int};
                    {sqlite}CREATE TRIGGER t AFTER INSERT ON old BEGIN
                    {sqlite}    UPDATE old SET d = 1 WHERE id = NEW.id;
                    {sqlite}    DELETE FROM old WHERE id < 0;
                    {sqlite}END;
                    {postgresql}CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    {postgresql}    UPDATE old SET d = 1;
                    {postgresql}END $$;
                    """),
            Migration(
                version: 3, name: "goesThrough",
                sql: """
                    CREATE UNIQUE INDEX old_a ON old (a);
                    UPDATE old SET d = a;
                    INSERT INTO new (c) SELECT a FROM old;
                    ALTER TABLE old ADD COLUMN e {int} CHECK (e > 0)
                    """),
            Migration(
                version: 4, name: "removes",
                sql: """
                    ALTER TABLE old ADD COLUMN a_new {int};
                    ALTER TABLE old DROP COLUMN b;
                    DROP TABLE gone;
                    ALTER TABLE old RENAME COLUMN d TO f;
                    ALTER TABLE new RENAME TO newer
                    """),
            Migration(
                version: 5, name: "keepsName",
                sql: """
                    CREATE TABLE copy (id {id}, a {int}) {strict};
                    INSERT INTO copy (a) SELECT a FROM old;
                    ALTER TABLE copy RENAME TO copied;
                    CREATE INDEX copied_a ON copied (a);
                    DROP INDEX old_a; ALTER TABLE old ADD COLUMN x {int};
                    UPDATE old SET x = a; ALTER TABLE old DROP COLUMN a; ALTER TABLE old RENAME COLUMN x TO a
                    """),
        ]
        let plan = try Migrator(migrations: migrations).plan(database)
        func passes(_ index: Int) -> [String] {
            plan[index].passes.map { "\($0.work) \($0.rows) \($0.table)" }
        }
        #expect(
            plan.map(\.title) == [
                "0002-adds", "0003-goesThrough", "0004-removes", "0005-keepsName",
            ])
        #expect(passes(0).isEmpty && plan[0].removed.isEmpty)
        #expect(
            passes(1) == ["read 3 old", "rewrite 3 old", "rewrite 3 old", "read 3 old"]
                && plan[1].removed.isEmpty)
        #expect(plan[2].removed == ["old.b", "gone", "old.d"])
        #expect(
            passes(3) == ["rewrite 3 old", "read 3 old", "rewrite 3 old", "rewrite 3 old"]
                && plan[3].removed.isEmpty)
        #expect(plan[0].octets == 0 && plan[1].octets == 3 * (40 + 600 + 600 + 40))
        // The planned migrations can be applied.
        #expect(try Migrator(migrations: migrations).migrate(database, now: 2).applied.count == 4)
        #expect(try Migrator(migrations: migrations).plan(database).isEmpty)
    }
}
