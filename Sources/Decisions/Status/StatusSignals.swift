// Known facts about a user when an app is authorized, as signals of a status policy.

import Accounts
import CEL
import Database
import RiskPolicy
import SignIn
import Support

/// Reads the signals. A number that includes other teams is nil for fewer than `teamsNeeded` teams,
/// because it would reveal one of them.
struct StatusSignals {
    static let teamsNeeded = 3
    private static let day: Int64 = 86_400

    let user: Int64
    /// The app's team and group of apps.
    let team: Int64
    let group: Int64
    /// The inbox that will receive mail; nil if there is none.
    let inbox: Int64?
    let now: Int64

    /// Whether the user needs a status: not if an authorized consent has one.
    func isDue(_ connection: any DatabaseConnection) throws(StoreFailure) -> Bool {
        let settled: Int64? = try connection.value(
            """
            SELECT 1 FROM grants g JOIN accounts a ON a.id = g.account_id
            WHERE a.user_id = \(user) AND \(isOfApp) AND g.state = 'authorized'
                AND g.real_user_status IS NOT NULL
            """)
        return settled == nil
    }

    /// Unknown values are absent.
    func values(
        _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> [StandardSignal: CELValue] {
        var values: [StandardSignal: CELValue] = [:]
        func set(_ signal: StandardSignal, _ value: Int64?) {
            values[signal] = value.map(CELValue.int)
        }
        func hours(_ time: Int64?) -> Int64? { time.map { max(0, now - $0) / 3_600 } }
        if let row = try connection.row(
            "SELECT created_at, is_managed FROM users WHERE id = \(user)")
        {
            set(.userAge, hours(try row["created_at"]))
            values[.userManaged] = try (row["is_managed"] as Bool?).map(CELValue.bool)
        }
        let own = try connection.row(
            """
            SELECT COALESCE(g.real_user_status, g.prior_status) AS prior,
                (SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) FROM daily_counters c WHERE c.account_id = a.id
                    AND c.day > \(Day.number(now) - 30) AND c.kind = \(CounterKind.rejoined)) AS rejoins
            FROM grants g JOIN accounts a ON a.id = g.account_id
            WHERE a.user_id = \(user) AND \(isOfApp)
            """)
        let (prior, rejoins): (Int64?, Int64?) = try (own?["prior"], own?["rejoins"])
        set(.priorStatus, prior)
        set(.rejoins, rejoins ?? 0)
        try ofTeams(connection, set)
        if let inbox { try of(inbox: inbox, connection, set, hours) }
        return values
    }

    private var isOfApp: SQL {
        "\(SQL.filter("a.team_id")) = \(team) AND \(SQL.filter("g.group_id")) = \(group)"
    }

    /// A total; nil if fewer than `teamsNeeded` teams contribute to it.
    private func count(
        _ connection: any DatabaseConnection, _ sql: SQL
    ) throws(StoreFailure) -> Int64? {
        guard let row = try connection.row(sql), try row["teams"] as Int64 >= Self.teamsNeeded
        else { return nil }
        return try row["n"]
    }

    /// The same for daily counters of some of the user's accounts. Teams
    /// without a count are ignored.
    private func counted(
        _ connection: any DatabaseConnection, _ kind: CounterKind, days: Int64, _ accounts: SQL
    ) throws(StoreFailure) -> Int64? {
        try count(
            connection,
            """
            SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) AS n, COUNT(DISTINCT a.team_id) AS teams FROM accounts a
            JOIN daily_counters c ON c.account_id = a.id AND c.day > \(Day.number(now) - days) AND c.kind = \(kind)
            WHERE \(accounts)
            """)
    }

    private func ofTeams(
        _ connection: any DatabaseConnection, _ set: (StandardSignal, Int64?) -> Void
    ) throws(StoreFailure) {
        set(
            .userTeams,
            try count(
                connection,
                """
                SELECT COUNT(DISTINCT a.team_id) AS n, COUNT(DISTINCT a.team_id) AS teams FROM accounts a
                JOIN grants g ON g.account_id = a.id AND g.state = 'authorized' WHERE a.user_id = \(user)
                """))
        set(
            .newTeams,
            try count(
                connection,
                """
                SELECT COUNT(*) AS n, COUNT(*) AS teams FROM accounts a
                WHERE a.user_id = \(user)
                    AND (SELECT MIN(g.first_authorized_at) FROM grants g WHERE g.account_id = a.id) > \(now - Self.day)
                """))
        set(.userReplies, try counted(connection, .replied, days: 30, "a.user_id = \(user)"))
        let checks: [(StandardSignal, String, Int64)] = [
            (.passedChecks, "passed_at", 90), (.failedChecksOfMonth, "failed_at", 30),
        ]
        for (signal, time, days) in checks {
            set(
                signal,
                try count(
                    connection,
                    """
                    SELECT COUNT(*) AS n, COUNT(DISTINCT a.team_id) AS teams FROM accounts a JOIN grants g ON g.account_id = a.id
                    JOIN checks k ON k.grant_id = g.id AND k.\(raw: time) > \(now - days * Self.day) WHERE a.user_id = \(user)
                    """))
        }
        let outcomes: [(StandardSignal, DecisionLabel)] = [
            (.legitimateOutcomes, .legitimate), (.fraudulentOutcomes, .fraudulent),
        ]
        for (signal, label) in outcomes {
            set(
                signal,
                try count(
                    connection,
                    """
                    SELECT COUNT(*) AS n, COUNT(DISTINCT d.team_id) AS teams FROM accounts a JOIN grants g ON g.account_id = a.id
                    JOIN decisions d ON d.grant_id = g.id AND d.label = \(label) WHERE a.user_id = \(user)
                    """))
        }
    }

    private func of(
        inbox: Int64, _ connection: any DatabaseConnection, _ set: (StandardSignal, Int64?) -> Void,
        _ hours: (Int64?) -> Int64?
    ) throws(StoreFailure) {
        let row = try connection.row(
            """
            SELECT i.verified_at, (SELECT CAST(COALESCE(SUM(d.deletions), 0) AS BIGINT) FROM tombstones d
                WHERE d.mark = i.tombstone_index AND d.day > \(Day.number(now) - 30)) AS deletions
            FROM inboxes i WHERE i.id = \(inbox)
            """)
        set(.inboxAge, hours(try row?["verified_at"]))
        set(.inboxDeletions, try row?["deletions"])
        set(
            .inboxBounces,
            try counted(
                connection, .bouncedPermanently, days: 7,
                "a.user_id = \(user) AND a.target_inbox = \(inbox)"))
        set(
            .inboxSignUps,
            try count(
                connection,
                """
                SELECT COUNT(*) AS n, COUNT(DISTINCT s.team_id) AS teams FROM verified_signups s
                JOIN inboxes i ON i.velocity_index = s.velocity_index WHERE i.id = \(inbox) AND s.at > \(now - Self.day)
                """))
    }

    /// The facts about how the user signed in.
    /// - Parameter method: the method at the built-in page; nil at the operator's own page.
    func values(
        of authentication: AuthenticationMethod, _ method: SignInMethod?,
        _ connection: any DatabaseConnection
    ) throws(StoreFailure) -> [StandardSignal: CELValue] {
        var values: [StandardSignal: CELValue] = [:]
        values[.signInMethod] = method.map { .string($0.rawValue) }
        guard !authentication.references.isEmpty else { return values }
        values[.signInMethods] = .list(authentication.references.map(CELValue.string))
        let verifies: Set = ["user", "mfa", "pin", "face", "fpt", "iris", "retina", "vbm"]
        values[.signInVerified] = .bool(!verifies.isDisjoint(with: authentication.references))
        guard method == .passkey else { return values }
        // The passkey used last: that of this sign-in, unless another device has signed in since.
        let row = try connection.row(
            "SELECT created_at, backed_up, is_attested FROM passkeys WHERE user_id = \(user) ORDER BY last_used_at DESC NULLS LAST LIMIT 1"
        )
        if let row {
            values[.passkeyAge] = .int(max(0, now - (try row["created_at"])) / 3_600)
            values[.passkeySynced] = .bool(try row["backed_up"])
            values[.passkeyAttested] = .bool(try row["is_attested"])
        }
        return values
    }
}

extension Policy {
    /// The input of a status policy, and its signals in the form of the log.
    func statusInput(
        _ values: [StandardSignal: CELValue], now: CELTimestamp
    ) -> (input: PolicyInput, signals: String) {
        var input = makeInput(event: .signUp, now: now)
        var log = JSONWriter(capacity: 400)
        log.object { log in
            for (name, value) in values.map({ ($0.key.rawValue, $0.value) }).sorted(by: {
                $0.0 < $1.0
            }) {
                guard let slot = slot(named: name),
                    (try? set(slot: slot, to: value, in: &input)) != nil
                else { continue }
                log.signal(name, value)
            }
        }
        return (input, log.text)
    }
}
