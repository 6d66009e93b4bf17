// A store that an earlier program made: it opens, lacks nothing that was released before, and is read whole.

import Database
import Accounts
import Foundation
import InternetMessage
import PosternSQLite
import TestSupport
import Testing

@Suite(.blocking) struct ReleasedStoreTests {
    /// The last migration of the program that made the fixture.
    private static let version: Int64 = 38

    private static func fixture(_ name: String) throws -> String {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Fixtures")
        return try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
    }

    /// Every migration has its checksum in the store: one that changed would be refused.
    @Test func itOpensAndIsReadWhole() throws {
        let folder = try TemporaryFolder()
        let database = try SQLiteDatabase(path: folder.url.appendingPathComponent("postern.db").path, creating: true)
        defer { try? database.close() }
        try database.write(.relaxed) { connection in
            // As it was dumped, the tables and rows that others refer to may come behind them.
            try connection.runScript("PRAGMA defer_foreign_keys = ON")
            try connection.runScript(Self.fixture("released-store.sql"))
        }
        #expect(try Migrator().pending(database).count == Migration.all.count { $0.version > Self.version })
        let report = try Migrator().migrate(database, now: TestStore.now)
        #expect(report.applied.count == Migration.all.count { $0.version > Self.version })
        try database.check()

        let keys = try KeyRing(fileText: Self.fixture("released-store.keys"))
        try Store.checkKeys(keys, of: database)
        let store = Store(database: database, keys: keys, relayDomains: ["relay.example"])
        #expect(try store.teams.all().map(\.name) == ["The Juice Company"])
        #expect(try store.users.all().map(\.id) == ["bob", "eve", "jane"])
        #expect(
            try store.inboxes.inboxes(user: "jane").map(\.address.revealed.wireForm) == [
                "jane@home.example", "jane@work.example",
            ])
        #expect(try store.inboxes.userID(verified: TestStore.inbox("bob@home.example")) == "bob")

        let address = try #require(
            try store.relay.relayAddress(localPart: "s47g3svmj6", domain: "relay.example", now: 20_779 * 86_400))
        #expect(address.team.id == "juice" && address.sources.map(\.value) == ["juice.example"])
        #expect(address.hasLiveGrant && address.isForwardingOn && address.isInboxVerified)
        #expect(address.inbox?.revealed.wireForm == "jane@home.example")
        #expect(address.forwarded == 12)
        let jane = try #require(try store.relay.account(number: address.accountNumber, day: 20_779))
        #expect(try store.users.all().contains { $0.name == "Jane Doe" } && jane.inboxes.count == 2)
        #expect(try store.relay.relayAddress(localPart: "bfcimfydz6", domain: "relay.example")?.hasLiveGrant == false)
        #expect(try store.counters.counters(account: jane.accountNumber, since: 0).map(\.count) == [12, 3, 2, 4])

        #expect(try store.outbox.backlog().events == 3)
        #expect(try store.apiKeys.keys(team: "juice").count == 1)
        #expect(try store.audit.entries().count == 21)
        _ = try store.addresses.issue(team: "juice", user: "eve", app: "com.juice.app", TestStore.change)
    }
}
