// The status of users at their first authorization, on both engines: the signals, what other teams
// contribute, and that it stays.

import Accounts
import CEL
import Database
import Decisions
import Foundation
import Logging
import RiskPolicy
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct StatusDeciderTests {
    private static let hour: Int64 = 3_600

    /// A user of an app that has not been authorized, other teams, and the decider.
    private struct World {
        let test: TestStore
        let decider: StatusDecider
        var now = TestStore.now

        init(_ engine: Engine, inbox: String = "jane@home.example") throws {
            test = try TestStore(engine)
            let store = test.store
            _ = try store.apps.add(
                team: "juice", clientID: "com.juice", group: nil,
                redirectURIs: ["https://juice.example/in"], TestStore.change)
            for team in ["tea", "milk", "cocoa", "beer", "wine", "cider", "mead"] {
                _ = try store.teams.add(id: team, name: team, TestStore.change)
                _ = try store.apps.add(
                    team: team, clientID: "com.\(team)", group: nil, TestStore.change)
            }
            _ = try test.user("jane", inbox: inbox)
            decider = StatusDecider(
                store: store,
                policies: ActivePolicies(
                    store.policies, host: nil, now: TestStore.now, logger: Logger(label: "test")),
                lists: nil
            )
        }

        /// Signs jane in to juice; returns the status that the app gets.
        func authorize(
            _ method: SignInMethod = .mail, _ references: Set<String> = ["otp"], given: Int? = nil,
            organisation: String? = nil
        ) throws -> Int? {
            var asked = ProviderAuthorization(
                grant: AuthorizationRequest(
                    clientID: "com.juice", userID: "jane", realUserStatus: given),
                redirectURI: "https://juice.example/in", scopes: ["openid"], nonce: nil,
                challenge: nil,
                orgID: organisation, authenticatedAt: now)
            asked.method = AuthenticationMethod(references: references)
            asked.signIn = method
            let change = Change(actor: "test", now: now)
            return try test.store.provider.authorize(asked, statuses: decider, change) {
                $0.subject.realUserStatus
            }
        }

        /// Consents to other teams.
        func join(_ teams: String...) throws {
            for team in teams {
                _ = try test.store.grants.authorize(
                    AuthorizationRequest(clientID: "com.\(team)", userID: "jane"),
                    Change(actor: "test", now: now))
            }
        }

        /// Logs a decision of a team about jane, with the team's label.
        func label(_ team: String, _ label: DecisionLabel) throws {
            try test.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run(
                    """
                    INSERT INTO decisions (decision_id, team_id, client_id, grant_id, claimed_event, event, decision, challenges,
                        reasons, wire_reasons, asked, skips, waived, missing, errors, shadow, signals, policy_name, policy_version,
                        policy_hash, credential_state, degraded, evaluated_at, expires_at, label, labelled_at)
                    SELECT \("rd_" + team + label.rawValue), a.team_id, \("com." + team), g.id, 'sign_in', 'sign_in', 'allow',
                        '', '', '', '', '', '', '', '', '', '{}', 'p', '1', 'h', 'authorized', 0, \(now), \(now + 300),
                        \(label), \(now)
                    FROM grants g JOIN accounts a ON a.id = g.account_id JOIN teams t ON t.id = a.team_id
                    WHERE t.handle = \(team)
                    """)
            }
        }

        /// The present signals about jane.
        func signals() throws -> [StandardSignal: String] {
            try test.store.database.read { connection throws(StoreFailure) in
                try decider.signals(connection, userID: "jane", clientID: "com.juice", now: now)
            }.mapValues(\.text)
        }

        /// The stored decisions: status, reasons and signals, the oldest first.
        func kept() throws -> [(status: Int, reasons: String, signals: String)] {
            try test.store.database.rows(
                "SELECT status, reasons, signals FROM status_decisions ORDER BY id"
            ).map {
                row throws(StoreFailure) in try (row["status"], row["reasons"], row["signals"])
            }
        }
    }

    @Test(arguments: Engine.all) func status_newUser_isUnsupportedForGood(_ engine: Engine) throws {
        var world = try World(engine)
        #expect(try world.authorize() == 0)
        // Consent is in force: nothing is delivered or decided again.
        world.now += 4_000 * Self.hour
        #expect(try world.authorize() == nil)
        let kept = try world.kept()
        #expect(kept.map(\.reasons) == ["DEFAULT"])
        let signals = try #require(kept.first?.signals)
        #expect(
            signals.contains(#""user.age_hours":0"#)
                && signals.contains(#""sign_in.method":"mail""#), "\(signals)")
        #expect(
            signals.contains(#""inbox.domain_class":"own""#) && !signals.contains("home.example"),
            "\(signals)")
    }

    @Test(arguments: Engine.all) func status_givenByPage_isNotDecidedAgain(_ engine: Engine) throws
    {
        let world = try World(engine, inbox: "jane@mailinator.com")
        #expect(try world.authorize(given: 2) == 2)
        #expect(try world.kept().isEmpty)
    }

    @Test(arguments: Engine.all) func status_disposableInbox_isUnknown(_ engine: Engine) throws {
        let world = try World(engine, inbox: "jane@mailinator.com")
        #expect(try world.authorize() == 1)
        #expect(try world.kept().map(\.reasons) == ["DISPOSABLE_INBOX"])
        let shown = try world.test.store.grants.givenStatuses(account: 1)
        #expect(shown.values.map(\.reasons) == [["DISPOSABLE_INBOX"]])
    }

    @Test(arguments: Engine.all) func status_oldUserOfThreeTeams_isLikelyReal(
        _ engine: Engine
    ) throws {
        var world = try World(engine)
        try world.join("tea", "milk")
        world.now += 2_200 * Self.hour
        // With only two teams, neither their number nor their reports are signals.
        var signals = try world.signals()
        #expect(
            signals[.userTeams] == nil && signals[.fraudulentOutcomes] == nil
                && signals[.userReplies] == nil)
        try world.join("cocoa")
        signals = try world.signals()
        #expect(signals[.userTeams] == "3" && signals[.userReplies] == nil)
        #expect(try world.authorize() == 2)
        #expect(try world.kept().map(\.reasons) == ["LONG_KNOWN"])
    }

    @Test(arguments: Engine.all) func newTeams_ofADay_countFromThreeOn(_ engine: Engine) throws {
        var world = try World(engine)
        try world.join("tea", "milk")
        #expect(try world.signals()[.newTeams] == nil)
        try world.join("cocoa")
        #expect(try world.signals()[.newTeams] == "3")
        world.now += 25 * Self.hour
        #expect(try world.signals()[.newTeams] == nil)
        try world.join("beer", "wine", "cider", "mead")
        #expect(try world.signals()[.newTeams] == "4" && world.signals()[.userTeams] == "7")
    }

    /// The reports of two teams change nothing; those of three do, independent of which teams.
    @Test(arguments: Engine.all) func fraudReports_ofTeams_countFromThreeOn(_ engine: Engine) throws
    {
        let world = try World(engine)
        try world.join("tea", "milk", "cocoa")
        try world.label("tea", .fraudulent)
        try world.label("milk", .fraudulent)
        #expect(try world.signals()[.fraudulentOutcomes] == nil)
        try world.label("cocoa", .fraudulent)
        #expect(try world.signals()[.fraudulentOutcomes] == "3")
        #expect(try world.authorize() == 1)
        #expect(try world.kept().map(\.reasons) == ["REPORTED"])
    }

    /// Bounces and replies of one team must not count for other teams: only those of at least three
    /// teams do.
    @Test(arguments: Engine.all) func bouncesAndReplies_ofTeams_countFromThreeOn(
        _ engine: Engine
    ) throws {
        let world = try World(engine)
        try world.join("tea", "milk", "cocoa")
        for (team, isTold) in [("tea", false), ("milk", false), ("cocoa", true)] {
            try world.test.store.database.write(.durable) { connection throws(StoreFailure) in
                for kind in [CounterKind.bouncedPermanently, .replied] {
                    try connection.run(
                        """
                        INSERT INTO daily_counters (account_id, day, kind, count) SELECT a.id, \(Day.number(world.now)), \(kind), 5
                        FROM accounts a JOIN teams t ON t.id = a.team_id WHERE t.handle = \(team)
                        """)
                }
            }
            let signals = try world.signals()
            #expect(signals[.inboxBounces] == (isTold ? "15" : nil))
            #expect(signals[.userReplies] == (isTold ? "15" : nil))
        }
    }

    /// A work account must be known as one at its first sign-in.
    @Test(arguments: Engine.all) func status_managedAccount_isKnownAtFirstSignIn(
        _ engine: Engine
    ) throws {
        var world = try World(engine)
        world.now += 25 * Self.hour
        #expect(try world.authorize(organisation: "org") == 2)
        #expect(try world.kept().map(\.reasons) == ["MANAGED"])
    }

    @Test(arguments: Engine.all) func status_return_isNotLowered(_ engine: Engine) throws {
        var world = try World(engine)
        #expect(try world.authorize(given: 2) == 2)
        world.now += Self.hour
        let account: Int64 = try #require(
            try world.test.store.database.read { connection throws(StoreFailure) in
                try connection.value(
                    "SELECT id FROM accounts WHERE user_id = (SELECT id FROM users WHERE handle = 'jane')"
                )
            })
        for _ in 1...3 {
            try world.test.store.grants.revokeAll(
                account: account, Change(actor: "test", now: world.now))
            #expect(try world.authorize() == 2)
        }
        // A return for the third time within 30 days: the policy says unknown, and the given status
        // stays.
        #expect(
            try world.kept().map(\.reasons) == ["KNOWN_BEFORE", "KNOWN_BEFORE", "KNOWN_BEFORE"])
        try world.test.store.grants.revokeAll(
            account: account, Change(actor: "test", now: world.now))
        #expect(try world.authorize() == 2)
        let last = try #require(try world.kept().last)
        #expect(last.status == 1 && last.reasons.contains("RECYCLED"))
    }

    @Test(arguments: Engine.all) func status_settledPasskey_isLikelyReal(_ engine: Engine) throws {
        var world = try World(engine)
        try world.test.store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO passkeys (user_id, credential_id, rp_id, public_key, sign_count, backup_eligible, backed_up, is_attested,
                    name_key, name_sealed, created_at, last_used_at)
                SELECT id, \([1] as [UInt8]), 'id.example', \([1] as [UInt8]), 0, 1, 1, 1, 'k', \([1] as [UInt8]),
                    \(TestStore.now), NULL FROM users WHERE handle = 'jane'
                """)
        }
        world.now += 721 * Self.hour
        #expect(try world.authorize(.passkey, ["mfa", "user"]) == 2)
        let kept = try #require(try world.kept().first)
        #expect(kept.reasons == "SETTLED_PASSKEY")
        #expect(
            kept.signals.contains(#""sign_in.passkey_age_hours":721"#)
                && kept.signals.contains(#""sign_in.user_verified":true"#))
    }

    @Test(arguments: Engine.all) func backtest_otherPolicy_comparesGivenStatuses(
        _ engine: Engine
    ) throws {
        let world = try World(engine, inbox: "jane@mailinator.com")
        #expect(try world.authorize() == 1)
        let lenient = try PolicyLoader.load(
            """
            policy: status
            version: "2"
            decides: status
            defaults: {status: unsupported}
            signals: {inbox.domain_class: string?}
            rules: [{id: none, status: unknown, condition: 'inbox.domain_class == "other"'}]
            """)
        let result = try StatusBacktest(lenient, listings: world.test.store.listings, since: 0)
        #expect(
            result.total == 1 && result[.unknown].before == 1 && result[.unknown].after == 0
                && result[.unsupported].after == 1)
        #expect(
            try StatusBacktest(lenient, listings: world.test.store.listings, since: world.now + 1)
                .total == 0)
    }

    @Test(arguments: Engine.all) func statusReasons_logExpired_areDeleted(_ engine: Engine) throws {
        let world = try World(engine)
        #expect(try world.authorize() == 0)
        #expect(try world.test.store.decisions.deleteExpired(before: world.now) == 0)
        #expect(try world.test.store.decisions.deleteExpired(before: world.now + 1) == 1)
        #expect(try world.kept().isEmpty)
    }
}
