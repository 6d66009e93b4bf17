// Lists that grow with the number of users are read page by page and counted in pieces: PostgreSQL
// cancels a statement after ten seconds.

import Accounts
import Database
import Support
import TestSupport
import Testing

@Suite(.blocking) struct ListPageTests {
    private static let change = TestStore.change

    /// Accounts in the order of their numbers. Team `gone` was removed, but its rows still exist;
    /// u2 has a second address.
    private static let accounts = [
        ("juice", "u1"), ("gone", "u4"), ("gone", "u5"), ("gone", "u1"), ("juice", "u2"),
        ("milk", "u1"), ("juice", "u3"),
    ]

    private func world(_ engine: Engine) throws -> TestStore {
        let test = try TestStore(engine)
        for team in ["milk", "gone"] {
            _ = try test.store.teams.add(id: team, name: team, Self.change)
        }
        _ = try test.store.apps.add(team: "juice", clientID: "com.juice", group: nil, Self.change)
        for number in 1...5 { try test.user("u\(number)") }
        for (team, user) in Self.accounts { _ = try test.address(user, team: team) }
        try test.store.addresses.retire(try test.address("u2").address, Self.change)
        _ = try test.address("u2")
        try test.database.write(.durable) {
            try $0.run("UPDATE teams SET removed_at = 1 WHERE handle = 'gone'")
        }
        return test
    }

    /// All pages of a listing.
    private func pages<Row>(
        _ read: (Int64?) throws -> (rows: [Row], next: Int64?)
    ) throws -> [[Row]] {
        var pages: [[Row]] = []
        var place: Int64?
        repeat {
            let page = try read(place)
            pages.append(page.rows)
            place = page.next
        } while place != nil
        return pages
    }

    /// The same store, with a record of its statements.
    private func recorded(_ test: TestStore) -> (RecordingDatabase, Store) {
        let recorder = RecordingDatabase(test.database)
        return (
            recorder,
            Store(database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        )
    }

    private static let filters: [(team: String?, user: String?)] = [
        (nil, nil), ("juice", nil), (nil, "u1"), ("milk", "u1"),
    ]

    @Test(arguments: Engine.all) func page_accountsOrAddresses_readsLimitedRows(
        _ engine: Engine
    ) throws {
        let test = try world(engine)
        let (recorder, store) = recorded(test)
        for (team, user) in Self.filters {
            let accounts = try pages {
                try store.accounts.page(team: team, user: user, after: $0, limit: 2)
            }
            let expected = Self.accounts.filter {
                $0.0 != "gone" && (team ?? $0.0) == $0.0 && (user ?? $0.1) == $0.1
            }
            #expect(
                accounts.joined().map { "\($0.teamID) \($0.userID ?? "")" }
                    == expected.map { "\($0.0) \($0.1)" })
            #expect(accounts.allSatisfy { $0.count <= 2 })
            let addresses = try pages {
                try store.addresses.page(team: team, user: user, after: $0, limit: 2)
            }
            #expect(
                addresses.joined().map(\.account.number)
                    == addresses.joined().map(\.account.number).sorted())
            let all = try test.store.addresses.addresses(team: team, user: user)
            #expect(addresses.joined().count == all.count && Set(addresses.joined()) == Set(all))
        }
        #expect(try store.users.all(limit: 2).map(\.id) == ["u1", "u2"])
        #expect(try store.users.all(after: "u2", limit: 2).map(\.id) == ["u3", "u4"])
        let asked = recorder.statements.keys.filter {
            $0.contains("accounts a") || $0.contains("FROM users WHERE handle >")
        }
        #expect(asked.count > 3)
        for sql in asked {
            #expect(sql.contains("LIMIT") || sql.contains("a.id <= ?"), "\(sql)")
        }
    }

    @Test func page_anyFilter_scansAndSortsNoTable() throws {
        let test = try world(.sqlite)
        _ = try test.store.transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        let (recorder, store) = recorded(test)
        for (team, user) in Self.filters {
            _ = try store.accounts.page(team: team, user: user, after: nil, limit: 2)
            _ = try store.addresses.page(team: team, user: user, after: nil, limit: 2)
        }
        _ = try store.users.all(after: "u1", limit: 2)
        _ = try store.audit.page(since: 1, action: "rare", limit: 1)
        _ = try store.teams.dependents("juice")
        _ = try store.apps.dependents(team: "juice", clientID: "com.juice")
        _ = try store.transfers.transfers()
        #expect(recorder.statements.count > 5)
        // Transfers themselves are few.
        for (sql, arguments) in recorder.statements where !sql.contains("FROM app_transfers x") {
            let plan = try test.database.rows("EXPLAIN QUERY PLAN " + sql, arguments).map {
                try $0["detail"] as String
            }
            // A subquery that is limited to a piece may be read as a whole.
            let parts = plan.filter { $0.hasPrefix("CO-ROUTINE ") || $0.hasPrefix("MATERIALIZE ") }
                .compactMap { $0.split(separator: " ").last.map { "SCAN \($0)" } }
            let scans = plan.filter {
                $0.hasPrefix("SCAN") && !$0.contains("CONSTANT ROW") && !parts.contains($0)
            }
            #expect(scans.isEmpty, "\(sql): \(plan)")
            // The accounts of one user are few, so they may be sorted.
            if sql.contains("a.user_id = ?") {
                #expect(
                    plan.contains { $0.contains("accounts_of_user") || $0.contains("user_id=?") },
                    "\(sql): \(plan)")
                continue
            }
            #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(sql): \(plan)")
        }
    }

    @Test(arguments: Engine.all) func count_bounded_goesInPieces(_ engine: Engine) throws {
        let test = try TestStore(engine)
        for number in 1...7 { try test.user("u\(number)") }
        var pieces = 0
        func count(_ bound: Int) throws -> Int {
            pieces = 0
            return try test.database.count(upTo: bound, rows: 2) { after, limit in
                pieces += 1
                return """
                    SELECT COUNT(*) AS count, MAX(id) AS last
                    FROM (SELECT id FROM users WHERE id > \(after) ORDER BY id \(limit)) u
                    """
            }
        }
        let all = try count(.max)
        #expect(all == 7 && pieces == 5)
        let bounded = try count(3)
        #expect(bounded == 4 && pieces == 2)
        #expect(try count(7) == 7)
        #expect(
            BoundedCount.text(100_000) == "100000"
                && BoundedCount.text(100_001) == "more than 100,000")
    }

    @Test(arguments: Engine.all) func dependents_bounded_stopAtTheBound(_ engine: Engine) throws {
        let test = try world(engine)
        let store = test.store
        let team = try store.teams.dependents("juice")
        #expect(team.apps == 1 && team.accounts == 3 && team.addresses == 4)
        let bounded = try store.teams.dependents("juice", upTo: 1)
        #expect(bounded.accounts == 2 && bounded.addresses == 2)
        #expect(try store.teams.accountCount("juice") == 3)
        #expect(try store.apps.dependents(team: "juice", clientID: "com.juice").grants == 3)
        #expect(
            try store.apps.dependents(team: "juice", clientID: "com.juice", upTo: 1).grants == 2)
        let account = try #require(try store.accounts.accounts(team: "juice", user: "u3").first)
        try store.grants.revokeAll(account: account.number, Self.change)
        #expect(try store.apps.dependents(team: "juice", clientID: "com.juice").grants == 2)
        let transfer = try store.transfers.start(
            team: "juice", app: "com.juice", to: "milk", Self.change)
        #expect(transfer.waiting == 3 && transfer.moved == 0 && transfer.subjects == 0)
        _ = try store.transfers.finish(app: "com.juice", Self.change)
        let moved = try #require(try store.transfers.transfers(app: "com.juice", upTo: 1).first)
        #expect(moved.waiting == 0 && moved.moved == 2 && moved.subjects == 2)
        #expect(try store.transfers.transfers().map(\.moved) == [3])
    }
}

/// Rare entries in the audit of years must not be searched for in one statement.
extension ListPageTests {
    /// Lines at times after the store was created, with their positions as subjects.
    private func write(_ test: TestStore, _ lines: [(at: Int64, action: String)]) throws {
        try test.database.write(.durable) { connection in
            for (number, line) in lines.enumerated() {
                try connection.audit(
                    Change(actor: "uid:\(number % 2)", now: TestStore.now + line.at), line.action,
                    "\(number)")
            }
        }
    }

    @Test(arguments: Engine.all) func auditPage_anyFilter_readsRangesBackwards(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let audit = test.store.audit
        try write(
            test,
            (Int64(1)...20).map {
                (at: $0 * 100_000, action: $0 % 5 == 0 ? "rare.one" : "common.two")
            })
        #expect(
            try audit.page(action: "rare.one", limit: 10, range: 3).rows.map(\.subject) == ["19"])
        let rare = try pages { try audit.page(action: "rare.*", before: $0, limit: 10, range: 3) }
        #expect(rare.joined().map(\.subject) == ["19", "14", "9", "4"])
        let all = try pages { try audit.page(before: $0, limit: 10, range: 3) }
        let whole = try audit.entries()
        #expect(Array(all.joined()) == whole && all.allSatisfy { $0.count <= 3 })
        // As many subjects as a user's accounts may need.
        let subjects = (1...1_500).map { "\($0)" }
        #expect(
            try audit.page(action: "rare.one", subjects: subjects, limit: 10).rows.map(\.subject)
                == ["19", "14", "9", "4"])
        // A full page ends at its last line.
        let common = try pages {
            try audit.page(actor: "uid:*", action: "common.two", before: $0, limit: 2, range: 5)
        }
        #expect(common.joined().count == 16 && Set(common.joined().map(\.subject)).count == 16)
        #expect(try audit.page(actor: "uid:1", limit: 100).rows.count == 10)
        let recent = try pages {
            try audit.page(since: TestStore.now + 1_600_000, before: $0, limit: 10, range: 3)
        }
        #expect(recent.joined().map(\.subject) == ["19", "18", "17", "16", "15"])
        #expect(recent.count < all.count, "what is older by more than a day ends it")
    }

    /// All lines of an import have the time at which it began.
    @Test(arguments: Engine.all) func auditPage_linesOfOneTime_doNotHideOlder(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let earlier = [Int64](repeating: 1_000_000 - 3_600, count: 9)
        try write(test, ([1_000_000] + earlier + [1_000_001]).map { (at: $0, action: "user.add") })
        let found = try pages {
            try test.store.audit.page(
                since: TestStore.now + 1_000_000, before: $0, limit: 10, range: 3)
        }
        #expect(found.joined().map(\.subject) == ["10", "0"])
    }

    @Test func auditPage_emptyAudit_hasNoNextPage() throws {
        let test = try TestStore(.sqlite)
        try test.database.write(.durable) { try $0.run("DELETE FROM audit") }
        let page = try test.store.audit.page(limit: 10)
        #expect(page.rows.isEmpty && page.next == nil)
    }
}
