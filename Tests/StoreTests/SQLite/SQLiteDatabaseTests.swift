// Behaviour that only SQLite has: files, locks, and which failures are temporary.

import Database
import Foundation
import PosternSQLite
import TestSupport
import Testing

@Suite(.blocking) struct SQLiteDatabaseTests {
    @Test func databaseFiles_created_areReadableByOwnerOnly() throws {
        let test = try TestStore(.sqlite)
        let files = try FileManager.default.contentsOfDirectory(atPath: test.folder.url.path)
        #expect(files.contains("postern.db"))
        #expect(files.contains("postern.db-wal"))
        for file in files {
            let attributes = try FileManager.default.attributesOfItem(
                atPath: test.folder.url.appendingPathComponent(file).path)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600, "\(file)")
        }
    }

    @Test func open_missingDatabase_isNotCreated() throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("none.db").path
        let error = #expect(throws: StoreFailure.self) { try SQLiteDatabase(path: path) }
        #expect(error?.code == .temporary(.unreachable))
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// A second move of the log into the main file, without a connection, must not crash inside
    /// SQLite.
    @Test func close_twice_isHarmless() throws {
        let test = try TestStore(Engine.all[0])
        try test.database.close()
        try test.database.close()
        #expect(throws: (any Error).self) { try test.store.teams.all() }
    }

    @Test func read_moreThanConnections_takesTurns() async throws {
        let test = try TestStore(.sqlite)
        let database = test.database
        let names = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<5 * SQLiteDatabase.readers {
                group.addTask {
                    try await withCheckedThrowingContinuation { continuation in
                        Thread.detachNewThread {
                            continuation.resume(
                                with: Result {
                                    try database.read {
                                        try $0.value("SELECT name FROM teams", String.self)
                                    }
                                })
                        }
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(names == Array(repeating: "The Juice Company", count: 5 * SQLiteDatabase.readers))

        // A read in progress when the database is closed ends normally.
        let (ready, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let late: String? = withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try database.read { connection in
                            ready.signal()
                            go.wait()
                            return try connection.value("SELECT name FROM teams", String.self)
                        }
                    })
            }
        }
        async let closed: Bool = withCheckedContinuation { continuation in
            Thread.detachNewThread {
                ready.wait()
                let other = Thread { go.signal() }
                other.start()
                continuation.resume(returning: (try? database.close()) != nil)
            }
        }
        #expect(try await late == "The Juice Company")
        #expect(await closed)
        #expect(throws: (any Error).self) { try test.store.teams.all() }
    }

    /// A reader that waits for a connection must not receive the signal for the closing thread,
    /// which would then wait for ever.
    @Test func close_readersWaiting_ends() throws {
        let test = try TestStore(.sqlite)
        let database = test.database
        let (ready, go, ended) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        for number in 0..<3 * SQLiteDatabase.readers {
            Thread.detachNewThread {
                _ = try? database.read { connection in
                    if number < SQLiteDatabase.readers {
                        ready.signal()
                        go.wait()
                    }
                    return try connection.rows("SELECT name FROM teams").count
                }
                ended.signal()
            }
            // First the readers that use every connection, then those that wait for one.
            if number == SQLiteDatabase.readers - 1 { for _ in 0...number { ready.wait() } }
        }
        Thread.detachNewThread {
            try? database.close()
            ended.signal()
        }
        for _ in 0..<SQLiteDatabase.readers { go.signal() }
        for _ in 0...3 * SQLiteDatabase.readers {
            #expect(ended.wait(timeout: .now() + 120) == .success)
        }
    }

    @Test func open_notADatabase_isPermanentFailure() throws {
        let folder = try TemporaryFolder()
        let path = folder.url.appendingPathComponent("postern.db").path
        try Data(repeating: 0x41, count: 8192).write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: StoreFailure.self) { try SQLiteDatabase(path: path) }
        #expect(error?.code == .permanent(.corrupted))
    }

    @Test func write_otherWriterActive_isBusyAndReadsGoOn() throws {
        let test = try TestStore(.sqlite)
        let path = test.folder.url.appendingPathComponent("postern.db").path
        let other = try SQLiteDatabase(path: path, busyTimeout: 0.01)
        defer { try? other.close() }
        try test.database.write(.durable) { connection in
            try connection.run("UPDATE teams SET name = 'Other'")
            let error = #expect(throws: StoreFailure.self) {
                try other.write(.durable) { try $0.run("UPDATE teams SET name = 'Third'") }
            }
            #expect(error?.code == .temporary(.busy))
            let name = try other.read { try $0.value("SELECT name FROM teams", String.self) }
            #expect(name == "The Juice Company")
        }
        #expect(try other.read { try $0.value("SELECT name FROM teams", String.self) } == "Other")
    }

    @Test func write_diskFull_leavesNothing() throws {
        let test = try TestStore(.sqlite)
        let error = #expect(throws: StoreFailure.self) {
            try test.database.write(.durable) { connection in
                try connection.runScript("PRAGMA max_page_count = 1")
                for number in 0..<1000 {
                    try connection.run(
                        "INSERT INTO settings (name, value) VALUES (?1, ?2)",
                        [.text("n\(number)"), .text(String(repeating: "x", count: 1000))])
                }
            }
        }
        #expect(error?.code == .temporary(.diskFull))
        #expect(
            try test.database.read { try $0.value("SELECT COUNT(*) FROM settings", Int64.self) }
                == 0)
    }

    /// The first durable change of a process must be synced, although switching to the log sets
    /// NORMAL.
    @Test func write_durable_isSyncedFromTheFirst() throws {
        let test = try TestStore(.sqlite)
        let other = try SQLiteDatabase(
            path: test.folder.url.appendingPathComponent("postern.db").path)
        defer { try? other.close() }
        let found = try [Durability.durable, .relaxed, .durable].map { durability in
            try other.write(durability) { try $0.value("PRAGMA synchronous", Int.self) }
        }
        #expect(found == [2, 1, 2])
    }

    /// A command that only reads must not write.
    @Test func open_existingDatabase_writesNothing() throws {
        let test = try TestStore(.sqlite)
        let path = test.folder.url.appendingPathComponent("postern.db").path
        try test.database.close()
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let other = try SQLiteDatabase(path: path)
        _ = try Migrator().migrate(other, now: 1)
        let log =
            try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? NSNumber
        #expect(log?.intValue == 0)
        try other.close()
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test func write_bodyThrows_isRolledBack() throws {
        struct Own: Error {}
        let test = try TestStore(.sqlite)
        #expect(throws: Own.self) {
            try test.database.write(.relaxed) { connection in
                try connection.run("UPDATE teams SET name = 'Other'")
                throw Own()
            }
        }
        #expect(try test.store.teams.team("juice").name == "The Juice Company")
    }

    @Test func write_constraintFails_errorShowsNoValue() throws {
        let test = try TestStore(.sqlite)
        let error = #expect(throws: StoreFailure.self) {
            try test.database.write(.durable) { connection in
                try connection.run(
                    "INSERT INTO teams (handle, name, created_at) VALUES (\("juice"), \("private"), \(0))"
                )
            }
        }
        #expect(error?.code == .permanent(.constraint))
        #expect(error.map { "\($0)".contains("private") } == false)
    }

    /// A second statement in a text would be ignored silently.
    @Test func statement_twoInOneText_isRefused() throws {
        let test = try TestStore(.sqlite)
        let before = try test.database.value("SELECT COUNT(*) FROM teams", Int.self)
        let error = #expect(throws: StoreFailure.self) {
            try test.database.write(.durable) {
                try $0.run("DELETE FROM teams WHERE id = 0; DELETE FROM teams")
            }
        }
        #expect(error?.code == .permanent(.statement))
        #expect(try test.database.value("SELECT COUNT(*) FROM teams; ", Int.self) == before)
    }

    /// Missing values would become NULL.
    @Test(arguments: Engine.all) func statement_otherNumberOfValues_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        for values in [[], [SQLValue.integer(1), .integer(2)]] {
            #expect(throws: StoreFailure.permanent(.statement)) {
                try test.database.rows("SELECT id FROM teams WHERE id = ?", values)
            }
        }
    }

    /// SQLite continues from the largest number, while PostgreSQL's placeholders would count from
    /// one.
    @Test(.enabled(if: Engine.postgres != nil, "PostgreSQL is not installed"))
    func statement_mixedPlaceholders_isRefused() throws {
        let test = try TestStore(try #require(Engine.postgres))
        #expect(throws: StoreFailure.permanent(.statement)) {
            try test.database.rows(
                "SELECT id FROM teams WHERE id = ?1 OR id = ?", [.integer(1), .integer(1)])
        }
    }
}
