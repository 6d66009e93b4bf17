// Holds: held rows outlive their retention and the deletion of what they are about, and nothing
// else does.

import Accounts
import Database
import Decisions
import InternetMessage
import PersonalData
import TestSupport
import Testing

@Suite(.blocking) struct HoldTests {
    private static let later = Change(actor: "uid:0", now: TestStore.now + 60)
    private static let end = TestStore.now + 90 * 86_400
    /// Rows are made on this day, and all retentions of the tests end after it.
    private static let day = TestStore.today - 500
    private static let tables = [
        "daily_counters", "checks", "decisions", "status_decisions", "delivery_marks",
        "delivery_results", "rejections", "uses_by_others", "audit",
    ]

    /// Users anna and bob with rows of every kind at teams juice and soda.
    private static func world(_ engine: Engine) throws -> (TestStore, [String: RelayAddress]) {
        let test = try TestStore(engine)
        _ = try test.store.teams.add(id: "soda", name: "Soda", TestStore.change)
        var addresses: [String: RelayAddress] = [:]
        for team in ["juice", "soda"] {
            _ = try test.store.apps.add(
                team: team, clientID: "com.\(team)", group: nil, TestStore.change)
        }
        for user in ["anna", "bob"] {
            try test.user(user)
            for team in ["juice", "soda"] {
                addresses["\(user) \(team)"] = try test.address(
                    user, team: team, app: "com.\(team)")
            }
        }
        try test.database.write(.durable) { connection in
            let at = day * 86_400
            try connection.run(
                """
                INSERT INTO decisions (decision_id, team_id, client_id, grant_id, claimed_event, event, decision, challenges,
                    reasons, wire_reasons, asked, skips, waived, missing, errors, shadow, signals, policy_name, policy_version,
                    policy_hash, credential_state, degraded, evaluated_at, expires_at)
                SELECT 'rd_' || u.handle || t.handle, a.team_id, 'com.' || t.handle, g.id, 'sign_in', 'sign_in', 'allow',
                    '', '', '', '', '', '', '', '', '', '{}', 'p', '1', 'h', 'authorized', 0, CAST(\(at) AS BIGINT),
                    CAST(\(at) AS BIGINT)
                FROM grants g JOIN accounts a ON a.id = g.account_id JOIN teams t ON t.id = a.team_id
                JOIN users u ON u.id = a.user_id
                """)
            try connection.run(
                """
                INSERT INTO checks (decision_id, challenge, grant_id, initiated_at)
                SELECT decision_id, 'captcha', grant_id, evaluated_at FROM decisions
                """)
            try connection.run(
                """
                INSERT INTO status_decisions (grant_id, status, reasons, signals, policy_name, policy_version, policy_hash,
                    decided_at) SELECT id, 1, '', '{}', 'p', '1', 'h', CAST(\(at) AS BIGINT) FROM grants
                """)
            for (columns, values) in [
                ("daily_counters (account_id, day, kind, count)", "\(day), 1, 5"),
                (
                    "delivery_marks (account_id, provider, what, day)",
                    "'google', 'complaint', \(day)"
                ),
                (
                    "uses_by_others (account_id, ordinal, day, domain, selector, count, first_at)",
                    "1, \(day), 'spam.example', 's', 1, \(at)"
                ),
            ] {
                try connection.run(
                    "INSERT INTO \(raw: columns) SELECT id, \(raw: values) FROM accounts")
            }
            try connection.run(
                "INSERT INTO delivery_results (team_id, hour, provider, outcome, count) SELECT id, \(raw: "\(day * 24)"), 'google', 'delivered', 7 FROM teams"
            )
            try connection.run(
                """
                INSERT INTO rejections (team_id, source, hour, answer, reason, first_at, last_at, count, reference)
                SELECT id, handle || '.example', 1, '550 5.7.1', 'r', \(raw: "\(at), \(at)"), 1, 'f' FROM teams
                """)
            try connection.run("UPDATE audit SET at = \(at)")
        }
        return (test, addresses)
    }

    private static func terms(
        _ data: [DataClass] = [], until end: Int64 = end, reason: String = "dispute 7",
        isConfidential: Bool = false
    ) -> HoldTerms {
        HoldTerms(data: data, reason: reason, endsAt: end, isConfidential: isConfidential)
    }

    /// Deletes everything that is older than its retention, and continues all removals.
    private static func expire(_ test: TestStore) throws {
        let (store, before) = (test.store, TestStore.now - 86_400)
        _ = try store.counters.deleteExpired(
            countersBefore: before / 86_400, now: TestStore.now)
        _ = try store.decisions.deleteExpired(before: before)
        _ = try store.checks.deleteExpired(before: before)
        _ = try store.rejections.deleteExpired(before: before)
        _ = try store.deliveries.deleteExpired(before: before)
        _ = try store.audit.deleteExpired(before: before)
        _ = try store.persons.deleteUses(before: before / 86_400)
        try remove(test)
    }

    private static func remove(_ test: TestStore) throws {
        var steps = 0
        while try test.store.removals.step(now: later.now) {
            steps += 1
            try #require(steps < 100, "a removal that only waits for a hold must end")
        }
    }

    private static func counts(_ test: TestStore) throws -> [String: Int64] {
        try tables.reduce(into: [:]) { counts, table in
            // Lines of the test's own changes are newer.
            let old = table == "audit" ? "WHERE at = \(day * 86_400)" : ""
            counts[table] = try test.database.value(
                "SELECT COUNT(*) FROM \(raw: table) \(raw: old)", Int64.self)
        }.filter { $0.value > 0 }
    }

    /// What a hold lists, by table.
    private static func listed(_ test: TestStore, _ hold: Hold) throws -> [String: Int] {
        try HeldTable.all.reduce(into: [:]) { counts, table in
            guard hold.data.contains(table.data) else { return }
            var last: HoldRepository.Record?
            repeat {
                // One at a time: a listing must continue behind each key.
                let rows = try test.store.holds.records(
                    hold.number, in: table, after: last, limit: 1)
                counts[table.name, default: 0] += rows.count
                last = rows.last
            } while last != nil
        }.filter { $0.value > 0 }
    }

    private static let ofOneUser: [String: Int64] = [
        "daily_counters": 2, "checks": 2, "decisions": 2, "status_decisions": 2,
        "delivery_marks": 2, "uses_by_others": 2,
    ]

    @Test(arguments: Engine.all) func retention_noHold_deletesAll(_ engine: Engine) throws {
        let (test, _) = try Self.world(engine)
        #expect(try Set(Self.counts(test).keys) == Set(Self.tables))
        try Self.expire(test)
        #expect(try Self.counts(test) == [:])
    }

    @Test(arguments: Engine.all) func retention_userHeld_keepsTheUsersRowsUntilTheEnd(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let hold = try test.store.holds.add(.user("anna"), Self.terms(), Self.later)
        #expect(hold.data == [.audit, .checks, .counters, .decisions, .deliveries, .usesByOthers])
        try Self.expire(test)
        var kept = try Self.counts(test)
        #expect(try Self.listed(test, hold).mapValues(Int64.init) == kept)
        #expect((kept.removeValue(forKey: "audit") ?? 0) > 2)
        #expect(kept == Self.ofOneUser)
        try test.store.holds.end(hold.number, Self.later)
        try Self.expire(test)
        #expect(try Self.counts(test) == [:])
    }

    @Test(arguments: Engine.all) func retention_oneKindHeld_deletesTheOthers(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let address = try #require(addresses["anna juice"]).address
        let hold = try test.store.holds.add(
            .address(address), Self.terms([.decisions]), Self.later)
        try Self.expire(test)
        #expect(try Self.counts(test) == ["decisions": 1, "status_decisions": 1])
        #expect(try Self.listed(test, hold) == ["decisions": 1, "status_decisions": 1])
    }

    @Test(arguments: Engine.all) func retention_teamHeld_keepsTheTeamsRows(_ engine: Engine) throws
    {
        let (test, _) = try Self.world(engine)
        let hold = try test.store.holds.add(.team("juice"), Self.terms(), Self.later)
        try Self.expire(test)
        var kept = try Self.counts(test)
        #expect(try Self.listed(test, hold).mapValues(Int64.init) == kept)
        #expect(kept.removeValue(forKey: "audit") ?? 0 >= 2)
        // Both users' accounts at this team, and none of the other team.
        #expect(
            kept
                == Self.ofOneUser.merging(["delivery_results": 1, "rejections": 1]) { $1 })
    }

    /// The deletion is carried out for everything but what is held.
    @Test(arguments: Engine.all) func userRemoval_userHeld_keepsHeldRowsAlone(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let hold = try test.store.holds.add(
            .user("anna"), Self.terms([.decisions, .counters, .audit]), Self.later)
        try test.store.users.remove("anna", Self.later)
        try Self.remove(test)
        let address = try #require(addresses["anna juice"])
        #expect(
            try test.store.relay.relayAddress(
                localPart: address.address.localPart, domain: address.address.domain,
                now: Self.later.now) == nil)
        #expect(
            try test.store.grants.credentialState(team: "juice", sub: address.account.sub)
                == .notFound)
        for gone in ["inboxes", "users", "relay_addresses"] {
            #expect(
                try test.database.value("SELECT COUNT(*) FROM \(raw: gone)", Int64.self)
                    == (gone == "relay_addresses" ? 2 : 1), "\(gone)")
        }
        #expect(
            try test.database.value("SELECT COUNT(*) FROM grants WHERE state = 'authorized'")
                == 2)
        #expect(try test.store.removals.backlog().count == 0)
        #expect(try test.store.holds.hold(hold.number).deletedAccounts == 2)
        try Self.expire(test)
        var kept = try Self.counts(test)
        // The line about the deletion is not old.
        var listed = try Self.listed(test, hold).mapValues(Int64.init)
        listed["audit", default: 0] -= 1
        #expect(listed == kept)
        #expect((kept.removeValue(forKey: "audit") ?? 0) > 2)
        #expect(kept == ["decisions": 2, "daily_counters": 2, "status_decisions": 2])
        // The end deletes the rest, the rows of the accounts and of the hold too.
        #expect(try test.store.holds.endDue(now: Self.end - 1) == 0)
        #expect(try test.store.holds.endDue(now: Self.end) == 1)
        #expect(try test.store.removals.isPending())
        _ = try test.store.holds.deleteEnded()
        try Self.expire(test)
        #expect(try Self.counts(test) == [:])
        for table in ["holds", "hold_data", "held_accounts", "teams WHERE removed_at IS NOT NULL"] {
            #expect(
                try test.database.value("SELECT COUNT(*) FROM \(raw: table)", Int64.self) == 0,
                "\(table)")
        }
        #expect(try test.database.value("SELECT COUNT(*) FROM accounts", Int64.self) == 2)
    }

    @Test(arguments: Engine.all) func teamRemoval_userAndTeamHeld_keepsHeldRowsAlone(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let ofUser = try test.store.holds.add(
            .user("anna"), Self.terms([.decisions]), Self.later)
        let ofTeam = try test.store.holds.add(
            .team("soda"), Self.terms([.rejections]), Self.later)
        for team in ["juice", "soda"] { try test.store.teams.remove(team, Self.later) }
        try Self.remove(test)
        #expect(try Self.listed(test, ofUser) == ["decisions": 2, "status_decisions": 2])
        #expect(try Self.listed(test, ofTeam) == ["rejections": 1])
        var kept = try Self.counts(test)
        kept["audit"] = nil
        #expect(kept == ["decisions": 2, "status_decisions": 2, "rejections": 1])
        #expect(try test.database.value("SELECT COUNT(*) FROM relay_addresses", Int64.self) == 0)
        let address = try #require(addresses["anna juice"])
        #expect(
            try test.store.relay.account(number: address.account.number, day: TestStore.today)?
                .hasLiveGrant != true)
        for hold in [ofUser, ofTeam] { try test.store.holds.end(hold.number, Self.later) }
        try Self.remove(test)
        kept = try Self.counts(test)
        kept["audit"] = nil
        #expect(kept == [:])
        #expect(try test.database.value("SELECT COUNT(*) FROM teams", Int64.self) == 0)
    }

    @Test(arguments: Engine.all) func appRemoval_userHeld_endsTheConsentAndKeepsItsRows(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let hold = try test.store.holds.add(.user("anna"), Self.terms([.checks]), Self.later)
        try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.later)
        try Self.remove(test)
        let address = try #require(addresses["anna juice"])
        #expect(try test.store.grants.grants(account: address.account.number).isEmpty)
        #expect(try Self.listed(test, hold) == ["checks": 2])
        #expect(try test.database.value("SELECT COUNT(*) FROM checks", Int64.self) == 3)
        try test.store.holds.end(hold.number, Self.later)
        try Self.remove(test)
        #expect(try test.database.value("SELECT COUNT(*) FROM checks", Int64.self) == 2)
    }

    /// What two holds keep ends with the second.
    @Test(arguments: Engine.all) func hold_oneOfTwoEnds_keepsWhatTheOtherHolds(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let first = try test.store.holds.add(.user("anna"), Self.terms([.counters]), Self.later)
        let second = try test.store.holds.add(.team("juice"), Self.terms([.counters]), Self.later)
        try test.store.users.remove("anna", Self.later)
        try test.store.holds.end(first.number, Self.later)
        try Self.expire(test)
        // Of anna and bob at juice.
        #expect(try Self.listed(test, second) == ["daily_counters": 2])
        #expect(try Self.counts(test) == ["daily_counters": 2])
    }

    @Test(arguments: Engine.all) func hold_beginChangeAndEnd_areInTheAudit(_ engine: Engine) throws
    {
        let (test, _) = try Self.world(engine)
        let hold = try test.store.holds.add(.user("anna"), Self.terms([.checks]), Self.later)
        let changed = try test.store.holds.change(
            hold.number, endsAt: Self.end + 9, reason: "order 12", Self.later)
        #expect(changed.endsAt == Self.end + 9 && changed.reason == "order 12")
        #expect(try test.store.holds.all() == [changed])
        #expect(try test.store.holds.endDue(now: Self.end + 9) == 1)
        #expect(try test.store.holds.all().isEmpty)
        let lines = try test.store.audit.entries(limit: 3)
        #expect(lines.map(\.action) == ["hold.end", "hold.change", "hold.add"])
        #expect(lines.map(\.actor) == ["serve", "uid:0", "uid:0"])
        #expect(lines.allSatisfy { $0.subject == "hold:\(hold.number)" })
        #expect(
            lines[2].detail.hasPrefix("user:anna checks until ")
                && lines[2].detail.hasSuffix(": dispute 7"))
        #expect(lines[1].detail.hasSuffix(": order 12"))
        expectRefusal(.notFound) { try test.store.holds.end(hold.number, Self.later) }
    }

    @Test(arguments: Engine.all) func hold_badTerms_isRefused(_ engine: Engine) throws {
        let (test, _) = try Self.world(engine)
        let holds = test.store.holds
        let last = Self.later.now + Int64(HoldTerms.maximumDays) * 86_400
        for terms in [
            Self.terms(until: Self.later.now), Self.terms(until: last + 1), Self.terms(reason: ""),
            Self.terms(reason: "mail of anna@home.example"), Self.terms(reason: "two\nlines"),
            Self.terms(reason: String(repeating: "x", count: AuditReason.maximum + 1)),
            Self.terms([.rejections]), Self.terms([.dmarcReports]),
        ] {
            expectRefusal(.invalid) { _ = try holds.add(.user("anna"), terms, Self.later) }
        }
        expectRefusal(.notFound) { _ = try holds.add(.user("zoe"), Self.terms(), Self.later) }
        expectRefusal(.notFound) { _ = try holds.add(.team("tea"), Self.terms(), Self.later) }
        #expect(try holds.all().isEmpty)
        let hold = try holds.add(.team("juice"), Self.terms(until: last), Self.later)
        expectRefusal(.invalid) {
            _ = try holds.change(hold.number, endsAt: last + 1, reason: nil, Self.later)
        }
        for _ in 1..<HoldTerms.maximumHolds {
            _ = try holds.add(.team("juice"), Self.terms([.audit]), Self.later)
        }
        expectRefusal(.limit) { _ = try holds.add(.team("juice"), Self.terms(), Self.later) }
    }

    /// Another person may take the identifier of a deleted user.
    @Test(arguments: Engine.all) func hold_identifierTakenAgain_isNotAboutTheNewUser(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let hold = try test.store.holds.add(
            .user("anna"), Self.terms([.counters, .checks]), Self.later)
        try test.store.users.remove("anna", Self.later)
        try Self.remove(test)
        try test.user("anna", inbox: "other@home.example")
        let address = try test.address("anna", app: "com.juice")
        try test.database.write(.durable) { connection in
            try connection.run(
                "INSERT INTO daily_counters (account_id, day, kind, count) VALUES (\(address.account.number), \(Self.day), 1, 5)"
            )
        }
        #expect(
            try test.store.persons.records(user: "anna", now: TestStore.now).first {
                $0.name == "holds"
            }?.rows.isEmpty == true)
        #expect(try Self.listed(test, hold) == ["daily_counters": 2, "checks": 2])
        try Self.expire(test)
        #expect(try Self.counts(test)["daily_counters"] == 2)
    }

    /// An order may forbid to tell the user.
    @Test(arguments: Engine.all) func download_heldUser_namesOnlyOpenHolds(_ engine: Engine) throws
    {
        let (test, addresses) = try Self.world(engine)
        func rows(_ user: String) throws -> Int {
            try test.store.persons.records(user: user, now: TestStore.now).first {
                $0.name == "holds"
            }?.rows.count ?? -1
        }
        _ = try test.store.holds.add(
            .user("anna"), Self.terms([.checks], isConfidential: true), Self.later)
        _ = try test.store.holds.add(.team("juice"), Self.terms([.checks]), Self.later)
        #expect(try rows("anna") == 0)
        _ = try test.store.holds.add(
            .address(try #require(addresses["anna soda"]).address),
            Self.terms([.checks, .counters]),
            Self.later)
        #expect(try rows("anna") == 2 && rows("bob") == 0)
        // The lines about a hold do not give it away either.
        let changes = try test.store.persons.records(user: "anna", now: TestStore.now).first {
            $0.name == "changes"
        }
        #expect(!"\(String(describing: changes))".contains("hold"))
    }

    /// Neither rows that are older than others' nor the looks of an administrator.
    @Test(arguments: Engine.all) func download_confidentialHold_isLikeThoseOfOthers(
        _ engine: Engine
    ) throws {
        let (test, _) = try Self.world(engine)
        let now = TestStore.now + 500 * 86_400
        func sections(_ user: String) throws -> [String: Int] {
            try test.store.persons.records(user: user, now: now).reduce(into: [:]) {
                $0[$1.name] = $1.rows.count
            }
        }
        func expire() throws {
            _ = try test.store.counters.deleteExpired(
                countersBefore: Day.number(now) - 35, now: now)
            let before = now - 400 * 86_400
            _ = try test.store.decisions.deleteExpired(before: before)
            _ = try test.store.checks.deleteExpired(before: before)
            _ = try test.store.deliveries.deleteExpired(before: now - 90 * 86_400)
            _ = try test.store.persons.deleteUses(before: Day.number(now) - 30)
        }
        _ = try test.store.holds.add(
            .user("anna"),
            HoldTerms(
                data: [], reason: "order 12", endsAt: now + 86_400, isConfidential: true),
            Self.later)
        try test.store.audit.note(Self.later, .user, "user:anna", reason: "order 12")
        try expire()
        let (anna, bob) = try (sections("anna"), sections("bob"))
        for name in [
            "decisions", "status_decisions", "checks", "counts_by_day", "uses_of_addresses",
            "mail_your_provider_objected_to",
        ] { #expect(anna[name] ?? 0 == bob[name] ?? 0, "\(name)") }
        #expect(anna["counts_before"] ?? 0 > 0 && bob["counts_before"] ?? 0 > 0)
        #expect(anna["holds"] == 0)
        let changes = try test.store.persons.records(user: "anna", now: now).first {
            $0.name == "changes"
        }
        #expect(!"\(String(describing: changes))".contains("order 12"))
    }

    // MARK: Moved consents

    /// The user consented at the new team before the app moved there, so two consents become one.
    @Test(arguments: Engine.all) func transfer_consentAtBothTeams_keepsHeldRows(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let old = try #require(addresses["anna juice"]).account.number
        let new = try #require(addresses["anna soda"]).account.number
        let hold = try test.store.holds.add(
            .address(try #require(addresses["anna juice"]).address),
            Self.terms([.checks, .decisions]), Self.later)
        _ = try test.store.transfers.start(
            team: "juice", app: "com.juice", to: "soda", TestStore.change)
        // The consent to the app that the user gave to the new team.
        try test.database.write(.durable) { connection in
            try connection.run(
                """
                INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
                SELECT CAST(\(new) AS BIGINT), group_id, 'authorized', first_authorized_at, last_authorized_at
                FROM grants WHERE account_id = \(old)
                """)
            try connection.run(
                """
                INSERT INTO checks (decision_id, challenge, grant_id, initiated_at)
                SELECT 'rd_other', 'captcha', MAX(id), 1 FROM grants WHERE account_id = \(new)
                """)
        }
        _ = try test.store.transfers.finish(app: "com.juice", Self.later)
        #expect(
            try test.database.value(
                "SELECT COUNT(*) FROM grants WHERE account_id = \(new)", Int64.self) == 2)
        try Self.expire(test)
        // The hold follows the consent: what was held of it stays, and what was merged into it.
        let listed = try Self.listed(test, hold)
        #expect((listed["checks"] ?? 0) >= 2)
        #expect((listed["decisions"] ?? 0) >= 1 && (listed["status_decisions"] ?? 0) >= 1)
        #expect(try test.store.holds.hold(hold.number).deletedAccounts == 0)
        #expect(
            try test.database.value(
                "SELECT COUNT(*) FROM checks WHERE decision_id = 'rd_other'", Int64.self) == 1)
        try test.store.holds.end(hold.number, Self.later)
        try Self.expire(test)
        #expect(try Self.counts(test)["checks"] == nil)
    }

    // MARK: What the user may know

    @Test(arguments: Engine.all) func keptRecords_heldUser_leaveConfidentialHoldsOut(
        _ engine: Engine
    ) throws {
        let (test, addresses) = try Self.world(engine)
        let holds = test.store.holds
        func kept(_ user: String) throws -> KeptRecords? { try holds.kept(ofUser: user) }
        #expect(try kept("anna") == nil)
        _ = try holds.add(
            .user("anna"), Self.terms([.audit], isConfidential: true), Self.later)
        #expect(try kept("anna") == nil)
        _ = try holds.add(
            .address(try #require(addresses["anna soda"]).address), Self.terms([.checks]),
            Self.later)
        #expect(try kept("anna")?.data == [.checks] && kept("anna")?.endsAt == Self.end)
        // Not the team's own records.
        let team = try holds.add(
            .team("juice"), Self.terms([.counters, .rejections, .audit], until: Self.end + 5),
            Self.later)
        let found = try #require(try kept("anna"))
        #expect(found.data == [.checks, .counters] && found.endsAt == Self.end + 5)
        #expect(KeptRecords(number: found.number) == found)
        #expect(try kept("bob")?.data == [.counters])
        try holds.end(team.number, Self.later)
        #expect(try kept("bob") == nil)
    }

    @Test(arguments: [0, -1, 5, Int64.max]) func keptRecords_strangeNumber_isReadOrNil(
        _ number: Int64
    ) {
        let kept = KeptRecords(number: number)
        #expect(kept == nil || !kept!.data.isEmpty && kept!.endsAt < 1 << 40)
    }
}
