// An upgrade while mail comes: the store that an earlier program left is brought to the schema of this one, and nothing is lost.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayUpgradeTests {
    /// Stores that released programs made, with the address of jane@home.example in each. A release adds its own.
    private static let released = [("released-store", "s47g3svmj6@relay.example")]

    @Test(arguments: released) func aReleasedStoreIsUpgradedUnderMail(_ name: String, _ address: String) throws {
        let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../StoreTests/Fixtures").standardizedFileURL
        let fixture = try RelayFixture(RelayFixtures.options())
        defer { fixture.stop() }
        try fixture.end()
        let folder = fixture.folder + "/postern/"
        for file in ["postern.db", "postern.db-wal", "postern.db-shm"] {
            try? FileManager.default.removeItem(atPath: folder + file)
        }
        let load = """
            import sqlite3, sys
            store = sqlite3.connect(sys.argv[1])
            store.executescript("PRAGMA foreign_keys = OFF; PRAGMA journal_mode = WAL;" + open(sys.argv[2]).read())
            """
        let loaded = try ManagedProcess.run(
            "/usr/bin/python3", ["-c", load, folder + "postern.db", fixtures.appendingPathComponent(name + ".sql").path])
        try #require(loaded.status == 0, "\(loaded.output)")
        try Data(contentsOf: fixtures.appendingPathComponent(name + ".keys"))
            .write(to: URL(fileURLWithPath: folder + "postern.keys"))
        for file in ["postern.db", "postern.keys"] { try #require(chmod(folder + file, 0o600) == 0) }
        try #require(fixture.run(["migrate", "--plan"]).contains("0039-"))

        // A sender that goes on whatever it is told, from before the start until a while after it.
        let (codes, wanted, isOver) = (Watched<[Int]>([]), 12, Watched(false))
        defer { isOver.with { $0 = true } }
        let sender = Thread {
            for number in 1... {
                if isOver.with({ $0 }) || codes.with({ codes in codes.count { $0 == 250 } }) == wanted { break }
                let text = RelayFixtures.message(to: address, id: "\(number)@juice.example")
                let result = try? fixture.send(from: "bounce@juice.example", to: [address], text)
                codes.with { $0.append(result.map { $0.data ?? $0.recipients.first ?? $0.mail }?.code ?? 421) }
            }
        }
        sender.start()
        _ = codes.wait(atMost: .seconds(60)) { !$0.isEmpty }
        try fixture.serve()
        _ = codes.wait(atMost: .seconds(120)) { codes in codes.count { $0 == 250 } >= wanted }
        let seen = codes.with { $0 }
        #expect(seen.allSatisfy { $0 == 250 || $0 / 100 == 4 }, "relayed or deferred, never refused: \(seen)")
        #expect(seen.first != 250, "mail came before the store was there")
        for number in 1...wanted {
            let arrived = try fixture.arrival(for: "jane@home.example", number: number)
            #expect(arrived.address("From").hasSuffix("@relay.example"))
        }
        #expect(try fixture.run(["migrate", "--plan"]).contains("nothing to do"))
    }
}
