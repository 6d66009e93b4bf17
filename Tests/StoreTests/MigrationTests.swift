// Migrations: from nothing, again, from a newer program, with another history.

import Database
import Foundation
import Testing

@Suite struct MigrationTests {
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
}
