// Rows that are imported together give the same result as rows imported one by one.

import Accounts
import Administration
import Foundation
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct ImportBatchTests {
    /// Rows with repeated users, inboxes, subjects and addresses, of which some must be refused.
    private static func rows(_ seed: UInt64, _ count: Int) throws -> [ImportRow] {
        var random = SeededGenerator(seed: seed)
        func number(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
        return try (0..<count).map { row in
            // Most rows share nothing with others, as in a real file.
            let isAlone = number(3) > 0
            let key = isAlone ? "r\(row)" : "k\(number(8))"
            let other = isAlone ? "r\(row)" : "k\(number(8))"
            let app: String? = number(3) == 0 ? nil : number(9) == 0 ? "com.none" : "com.juice"
            let sub: String? = number(2) == 0 ? nil : "sub.\(other)"
            let address: AddrSpec? =
                number(2) == 0 ? nil : try AddrSpec.typed("a\(other)x@relay.example")
            let status: Int? = number(2) == 0 ? nil : number(3)
            let account = ImportRow.Account(
                team: number(9) == 0 ? "nobody" : "juice", app: app, sub: sub, address: address,
                isForwardingOn: number(3) > 0,
                sharesName: number(2) == 0, realUserStatus: status,
                since: number(2) == 0 ? nil : TestStore.now - 5)
            let isReplyOnly = number(9) == 0
            // A row with both is refused when it is read.
            let inbox = ImportRow.Inbox(
                address: try TestStore.inbox(
                    "\(other)@\(number(20) == 0 ? "relay" : "home").example"),
                isVerified: number(2) == 0,
                isDefault: !isReplyOnly && number(3) == 0, isReplyOnly: isReplyOnly)
            return ImportRow(
                user: number(20) == 0 ? "not valid" : key,
                name: number(3) == 0 ? "Name \(other)" : nil,
                inbox: number(12) == 0 ? nil : inbox, account: number(4) > 0 ? account : nil)
        }
    }

    private static func store(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        _ = try test.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, TestStore.change)
        // A retired name, and an existing user.
        let first = ImportRow(
            user: "before", name: nil,
            inbox: ImportRow.Inbox(
                address: try TestStore.inbox("k7@home.example"), isVerified: true, isDefault: false,
                isReplyOnly: false),
            account: ImportRow.Account(
                team: "juice", sub: "sub.k7", address: try AddrSpec.typed("ak7x@relay.example")))
        _ = try test.store.imports.apply([first], TestStore.change)
        let account = try #require(try test.store.accounts.accounts().first)
        try test.store.accounts.delete(account: account.number, TestStore.change)
        return test
    }

    /// The stored content, without numbers and random values.
    private static func contents(_ test: TestStore) throws -> [String] {
        let queries = [
            """
            SELECT u.handle, CASE WHEN u.name_key IS NULL THEN 0 ELSE 1 END, i.is_default, i.reply_only, i.verified_at, i.failures_from,
                i.created_at, i.number, u.last_inbox_number
            FROM users u LEFT JOIN inboxes i ON i.user_id = u.id
            """,
            """
            SELECT u.handle, a.shares_name, a.created_at, a.email_kind, a.has_live_grant,
                CASE WHEN i.id = a.target_inbox THEN 1 ELSE 0 END, CASE WHEN a.sub LIKE 'sub.%' THEN a.sub ELSE '' END
            FROM accounts a JOIN users u ON u.id = a.user_id LEFT JOIN inboxes i ON i.user_id = u.id AND i.is_default = 1
            """,
            """
            SELECT u.handle, p.primary_client_id, g.state, g.first_authorized_at, g.last_authorized_at, g.real_user_status
            FROM grants g JOIN accounts a ON a.id = g.account_id JOIN users u ON u.id = a.user_id JOIN app_groups p ON p.id = g.group_id
            """,
            """
            SELECT u.handle, r.ordinal, r.is_current, r.forwarding_on, r.created_at, r.domain,
                CASE WHEN r.local_part LIKE 'a%x' AND LENGTH(r.local_part) < 9 THEN r.local_part ELSE '' END
            FROM relay_addresses r JOIN accounts a ON a.id = r.account_id JOIN users u ON u.id = a.user_id
            """,
            "SELECT action, COUNT(*) FROM audit GROUP BY action",
            "SELECT action, subject, detail FROM audit WHERE action = 'inbox.add'",
            "SELECT subject, COUNT(*) FROM audit WHERE subject LIKE 'user:%' GROUP BY subject",
        ]
        return try queries.enumerated().flatMap { index, sql in
            try test.database.rows(sql, []).map { row in
                "\(index) " + row.values.map { "\($0)" }.joined(separator: " ")
            }.sorted()
        }
    }

    private static func told(_ outcomes: [ImportOutcome]) -> [String] {
        outcomes.map { outcome in
            switch outcome {
            case .done(let counts): "\(counts)"
            case .refused(let refusal): "\(refusal.code): \(refusal.message)"
            }
        }
    }

    @Test(arguments: Engine.all) func importBatch_rowsTogether_equalOneByOne(
        _ engine: Engine
    ) throws {
        for seed in 1...(engine.name == "sqlite" ? 12 : 4) {
            let rows = try Self.rows(UInt64(seed), 60)
            let (together, single) = (try Self.store(engine), try Self.store(engine))
            let first = try together.store.imports.apply(rows, TestStore.change)
            let second = try rows.flatMap { try single.store.imports.apply([$0], TestStore.change) }
            #expect(Self.told(first) == Self.told(second), "seed \(seed)")
            #expect(try Self.contents(together) == Self.contents(single), "seed \(seed)")
            let names = try together.store.users.all().compactMap(\.name)
            #expect(try names.sorted() == single.store.users.all().compactMap(\.name).sorted())
        }
    }

    /// Without batches, every row would need some twenty round trips.
    @Test(arguments: Engine.all) func importBatch_newRows_takeFewStatements(_ engine: Engine) throws
    {
        let test = try Self.store(engine)
        let recorder = RecordingDatabase(test.database)
        let store = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        let rows = try (0..<128).map { number in
            ImportRow(
                user: "u\(number)", name: "Name",
                inbox: ImportRow.Inbox(
                    address: try TestStore.inbox("u\(number)@home.example"), isVerified: true,
                    isDefault: false,
                    isReplyOnly: false),
                account: ImportRow.Account(team: "juice", app: "com.juice"))
        }
        #expect(try store.imports.apply(rows, TestStore.change).count == 128)
        #expect(try store.users.all().count == 129)
        #expect(recorder.changes(" ").count < 60, "\(recorder.changes(" ").count) statements")
    }

    /// The number of rows to import; a higher number than in `make test` is for measurements.
    private static let count =
        ProcessInfo.processInfo.environment["POSTERN_IMPORT"].flatMap { Int($0) } ?? 900

    /// Rows are imported while users sign up, and all of them are in the store afterwards.
    @Test(arguments: Engine.all) func importBatch_duringSignUps_isComplete(
        _ engine: Engine
    ) async throws {
        let test = try Self.store(engine)
        let store = test.store
        async let signedUp: Int = withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        for number in 0..<50 {
                            try test.user("new\(number)")
                            _ = try test.address("new\(number)", app: "com.juice")
                        }
                        return 50
                    })
            }
        }
        let start = ContinuousClock.now
        for first in stride(from: 0, to: Self.count, by: 250) {
            let rows = try (first..<min(first + 250, Self.count)).map { number in
                ImportRow(
                    user: "u\(number)", name: "Name",
                    inbox: ImportRow.Inbox(
                        address: try TestStore.inbox("u\(number)@home.example"), isVerified: true,
                        isDefault: false,
                        isReplyOnly: false),
                    account: ImportRow.Account(team: "juice", app: "com.juice"))
            }
            for outcome in try store.imports.apply(rows, TestStore.change) {
                guard case .done(let counts) = outcome else {
                    Issue.record("a row was refused")
                    continue
                }
                #expect(counts.accounts == 1)
            }
        }
        if Self.count > 900 {
            print("\(engine): \(Self.count) rows in \(ContinuousClock.now - start)")
        }
        let others = try await signedUp
        for table in ["inboxes", "users"] {
            #expect(
                try test.database.value("SELECT COUNT(*) FROM \(raw: table)", Int64.self)
                    == Int64(Self.count + others + 1))
        }
        for table in ["accounts", "grants", "relay_addresses"] {
            #expect(
                try test.database.value("SELECT COUNT(*) FROM \(raw: table)", Int64.self)
                    == Int64(Self.count + others))
        }
    }
}
