// What an account knows of its grants and inboxes (migration 12) is what they say, whatever happens to them.

import Database
import Accounts
import Foundation
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct LookupTests {
    static let change = TestStore.change

    /// Accounts whose columns are not what follows from grants and inboxes.
    private func stale(_ database: any Database) throws -> [String] {
        try database.rows(
            """
            SELECT a.id, a.has_live_grant, COALESCE(a.target_inbox, -1), COALESCE(
                a.inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = a.user_id AND d.is_default = 1), -1)
            FROM accounts a
            WHERE a.has_live_grant <> CASE WHEN EXISTS
                    (SELECT 1 FROM grants g WHERE g.account_id = a.id AND g.state = 'authorized') THEN 1 ELSE 0 END
                OR COALESCE(a.target_inbox, -1) <> COALESCE(
                    a.inbox_id, (SELECT d.id FROM inboxes d WHERE d.user_id = a.user_id AND d.is_default = 1), -1)
            """
        ).map { "account, live, target, wanted: \($0.values)" }
    }

    private func count(_ database: any Database, _ condition: String) throws -> Int64 {
        try #require(try database.value("SELECT COUNT(*) FROM accounts WHERE \(raw: condition)"))
    }

    @Test(arguments: Engine.all) func whateverIsDoneAccountsFollowTheirGrantsAndInboxes(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let (store, database) = (test.store, test.database)
        var generator = SeededGenerator(seed: 8)
        func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
        func user() -> String { "u\(1 + pick(3))" }
        func inbox(_ user: String) throws -> InboxName { .address(try TestStore.inbox("\(user)-\(pick(4))@home.example")) }
        func account(_ user: String) throws -> Int64? {
            try store.accounts.accounts(user: user).randomElement(using: &generator)?.number
        }
        func raw(_ sql: String, _ arguments: [SQLValue] = []) throws {
            try database.write(.relaxed) { _ = try $0.run(sql, arguments) }
        }
        var done = 0
        var seen = (chosen: false, revoked: false, none: false)
        for step in 0..<400 {
            let user = user()
            do {
                switch pick(14) {
                case 0:
                    _ = try store.users.add(
                        id: user, name: nil, inbox: TestStore.inbox("\(user)@home.example"), isVerified: pick(2) == 0, Self.change
                    )
                case 1, 2:
                    _ = try store.inboxes.add(
                        user: user, TestStore.inbox("\(user)-\(pick(4))@home.example"), isVerified: pick(2) == 0,
                        isReplyOnly: pick(5) == 0,
                        Self.change)
                case 3: _ = try store.inboxes.confirm(user: user, inbox(user), Self.change)
                case 4: try store.inboxes.makeDefault(user: user, inbox(user), Self.change)
                case 5: try store.inboxes.remove(user: user, inbox(user), Self.change)
                case 6, 7:
                    _ = try store.grants.authorize(
                        AuthorizationRequest(
                            clientID: ["com.juice", "com.press"][pick(2)], userID: user, inbox: pick(2) == 0 ? inbox(user) : nil),
                        Self.change)
                case 8: if let account = try account(user) { _ = try store.grants.revokeAll(account: account, Self.change) }
                case 9:
                    guard let account = try account(user) else { continue }
                    try raw(
                        "UPDATE grants SET state = 'revoked', revoked_at = 1 WHERE account_id = ?1 AND state = 'authorized'",
                        [.integer(account)])
                case 10:
                    // A grant that comes to another account, and takes its state along.
                    guard let from = try account("u1"), let to = try account("u2") else { continue }
                    try raw(
                        """
                        UPDATE grants SET account_id = ?2 WHERE account_id = ?1
                            AND group_id NOT IN (SELECT g.group_id FROM grants g WHERE g.account_id = ?2)
                        """, [.integer(from), .integer(to)])
                case 11 where pick(4) == 0: try raw("DELETE FROM grants WHERE state = 'authorized'")
                case 12 where pick(4) == 0:
                    if let account = try account(user) { try store.accounts.delete(account: account, Self.change) }
                case 13 where pick(8) == 0: try store.users.remove(user, Self.change)
                default: continue
                }
                done += 1
            } catch let failure as StoreFailure where failure.isRefusal {
                continue
            }
            let stale = try stale(database)
            try #require(stale.isEmpty, "step \(step): \(stale)")
            if !seen.chosen { seen.chosen = try count(database, "inbox_id IS NOT NULL") > 0 }
            if !seen.revoked { seen.revoked = try count(database, "has_live_grant = 0") > 0 }
            if !seen.none {
                seen.none = try count(database, "has_live_grant = 1 AND target_inbox IS NOT NULL AND inbox_id IS NULL") > 0
            }
        }
        #expect(done > 80)
        #expect(seen == (true, true, true), "the walk met too little")
    }

    /// Removing an app takes its grants along by a cascade of the database's own.
    @Test(arguments: Engine.all) func anAppThatGoesTakesTheLiveGrantWithIt(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let grant = try LifecycleTests.authorize(test, "com.press")
        #expect(try test.store.relay.account(number: grant.account.number, day: 1)?.hasLiveGrant == true)
        try test.database.write(.durable) {
            _ = try $0.run("DELETE FROM app_groups WHERE id = \(grant.grant.group.number)")
        }
        #expect(try test.store.relay.account(number: grant.account.number, day: 1)?.hasLiveGrant == false)
    }

    /// The step copied what it saw when it began, and then waited for another host, whose new address went with the old table.
    @Test(arguments: Engine.all) func aMigrationTakesAlongWhatAnotherHostIsWriting(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        _ = try Migrator(migrations: Migration.all.filter { $0.version < 12 }).migrate(database, now: 1)
        let host = try engine.open(folder.url)
        defer { try? host.close() }
        let ended = DispatchSemaphore(value: 0)
        try host.write(.durable) { connection in
            try connection.runScript(
                """
                INSERT INTO teams (id, handle, name, created_at) VALUES (1, 'juice', 'Juice', 1);
                INSERT INTO app_groups (id, team_id, primary_client_id, created_at) VALUES (1, 1, 'com.juice', 1);
                INSERT INTO users (id, handle, created_at) VALUES (1, 'u1', 1);
                INSERT INTO accounts (id, team_id, user_id, sub, created_at) VALUES (1, 1, 1, 's1', 1);
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at) VALUES (1, 1, 'authorized', 1, 1);
                INSERT INTO relay_addresses (account_id, local_part, domain, created_at) VALUES (1, 'new', 'relay.example', 5);
                """)
            Thread.detachNewThread {
                _ = try? Migrator().migrate(database, now: 2)
                ended.signal()
            }
            // Until the step waits for this transaction. SQLite's waits before it has looked at anything, and nothing shows it.
            guard engine.name == "postgresql" else { return }
            let end = Date(timeIntervalSinceNow: 60)
            while try connection.value(
                """
                SELECT COUNT(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE NOT l.granted AND n.nspname = current_schema()
                """) == 0
            {
                try #require(Date() < end, "nobody waits")
            }
        }
        ended.wait()
        #expect(try database.values("SELECT ordinal FROM relay_addresses", Int64.self) == [1])
        #expect(try database.values("SELECT has_live_grant FROM accounts", Int64.self) == [1])
        #expect(try Migrator().pending(database).isEmpty)
    }

    @Test(arguments: Engine.all) func addressesGrantsAndInboxesOfBeforeAreKept(_ engine: Engine) throws {
        let folder = try TemporaryFolder()
        let database = try engine.open(folder.url)
        defer { try? database.close() }
        _ = try Migrator(migrations: Migration.all.filter { $0.version < 12 }).migrate(database, now: 1)
        try database.write(.durable) { connection in
            try connection.runScript(
                """
                INSERT INTO teams (id, handle, name, created_at) VALUES (1, 'juice', 'Juice', 1), (2, 'milk', 'Milk', 1);
                INSERT INTO app_groups (id, team_id, primary_client_id, created_at) VALUES (1, 1, 'com.juice', 1), (2, 2, 'com.milk', 1);
                INSERT INTO users (id, handle, created_at) VALUES (1, 'u1', 1);
                """)
            for (inbox, isDefault) in [(1, 1), (2, 0)] {
                try connection.run(
                    """
                    INSERT INTO inboxes (id, user_id, address_key, address_sealed, index_key, address_index, canonical_index, is_default, created_at)
                    VALUES (?1, 1, 'a', ?2, 'a', ?2, ?2, ?3, 1)
                    """, [.integer(Int64(inbox)), .blob([UInt8(inbox)]), .integer(Int64(isDefault))])
            }
            try connection.runScript(
                """
                INSERT INTO accounts (id, team_id, user_id, inbox_id, sub, created_at) VALUES (1, 1, 1, NULL, 's1', 1), (2, 2, 1, 2, 's2', 1);
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
                    VALUES (1, 1, 'authorized', 1, 1), (2, 2, 'revoked', 1, 1);
                INSERT INTO relay_addresses (account_id, local_part, domain, is_current, forwarding_on, created_at, retired_at)
                    VALUES (1, 'zold', 'relay.example', 0, 1, 5, 6), (2, 'other', 'relay.example', 1, 0, 5, NULL),
                    (1, 'aold', 'relay.example', 0, 1, 6, 7), (1, 'new', 'relay.example', 1, 1, 7, NULL);
                """)
        }
        _ = try Migrator().migrate(database, now: 2)
        let addresses = try database.rows(
            """
            SELECT account_id, ordinal, local_part, is_current, forwarding_on, created_at, COALESCE(retired_at, -1) AS retired_at
            FROM relay_addresses ORDER BY account_id, ordinal
            """)
        let found = try addresses.map { row in
            let (account, ordinal, local): (Int, Int, String) = try (row["account_id"], row["ordinal"], row["local_part"])
            let rest: [Int] = try ["is_current", "forwarding_on", "created_at", "retired_at"].map { try row[$0] }
            return "\(account) \(ordinal) \(local) \(rest)"
        }
        #expect(found == ["1 1 zold [0, 1, 5, 6]", "1 2 aold [0, 1, 6, 7]", "1 3 new [1, 1, 7, -1]", "2 1 other [1, 0, 5, -1]"])
        let accounts = try database.rows("SELECT has_live_grant, target_inbox FROM accounts ORDER BY id")
        #expect(accounts.map(\.values) == [[.integer(1), .integer(1)], [.integer(0), .integer(2)]])
        #expect(try stale(database).isEmpty)
    }
}
