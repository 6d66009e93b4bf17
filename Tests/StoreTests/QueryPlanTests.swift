// The mail path must not become slower with the number of addresses: none of its queries may scan a
// table.

import Accounts
import Decisions
import Events
import InternetMessage
import MailAuth
import PersonalData
import PosternSQLite
import RelayCore
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct QueryPlanTests {
    @Test func queryPlan_mailPath_scansNoTable() throws {
        let test = try TestStore(.sqlite)
        try test.user("u1", name: "Jane")
        let address = try test.address("u1")
        let account = address.account.number
        let recorder = RecordingDatabase(test.database)
        let store = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        _ = try store.relay.relayAddress(
            localPart: address.address.localPart, domain: address.address.domain, now: 1)
        _ = try store.relay.account(number: account, day: 1)
        _ = try store.sources.teams(
            registering: AddrSpec(localPart: "a", domain: "mail.juice.example"))
        _ = try store.sources.sources(
            covering: AddrSpec(localPart: "a", domain: "mail.juice.example"))
        _ = try store.counters.reserve(account: account, kind: .forwarded, day: 1, limit: 5)
        _ = try store.counters.count(account: account, kind: .forwarded, day: 1)
        try store.counters.add([
            DailyCounter(accountNumber: account, day: 1, kind: .forwarded, count: 1)
        ])
        _ = try store.counters.automaticReplyReserve(
            account: account, correspondentKey: [1], day: 1)
        _ = try store.counters.deleteExpired(countersBefore: 1, now: 1)
        _ = try store.bounces.record(
            TestStore.failure(1, sentDay: 1_000_000, now: 1), of: TestStore.number(account),
            rate: TestStore.anyRate, now: 1)
        let correspondent = AddrSpec(localPart: "a", domain: "b.example")
        for _ in 0..<2 {
            try store.tokens.insert(
                "t", purpose: .reverse, account: account, address: correspondent, expiresAt: nil,
                now: 1)
        }
        for expiry in [86_400, 9 * 86_400 as Int64] {
            try store.tokens.insert(
                "s", purpose: .returnPath, account: account, address: correspondent,
                expiresAt: expiry, now: 1)
        }
        _ = try store.tokens.deleteExpired(now: 1)
        _ = try store.complaints.record(
            account: account, mark: [1], provider: .google, day: 1, now: 1)
        _ = try store.complaints.days(team: 1, since: 1)
        _ = try store.relay.forwardedByDomain(day: 1)
        _ = try store.aggregateReports.add(
            AggregateReport(
                domain: "d", identifier: "1", beginsAt: 1, endsAt: 2,
                messages: [
                    AggregateReport.Source(
                        address: try #require(IPAddress("192.0.2.1")), passesDKIM: false,
                        passesSPF: false, disposition: "none"):
                        1
                ]), reporter: "r", now: 1)
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
                try connection.rows("EXPLAIN QUERY PLAN " + sql, arguments).map {
                    try $0["detail"] as String
                }
            }
            // A constant subquery or list is not a table.
            let scans = plan.filter {
                $0.hasPrefix("SCAN") && !$0.contains("CONSTANT ROW") && !$0.contains("SUBQUERY")
            }
            #expect(scans.isEmpty, "\(sql): \(plan)")
        }
    }

    /// With millions of addresses each row is on one or two pages that are in no cache.
    @Test func queryPlan_addressLookup_readsOneRowPerTable() throws {
        let test = try TestStore(.sqlite)
        try test.user("u1")
        let address = try test.address("u1").address
        let recorder = RecordingDatabase(test.database)
        let store = Store(
            database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"])
        _ = try store.relay.relayAddress(
            localPart: address.localPart, domain: address.domain, now: 1)
        let (sql, arguments) = try #require(recorder.statements.first)
        #expect(recorder.statements.count == 1)
        let plan = try test.database.rows("EXPLAIN QUERY PLAN " + sql, arguments).map {
            try $0["detail"] as String
        }
        // Teams, their sources and freezes are few, and most accounts have no transfers, counters
        // or blocks.
        let large = plan.filter { step in
            !["t", "s", "f", "m", "n", "b"].contains { step.hasPrefix("SEARCH \($0) ") }
                && step.hasPrefix("SEARCH")
        }
        #expect(
            large == [
                "SEARCH r USING PRIMARY KEY (local_part=? AND domain=?)",
                "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)",
                // Read only if the address is not the current one.
                "SEARCH c USING INDEX relay_addresses_current (account_id=?) LEFT-JOIN",
                "SEARCH i USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
            ])
    }
}

extension QueryPlanTests {
    /// The reads of decisions.
    fileprivate func decide(_ store: Store, _ account: Account) throws {
        for subject in [
            GrantSubject.own(sub: account.sub), .named(account.sub),
            .external(issuer: "i", subject: "s"),
        ] {
            _ = try store.history.history(team: 1, group: 1, subject: subject, now: 1_000_000)
        }
        let record = DecisionRecord(
            id: "rd_1", teamNumber: 1, clientID: "c", claimedEvent: "sign_in", event: "sign_in",
            decision: "require_verification",
            challenges: ["email_code"], policyName: "p", policyVersion: "1", policyHash: "h",
            credentialState: "authorized",
            evaluatedAt: 1, expiresAt: 2)
        var decisionWrite = DecisionWrite(
            team: 1, group: 1, app: 1, subject: .external(issuer: "i", subject: "s"), expected: nil,
            nonce: ConsumedNonce(
                mark: [1], subject: [1], claimedEvent: "sign_in", event: "sign_in",
                decisionID: "rd_1", answer: "", expiresAt: 2),
            isVerified: true, now: 1, record: record)
        decisionWrite.isSignUp = true
        decisionWrite.binding = AppAccountBinding(mark: [1], decisionID: "rd_1")
        _ = try store.decisionWrites.apply(decisionWrite)
        try store.decisionWrites.noteSeen([1: 1])
        _ = try store.checks.report(
            decision: "rd_1", team: 1, outcome: .initiated, challenge: "email_code", now: 1)
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
    /// A log of years has a hundred million rows: a page of it, or the review list, must be found
    /// in the order of an index.
    @Test func queryPlan_logAndReviewPages_sortsNothing() throws {
        let test = try TestStore(.sqlite)
        func expect(_ index: String, _ ask: (Store) throws -> Void) throws {
            for plan in try plans(test, of: "FROM decisions d", ask) {
                #expect(plan.first?.hasPrefix("SEARCH d USING INDEX \(index) ") == true, "\(plan)")
                #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
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
                guard cause != .objection, cause != .rule else { continue }
                _ = try store.reviews.list(
                    ReviewFilter(since: 1, cause: cause), limit: 1, now: 1_000_000)
            }
        }
        // Decisions that rules put on the review list are rare among those that required
        // verification.
        try expect("decisions_for_review") { store in
            _ = try store.reviews.list(
                ReviewFilter(since: 1, cause: .rule), limit: 1, now: 1_000_000)
        }
        try expect("decisions_for_review") { store in
            _ = try store.reviews.list(
                ReviewFilter(since: 1, team: "juice", cause: .rule), limit: 1, now: 1_000_000)
        }
    }

    /// Rare rows: one user's entries in the audit, given-up events among those of a week, and
    /// counters of incidents.
    @Test func queryPlan_rareRows_usesIndex() throws {
        let test = try LifecycleTests.world(.sqlite)
        try OutboxStepTests.post(test, accounts: [1])
        func expect(_ step: String, of part: String, _ ask: (Store) throws -> Void) throws {
            for plan in try plans(test, of: part, ask) {
                #expect(plan.contains { $0.hasPrefix(step) }, "\(plan)")
            }
        }
        try expect("SEARCH audit USING INDEX audit_subject", of: "FROM audit") {
            _ = try $0.persons.records(user: "u1", now: 1)
        }
        try expect(
            "SEARCH o USING COVERING INDEX outbox_endpoint (endpoint_id=? AND state=?)",
            of: "AS parked"
        ) { store in
            _ = try store.endpoints.endpoints()
            _ = try store.streams.all()
        }
        try expect("SEARCH c USING INDEX daily_counters_complaints", of: "AS complaints") {
            _ = try $0.complaints.days(team: 1, since: 1)
        }
        try expect(
            "SEARCH x USING INDEX external_identities_subject", of: "FROM external_identities x"
        ) { store in
            let event = ExternalRiskEvent(
                issuer: "https://other.example", jti: "1", subject: .named("s"), clientID: nil,
                kind: "sessions-revoked",
                happenedAt: 1)
            _ = try store.externalEvents.note(event, TestStore.change)
        }
        try expect(
            "SEARCH o USING COVERING INDEX outbox_endpoint (endpoint_id=? AND state=? AND id<?)",
            of: "SELECT o.id FROM"
        ) {
            _ = try $0.outbox.events(team: "juice", before: 9)
        }
        try expect("SEARCH o USING COVERING INDEX outbox_endpoint", of: "SELECT o.id FROM") {
            _ = try $0.outbox.park(team: "juice", TestStore.change)
        }
        let lease = try test.deliveryLease()
        try expect("SEARCH outbox USING INDEX outbox_due", of: "last_attempt_at <") {
            _ = try $0.outbox.wake(endpoint: 1, under: lease, now: 1)
        }
        try expect("SEARCH i USING INDEX inboxes_unverified", of: "i.verified_at IS NULL") {
            _ = try $0.page.signInLink(
                for: TestStore.inbox("a@b.example"), browser: "b", rules: SignUpRules(.invited),
                limits: NoticeLimits(), now: 1)
        }
        try expect("SEARCH outbox USING INDEX outbox_park", of: "park_at <=") {
            _ = try $0.outbox.parkExpired(now: 1)
        }
        try expect("SEARCH o USING INDEX outbox_due", of: "e CROSS JOIN outbox o") {
            _ = try $0.outbox.endImpossibleWaits(event: 1, endpoint: 1, now: 1)
        }
        try expect("SEARCH a USING INDEX accounts_team", of: "COALESCE(c.forwarding_on, 0)") {
            _ = try $0.accountList.accounts(team: 1, limit: 1)
        }
        try expect(
            "SEARCH idempotency_keys USING PRIMARY KEY (team_id=? AND endpoint=? AND key_mark=?)",
            of: "DELETE FROM idempotency_keys"
        ) { _ = try $0.idempotency.deleteExpired(now: 1) }
        try expect(
            "SEARCH account_refusals_told USING COVERING INDEX account_refusals_told_at",
            of: "DELETE FROM account_refusals_told"
        ) {
            _ = try $0.persons.deleteTold(now: 1)
        }
        try expect("SEARCH t USING COVERING INDEX account_transfers_end", of: "t.old_account") {
            _ = try $0.transfers.endExpired(now: 1)
        }
        try expect("SEARCH outbox USING INDEX outbox_ended", of: "DELETE FROM outbox") {
            _ = try $0.outbox.deleteEnded(now: 1)
        }
    }

    @Test func queryPlan_objectionsAndTeamReviews_usesOwnIndex() throws {
        let test = try TestStore(.sqlite)
        let ofTeam = try plans(test, of: "AS is_incomplete") { store in
            _ = try store.reviews.list(
                ReviewFilter(since: 1, team: "juice"), limit: 1, now: 1_000_000)
        }
        #expect(
            ofTeam.allSatisfy {
                $0.first?.hasPrefix("SEARCH d USING INDEX decisions_review_team ") == true
            }, "\(ofTeam)")
        let objections = try plans(test, of: "AS is_incomplete") { store in
            _ = try store.reviews.list(
                ReviewFilter(since: 1, cause: .objection), limit: 1, now: 1_000_000)
        }
        // All objections, and one decision of each.
        #expect(
            objections.allSatisfy {
                $0.contains { $0.hasPrefix("SEARCH d USING INDEX sqlite_autoindex_decisions") }
            },
            "\(objections)")
    }

    /// SQLite's plan for each statement of `ask` that contains `part`; at least one.
    private func plans(
        _ test: TestStore, of part: String, _ ask: (Store) throws -> Void
    ) throws -> [[String]] {
        let recorder = RecordingDatabase(test.database)
        try ask(Store(database: recorder, keys: TestStore.keys(), relayDomains: ["relay.example"]))
        let statements = recorder.statements.filter { $0.key.contains(part) }
        #expect(!statements.isEmpty)
        return try statements.map { sql, arguments in
            try test.database.rows("EXPLAIN QUERY PLAN " + sql, arguments).map {
                try $0["detail"] as String
            }
        }
    }
}
