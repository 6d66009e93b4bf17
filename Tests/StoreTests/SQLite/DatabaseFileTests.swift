// The database file under several connections: it is read while it grows and shrinks, no part of it
// is mapped, and no lock is lost.

import Database
import Foundation
import TestSupport
import Testing

@testable import PosternSQLite

@Suite(.blocking) struct DatabaseFileTests {
    /// Mappings of the file itself, not of its log's index.
    private func mappings(of path: String) throws -> Int {
        try String(contentsOfFile: "/proc/self/maps", encoding: .utf8).split(separator: "\n").count
        { $0.hasSuffix(" " + path) }
    }

    /// Whether this process has locked a part of the file. The query uses a separate open file
    /// description (F_OFD_GETLK, fcntl(2)), to which the process's own locks look like those of
    /// another process.
    private func isLocked(_ descriptor: Int32) throws -> Bool {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        try #require(fcntl(descriptor, 36, &lock) == 0)
        return lock.l_type != Int16(F_UNLCK)
    }

    private func path(_ test: TestStore) -> String {
        test.folder.url.appendingPathComponent("postern.db").resolvingSymlinksInPath().path
    }

    /// Rows of 1,000 octets each, in a separate table.
    private func fill(_ database: any Database, from first: Int, to last: Int) throws {
        try database.write(.relaxed) { connection in
            try connection.runScript(
                "CREATE TABLE IF NOT EXISTS filler (id INTEGER PRIMARY KEY, octets BLOB NOT NULL) STRICT"
            )
            try connection.run(
                """
                INSERT INTO filler (id, octets) WITH RECURSIVE c (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM c WHERE i < ?2)
                SELECT i, CAST(printf('%01000d', i) AS BLOB) FROM c
                """, [.integer(Int64(first)), .integer(Int64(last))])
        }
    }

    private func check(_ database: any Database, count: Int) throws {
        let rows = try database.rows("SELECT id, octets FROM filler ORDER BY id", [])
        #expect(rows.count == count)
        for row in rows {
            let expected = String(format: "%01000d", try row["id"] as Int64)
            let isRight = try row["octets"] == Array(expected.utf8)
            try #require(isRight, "row \(expected.suffix(5)) is another one")
        }
    }

    /// With a mapped file, a truncation or a disk failure would end the process by SIGBUS instead
    /// of an error.
    @Test func databaseFile_openConnections_doNotMapIt() throws {
        let test = try TestStore(.sqlite)
        let path = path(test)
        // A reader within a reader is a second connection.
        try test.database.read { first in
            _ = try first.rows("SELECT id FROM teams", [])
            try test.database.read { _ = try $0.rows("SELECT id FROM teams", []) }
            #expect(try mappings(of: path) == 0)
        }
        let other = try SQLiteDatabase(path: path)
        try test.database.close()
        _ = try other.rows("SELECT id FROM teams", [])
        #expect(try mappings(of: path) == 0)
        try other.close()
    }

    @Test func databaseFile_grownByCheckpoint_isReadWhole() async throws {
        let test = try TestStore(.sqlite)
        let path = path(test)
        try fill(test.database, from: 1, to: 100)
        try check(test.database, count: 100)
        // More than fits into the log, so it is moved into the file, which grows far beyond its
        // size when it was opened.
        let before = try #require(
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
        ).intValue
        for part in 0..<4 {
            try fill(test.database, from: 101 + part * 5000, to: 100 + (part + 1) * 5000)
        }
        // By a thread beside the writers.
        func size() throws -> Int {
            try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)
                .intValue
        }
        let deadline = ContinuousClock.now + .seconds(60)
        while try size() <= before + 10_000_000 {
            try #require(ContinuousClock.now < deadline, "the log is not moved into the file")
            try await Task.sleep(for: .milliseconds(20))
        }
        try check(test.database, count: 20_100)
    }

    @Test func databaseFile_shrunkAndGrown_isReadCorrectly() throws {
        let test = try TestStore(.sqlite)
        let path = path(test)
        try fill(test.database, from: 1, to: 5000)
        let other = try SQLiteConnection(path: path, busyTimeout: .seconds(5))
        try other.runScript("PRAGMA wal_checkpoint(TRUNCATE)")
        try check(test.database, count: 5000)
        try test.database.write(.relaxed) { _ = try $0.run("DELETE FROM filler WHERE id > 10", []) }
        let before = try #require(
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
        ).intValue
        try other.runScript("VACUUM")
        try other.runScript("PRAGMA wal_checkpoint(TRUNCATE)")
        let after = try #require(
            try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber
        ).intValue
        #expect(after < before - 4_000_000)
        try check(test.database, count: 10)
        try fill(test.database, from: 11, to: 5000)
        try other.runScript("PRAGMA wal_checkpoint(TRUNCATE)")
        try check(test.database, count: 5000)
        other.close()
    }

    /// Closing any descriptor of a file ends all POSIX locks of the process on it. Without them,
    /// another process that closes last would remove the log that this one writes.
    @Test func databaseFile_oneDatabaseClosed_keepsLocksOfOthers() throws {
        let test = try TestStore(.sqlite)
        let path = path(test)
        let other = try SQLiteDatabase(path: path)
        _ = try other.rows("SELECT id FROM teams", [])
        // Closed only at the end, because that too ends all locks.
        let descriptor = open(path, O_RDWR)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        #expect(try isLocked(descriptor))
        try test.database.close()
        #expect(try isLocked(descriptor))
        // Also those of a connection that opens and closes beside it.
        let third = try SQLiteDatabase(path: path)
        _ = try third.rows("SELECT id FROM teams", [])
        try third.close()
        #expect(try isLocked(descriptor))
        try other.close()
        #expect(try !isLocked(descriptor))
    }
}
