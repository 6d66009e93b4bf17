// The log is moved into the main file beside those who write, and begins again.

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

    /// Every commit that filled the log moved all of it and waited for the disk, and so did everyone who wanted to write.
    @Test func checkpoint_duringWrites_restartsTheLog() throws {
        var written = 0
        // A log that never began again would have all that was written, and more. On a full machine it begins again later;
        // how much was written by then is bounded, and not how long that took.
        while written < 100_000_000 || size("-wal") > written / 5 * 4 || size("") < 60_000_000 {
            try #require(written < 400_000_000, "of \(written) octets \(size("-wal")) in the log, \(size("")) in the file")
            try write()
            written += 1_000_000
        }
        #expect(try test.database.value("SELECT COUNT(*) FROM bulk", Int.self).map { $0 >= 100 } == true)
    }

    /// Someone who reads for long, a copy for example, keeps the log from its start, and no one from writing.
    @Test func checkpoint_longRead_doesNotBlockWrites() throws {
        let seen = try test.database.read { connection throws(StoreFailure) in
            let before = try connection.value("SELECT COUNT(*) FROM bulk", Int.self)
            for _ in 0..<40 { try write() }
            return (before, try connection.value("SELECT COUNT(*) FROM bulk", Int.self))
        }
        #expect(seen.0 == seen.1, "a snapshot")
        #expect(try test.database.value("SELECT COUNT(*) FROM bulk", Int.self) == 40)
    }

    /// What is being moved ends before the files are let go of; all of it is there afterwards.
    @Test func checkpoint_databaseClosed_keepsAllRows() throws {
        for _ in 0..<40 { try write() }
        try test.database.close()
        let again = try SQLiteDatabase(path: path)
        defer { try? again.close() }
        try again.check()
        #expect(try again.value("SELECT COUNT(*) FROM bulk", Int.self) == 40)
    }
}
