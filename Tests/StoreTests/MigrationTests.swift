// Migrations: from nothing, again, from a newer program, with another history.

import Accounts
import Foundation
import TestSupport
import Testing

@testable import Database

@Suite(.blocking) struct MigrationTests {
    /// Every database has the checksums of what was applied to it: a file that is edited after its release opens none of them.
    @Test func aReleasedMigrationIsNeverEdited() throws {
        let fixture = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("Fixtures/migration-checksums.txt")
        let pinned = try String(contentsOf: fixture, encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(
            Migration.all.map { "\($0.checksum) \(Self.title($0.version, $0.name))" } == pinned,
            "a new migration gets a line of its own in \(fixture.lastPathComponent); no line of an old one changes")
    }

    /// Every migration as reports name it.
    private static let titles = Migration.all.map { title($0.version, $0.name) }

    private static func title(_ version: Int64, _ name: String) -> String {
        String(repeating: "0", count: 4 - String(version).count) + "\(version)-\(name)"
    }

    /// A migration that this program does not have.
    private static let nextVersion = (Migration.all.last?.version ?? 0) + 1

    @Test(arguments: Engine.all) func migratesFromScratchOnce(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        #expect(try Migrator().pending(database) == Self.titles)
        let first = try Migrator().migrate(database, now: 1)
        #expect(first.from == 0)
        #expect(first.to == Migration.all.last?.version)
        #expect(first.applied == Self.titles)
        let again = try Migrator().migrate(database, now: 2)
        #expect(again.applied.isEmpty)
        #expect(again.from == again.to)
        #expect(try Migrator().pending(database).isEmpty)
    }

    @Test func versionsRise() {
        #expect(Migration.all.first?.version == 1)
        #expect(zip(Migration.all, Migration.all.dropFirst()).allSatisfy { $0.version < $1.version })
    }

    @Test(arguments: Engine.all) func appliesOnlyWhatIsMissing(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        _ = try Migrator().migrate(database, now: 1)
        let next = Migration(version: Self.nextVersion, name: "second", sql: "CREATE TABLE second (id {id}) {strict}")
        let report = try Migrator(migrations: Migration.all + [next]).migrate(database, now: 2)
        #expect(report.applied == [Self.title(Self.nextVersion, "second")])
    }

    @Test(arguments: Engine.all) func refusesADatabaseOfANewerProgram(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let next = Migration(version: Self.nextVersion, name: "second", sql: "CREATE TABLE second (id {id}) {strict}")
        _ = try Migrator(migrations: Migration.all + [next]).migrate(database, now: 1)
        let error = #expect(throws: StoreFailure.self) { try Migrator().migrate(database, now: 2) }
        #expect(error?.code == .permanent(.newerSchema))
        #expect(error?.message.contains("version \(Self.nextVersion)") == true)
        #expect(error?.message.contains("up to \(Self.nextVersion - 1)") == true)
    }

    @Test(arguments: Engine.all) func refusesAnotherHistory(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        _ = try Migrator(migrations: [Migration(version: 1, name: "first", sql: "CREATE TABLE other (id {id})")])
            .migrate(database, now: 1)
        let error = #expect(throws: StoreFailure.self) { try Migrator().migrate(database, now: 2) }
        #expect(error?.code == .permanent(.changedMigration))
    }

    @Test(arguments: Engine.all) func aFailedMigrationLeavesNothingBehind(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let broken = Migration(
            version: Self.nextVersion, name: "broken", sql: "CREATE TABLE half (id {id}); CREATE TABLE half (id {id})")
        #expect(throws: StoreFailure.permanent(.statement)) {
            try Migrator(migrations: Migration.all + [broken]).migrate(database, now: 1)
        }
        #expect(throws: StoreFailure.permanent(.statement)) { try database.read { try $0.rows("SELECT * FROM half", []) } }
        #expect(try Migrator().migrate(database, now: 2).to == Migration.all.last?.version)
    }

    @Test(arguments: Engine.all) func processesThatStartTogetherMigrateOnce(_ engine: Engine) async throws {
        let folder = try TemporaryFolder()
        let first = try engine.open(folder.url)
        let second = try engine.open(folder.url)
        defer { try? first.close(); try? second.close() }
        let applied = try await withThrowingTaskGroup(of: Int.self) { group in
            for database in [first, second] {
                group.addTask { try Migrator().migrate(database, now: 1).applied.count }
            }
            return try await group.reduce(0, +)
        }
        #expect(applied == Migration.all.count)
    }

    /// What an operator is told before an upgrade: rows of tables that are there, and nothing of those that migrations make.
    @Test(arguments: Engine.all) func aPlanNamesTheTablesThatMigrationsGoThroughAndWhatOlderProgramsMiss(_ engine: Engine) throws
    {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let first = Migration(
            version: 1, name: "first", sql: "CREATE TABLE old (id {id}, a {int}, b {int}) {strict}; CREATE TABLE gone (id {id})")
        _ = try Migrator(migrations: [first]).migrate(database, now: 1)
        try database.write(.relaxed) { for number in 1...3 { try $0.run("INSERT INTO old (a) VALUES (\(number))", []) } }
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
        func passes(_ index: Int) -> [String] { plan[index].passes.map { "\($0.work) \($0.rows) \($0.table)" } }
        #expect(plan.map(\.title) == ["0002-adds", "0003-goesThrough", "0004-removes", "0005-keepsName"])
        #expect(passes(0).isEmpty && plan[0].removed.isEmpty)
        #expect(passes(1) == ["read 3 old", "rewrite 3 old", "rewrite 3 old", "read 3 old"] && plan[1].removed.isEmpty)
        #expect(plan[2].removed == ["old.b", "gone", "old.d"])
        #expect(passes(3) == ["rewrite 3 old", "read 3 old", "rewrite 3 old", "rewrite 3 old"] && plan[3].removed.isEmpty)
        #expect(plan[0].octets == 0 && plan[1].octets == 3 * (40 + 600 + 600 + 40))
        // Nothing was changed, and what is planned can be done.
        #expect(try Migrator(migrations: migrations).plan(database) == plan)
        #expect(try Migrator(migrations: migrations).migrate(database, now: 2).applied.count == 4)
        #expect(try Migrator(migrations: migrations).plan(database).isEmpty)
    }

    /// A migration that nothing can be told of would be planned as one that takes no time.
    @Test(arguments: Engine.all) func everyStatementOfEveryMigrationIsUnderstood(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        let harmless: Set = [
            "CREATE TRIGGER", "CREATE FUNCTION", "DROP INDEX", "DROP TRIGGER", "LOCK TABLE", "DO $migration$",
        ]
        for migration in Migration.all {
            let statements = MigrationReader.statements(of: migration, database.dialect)
            let isForOther = migration.name == "cheaperTriggers" && !database.dialect.translate("{postgresql}").isEmpty
            #expect(statements.isEmpty == isForOther, "\(migration.name)")
            for statement in statements {
                guard case .other = statement.shape else { continue }
                let beginning = statement.words.prefix(2).joined(separator: " ")
                #expect(harmless.contains(beginning), "\(migration.name): \(beginning)")
            }
        }
    }
}
