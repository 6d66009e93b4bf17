// The path of mail must not grow slower with the number of addresses: no query of it may walk through a table.

import Accounts
import Decisions
import InternetMessage
import PosternSQLite
import Testing

@Suite struct QueryPlanTests {
    @Test func noQueryOnThePathOfMailScansATable() throws {
        let test = try TestStore(.sqlite)
        try test.user("u1", name: "Jane")
        let address = try test.address("u1")
        let account = address.account.number
        let recorder = RecordingDatabase(test.database)
        let store = Store(database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        _ = try store.relay.relayAddress(localPart: address.address.localPart, domain: address.address.domain, now: 1)
        _ = try store.relay.account(number: account, day: 1)
        _ = try store.sources.teams(registering: AddrSpec(localPart: "a", domain: "mail.juice.example"))
        _ = try store.sources.sources(covering: AddrSpec(localPart: "a", domain: "mail.juice.example"))
        _ = try store.counters.reserve(account: account, kind: .forwarded, day: 1, limit: 5)
        _ = try store.counters.count(account: account, kind: .forwarded, day: 1)
        try store.counters.add([DailyCounter(accountNumber: account, day: 1, kind: .forwarded, count: 1)])
        _ = try store.counters.automaticReplyReserve(account: account, correspondentKey: [1], day: 1)
        _ = try store.counters.deleteExpired(countersBefore: 1, now: 1)
        _ = try store.bounces.record(
            BounceRepository.Failure(account: account, mark: [1], expiresAt: 2, sentDay: 1_000_000), days: 1, now: 1
        ) { _ in true }
        let correspondent = AddrSpec(localPart: "a", domain: "b.example")
        for _ in 0..<2 {
            try store.tokens.insert("t", purpose: .reverse, account: account, address: correspondent, expiresAt: nil, now: 1)
        }
        for expiry in [86_400, 9 * 86_400 as Int64] {
            try store.tokens.insert(
                "s", purpose: .returnPath, account: account, address: correspondent, expiresAt: expiry, now: 1)
        }
        _ = try store.tokens.deleteExpired(now: 1)
        _ = try store.complaints.record(account: account, mark: [1], day: 1, now: 1)
        _ = try store.complaints.days(team: 1, since: 1)
        _ = try store.relay.forwardedByDomain(day: 1)
        _ = try store.aggregateReports.add(
            AggregateReportRepository.Report(
                domain: "d", reporter: "r", identifier: "1", beginsAt: 1, endsAt: 2, passed: 1, failed: 1),
            [.init(address: "a", passesDKIM: false, passesSPF: false, disposition: "none", messages: 1)], now: 1)
        _ = try store.aggregateReports.summaries(since: 1)
        _ = try store.aggregateReports.failing(since: 1, limit: 1)
        _ = try store.aggregateReports.deleteExpired(before: 1)
        _ = try store.inboxes.userID(verified: TestStore.inbox("a@b.example"))
        _ = try store.addresses.issue(team: "juice", user: "u1", TestStore.change)
        try decide(store, address.account)
        let statements = recorder.statements
        #expect(statements.count > 15)
        for (sql, arguments) in statements {
            let plan = try test.database.read { connection in
                try connection.rows("EXPLAIN QUERY PLAN " + sql, arguments).map { try $0["detail"] as String }
            }
            // A constant subquery or list is not a table.
            let scans = plan.filter { $0.hasPrefix("SCAN") && !$0.contains("CONSTANT ROW") && !$0.contains("SUBQUERY") }
            #expect(scans.isEmpty, "\(sql): \(plan)")
        }
    }

    /// With millions of addresses each of them is a page, or two, that no cache holds.
    @Test func aLookUpReadsOneRowOfEachOfThreeLargeTablesAndNoIndexOfThem() throws {
        let test = try TestStore(.sqlite)
        try test.user("u1")
        let address = try test.address("u1").address
        let recorder = RecordingDatabase(test.database)
        let store = Store(database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        _ = try store.relay.relayAddress(localPart: address.localPart, domain: address.domain, now: 1)
        let (sql, arguments) = try #require(recorder.statements.first)
        #expect(recorder.statements.count == 1)
        let plan = try test.database.rows("EXPLAIN QUERY PLAN " + sql, arguments).map { try $0["detail"] as String }
        // Teams and their sources are few, and of transfers, counters and blocks there are none for most.
        let large = plan.filter { step in
            !["t", "s", "m", "n", "b"].contains { step.hasPrefix("SEARCH \($0) ") } && step.hasPrefix("SEARCH")
        }
        #expect(
            large == [
                "SEARCH r USING PRIMARY KEY (local_part=? AND domain=?)", "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)",
                // Asked for only where the address is not the current one.
                "SEARCH c USING INDEX relay_addresses_current (account_id=?) LEFT-JOIN",
                "SEARCH i USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            ])
    }
}

extension QueryPlanTests {
    /// What questions for decisions ask of the store.
    fileprivate func decide(_ store: Store, _ account: Account) throws {
        for subject in [GrantSubject.own(sub: account.sub), .named(account.sub), .external(issuer: "i", subject: "s")] {
            _ = try store.history.history(team: 1, group: 1, subject: subject, now: 1_000_000)
        }
        let record = DecisionRecord(
            id: "rd_1", teamNumber: 1, clientID: "c", claimedEvent: "sign_in", event: "sign_in", decision: "require_verification",
            challenges: ["email_code"], policyName: "p", policyVersion: "1", policyHash: "h", credentialState: "authorized",
            evaluatedAt: 1, expiresAt: 2)
        var decisionWrite = DecisionWrite(
            team: 1, group: 1, app: 1, subject: .external(issuer: "i", subject: "s"), expected: nil,
            nonce: ConsumedNonce(
                mark: [1], subject: [1], claimedEvent: "sign_in", event: "sign_in", decisionID: "rd_1", answer: "", expiresAt: 2),
            isVerified: true, now: 1, record: record)
        decisionWrite.isSignUp = true
        decisionWrite.binding = AppAccountBinding(mark: [1], decisionID: "rd_1")
        _ = try store.decisionWrites.apply(decisionWrite)
        try store.decisionWrites.noteSeen([1: 1])
        _ = try store.checks.report(decision: "rd_1", team: 1, outcome: .initiated, challenge: "email_code", now: 1)
        _ = try store.checks.label(decision: "rd_1", team: 1, .fraudulent, now: 1)
        _ = try store.decisions.decision("rd_1")
        _ = try store.decisions.newest(DecisionFilter(since: 0, team: "juice"), limit: 1)
        _ = try store.appRates.rates(app: 1, now: 1_000_000)
        _ = try store.idempotency.claim(team: 1, endpoint: "e", key: [1], body: [1], now: 1)
        _ = try store.apps.decisionApp(clientID: "c")
        _ = try store.decisions.deleteExpired(before: 1)
        _ = try store.checks.deleteExpired(before: 1)
        _ = try store.decisionWrites.deleteExpiredNonces(now: 1)
        _ = try store.idempotency.deleteExpired(now: 1)
        _ = try store.appRates.deleteExpired(now: 1)
    }
}

extension QueryPlanTests {
    /// A log of years has a hundred million rows: a page of it, or what is to be reviewed, is found in the order of an index.
    @Test func pagesOfTheLogAndReviewsAreReadInOrderAndSortNothing() throws {
        let test = try TestStore(.sqlite)
        /// Which index of the log each statement begins with that `ask` leads to.
        func expect(_ index: String, _ ask: (Store) throws -> Void) throws {
            let recorder = RecordingDatabase(test.database)
            try ask(Store(database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]))
            let ofLog = recorder.statements.filter { $0.key.contains("FROM decisions d") }
            #expect(!ofLog.isEmpty)
            for (sql, arguments) in ofLog {
                let plan = try test.database.rows("EXPLAIN QUERY PLAN " + sql, arguments).map { try $0["detail"] as String }
                #expect(plan.first?.hasPrefix("SEARCH d USING INDEX \(index) ") == true, "\(sql): \(plan)")
                #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(sql): \(plan)")
            }
        }
        try expect("decisions_time") { store in
            _ = try store.decisions.newest(DecisionFilter(since: 1), limit: 1)
            try store.decisions.walk(DecisionFilter(since: 1)) { _ in }
        }
        try expect("decisions_team") { store in
            _ = try store.decisions.newest(DecisionFilter(since: 1, team: "juice"), limit: 1)
            try store.decisions.walk(DecisionFilter(team: "juice")) { _ in }
        }
        try expect("decisions_review") { store in
            for cause in ReviewCause.allCases + [nil] {
                for team in ["juice", nil] {
                    _ = try store.reviews.list(ReviewFilter(since: 1, team: team, cause: cause), limit: 1, now: 1_000_000)
                }
            }
        }
    }
}
