// The log is moved into the main file beside writers, and begins again.

import Database
import Foundation
import PosternSQLite
import TestSupport
import Testing

@Suite(.blocking) struct SQLiteCheckpointerTests {
    private let test: TestStore
    private let path: String

    init() throws {
        test = try TestStore(.sqlite)
        path = test.folder.url.appendingPathComponent("postern.db").path
        try test.database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.runScript("CREATE TABLE bulk (id INTEGER PRIMARY KEY, octets BLOB)")
        }
    }

    private func size(_ suffix: String) -> Int {
        (try? FileManager.default.attributesOfItem(atPath: path + suffix)[.size] as? Int) ?? 0
    }

    /// A commit of a mebibyte.
    private func write() throws(StoreFailure) {
        try test.database.write(.relaxed) { connection throws(StoreFailure) in
            try connection.run("INSERT INTO bulk (octets) VALUES (zeroblob(1000000))", [])
        }
    }

    /// A commit that fills the log must not move all of it and wait for the disk, because all
    /// writers would wait with it.
    @Test func checkpoint_duringWrites_restartsTheLog() throws {
        var written = 0
        // A log that never began again would contain everything that was written, and more. On a
        // busy machine it begins again later, so the test bounds the amount written, and not the
        // time.
        while written < 100_000_000 || size("-wal") > written / 5 * 4 || size("") < 60_000_000 {
            try #require(
                written < 400_000_000,
                "of \(written) octets \(size("-wal")) in the log, \(size("")) in the file")
            try write()
            written += 1_000_000
        }
        #expect(
            try test.database.value("SELECT COUNT(*) FROM bulk", Int.self).map { $0 >= 100 } == true
        )
    }

    /// A long reader, for example a copy, keeps the log from its start, but does not block writers.
    @Test func checkpoint_longRead_doesNotBlockWrites() throws {
        let seen = try test.database.read { connection throws(StoreFailure) in
            let before = try connection.value("SELECT COUNT(*) FROM bulk", Int.self)
            for _ in 0..<40 { try write() }
            return (before, try connection.value("SELECT COUNT(*) FROM bulk", Int.self))
        }
        #expect(seen.0 == seen.1, "a snapshot")
        #expect(try test.database.value("SELECT COUNT(*) FROM bulk", Int.self) == 40)
    }

    /// A move in progress ends before the files are closed, and all rows are there afterwards.
    @Test func checkpoint_databaseClosed_keepsAllRows() throws {
        for _ in 0..<40 { try write() }
        try test.database.close()
        let again = try SQLiteDatabase(path: path)
        defer { try? again.close() }
        try again.check()
        #expect(try again.value("SELECT COUNT(*) FROM bulk", Int.self) == 40)
    }
}
