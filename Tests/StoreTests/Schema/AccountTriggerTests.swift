// An account's columns about its grants and inboxes are right after every change of these.

import Accounts
import Database
import Foundation
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct AccountTriggerTests {
    static let change = TestStore.change

    /// Accounts whose columns differ from the values that follow from grants and inboxes.
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

    @Test(arguments: Engine.all) func account_randomChanges_followsGrantsAndInboxes(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let (store, database) = (test.store, test.database)
        var generator = SeededGenerator(seed: 8)
        func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
        func user() -> String { "u\(1 + pick(3))" }
        func inbox(_ user: String) throws -> InboxName {
            .address(try TestStore.inbox("\(user)-\(pick(4))@home.example"))
        }
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
                        id: user, name: nil, inbox: TestStore.inbox("\(user)@home.example"),
                        isVerified: pick(2) == 0, Self.change
                    )
                case 1, 2:
                    _ = try store.inboxes.add(
                        user: user, TestStore.inbox("\(user)-\(pick(4))@home.example"),
                        isVerified: pick(2) == 0,
                        isReplyOnly: pick(5) == 0,
                        Self.change)
                case 3: _ = try store.inboxes.confirm(user: user, inbox(user), Self.change)
                case 4: try store.inboxes.makeDefault(user: user, inbox(user), Self.change)
                case 5: try store.inboxes.remove(user: user, inbox(user), Self.change)
                case 6, 7:
                    _ = try store.grants.authorize(
                        AuthorizationRequest(
                            clientID: ["com.juice", "com.press"][pick(2)], userID: user,
                            inbox: pick(2) == 0 ? inbox(user) : nil),
                        Self.change)
                case 8:
                    if let account = try account(user) {
                        _ = try store.grants.revokeAll(account: account, Self.change)
                    }
                case 9:
                    guard let account = try account(user) else { continue }
                    try raw(
                        "UPDATE grants SET state = 'revoked', revoked_at = 1 WHERE account_id = ?1 AND state = 'authorized'",
                        [.integer(account)])
                case 10:
                    // A grant that moves to another account with its state.
                    guard let from = try account("u1"), let to = try account("u2") else { continue }
                    try raw(
                        """
                        UPDATE grants SET account_id = ?2 WHERE account_id = ?1
                            AND group_id NOT IN (SELECT g.group_id FROM grants g WHERE g.account_id = ?2)
                        """, [.integer(from), .integer(to)])
                case 11 where pick(4) == 0: try raw("DELETE FROM grants WHERE state = 'authorized'")
                case 12 where pick(4) == 0:
                    if let account = try account(user) {
                        try store.accounts.delete(account: account, Self.change)
                    }
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
                seen.none =
                    try count(
                        database,
                        "has_live_grant = 1 AND target_inbox IS NOT NULL AND inbox_id IS NULL") > 0
            }
        }
        #expect(done > 80)
        #expect(seen == (true, true, true), "the walk met too little")
    }

    /// Removing an app deletes its grants by a cascade of the database.
    @Test(arguments: Engine.all) func account_appGroupDeleted_hasNoLiveGrant(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let grant = try LifecycleTests.authorize(test, "com.press")
        #expect(
            try test.store.relay.account(number: grant.account.number, day: 1)?.hasLiveGrant == true
        )
        try test.database.write(.durable) {
            _ = try $0.run("DELETE FROM app_groups WHERE id = \(grant.grant.group.number)")
        }
        #expect(
            try test.store.relay.account(number: grant.account.number, day: 1)?.hasLiveGrant
                == false)
    }
}
