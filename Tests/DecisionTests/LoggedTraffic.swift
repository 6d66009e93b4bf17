// A decision log like that of a month of ordinary use: made up from a seed, decided by the policy
// in force.

import Accounts
import CEL
import Database
import Decisions
import RiskPolicy
import TestSupport
import Testing

extension SeededGenerator {
    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// Makes decisions one by one, the oldest first.
struct LoggedTraffic {
    let policy: LoadedPolicy
    let team: Int64
    let client: String
    /// Seconds since 1970 of the first and the last.
    let period: (first: Int64, last: Int64)
    let count: Int
    private var random: SeededGenerator
    private var number = 0

    init(
        _ policy: LoadedPolicy, team: Int64 = 1, client: String,
        period: (first: Int64, last: Int64), count: Int, seed: UInt64 = 1
    ) {
        (self.policy, self.team, self.client, self.period, self.count) = (
            policy, team, client, period, count
        )
        random = SeededGenerator(seed: seed)
    }

    struct Row {
        let record: DecisionRecord
        let label: DecisionLabel?
        let checks: [CheckRecord]
    }

    mutating func next() -> Row? {
        guard number < count else { return nil }
        defer { number += 1 }
        let at =
            period.first + (period.last - period.first) * Int64(number) / Int64(max(1, count - 1))
        let isFraud = random.chance(3)
        let event: PolicyEvent =
            [.signIn, .signIn, .signIn, .signIn, .signUp, .signUp, .upgrade, .sensitiveAction]
            .randomElement(using: &random) ?? .signIn
        let signals = signals(event, isFraud: isFraud)
        guard let now = CELTimestamp(seconds: at) else { return nil }
        var input = policy.policy.makeInput(event: event, now: now)
        for (name, value) in signals { try? policy.policy.set(name, to: value, in: &input) }
        let result = policy.policy.decide(input)
        let rules = policy.policy
        func ids(_ set: RuleSet) -> [String] { set.map { rules.rules[$0].id } }
        let json = signals.map { "\"\($0.0)\":\(Self.json($0.1))" }.joined(separator: ",")
        let record = DecisionRecord(
            id: "rd_traffic\(team)x\(number)", teamNumber: team, clientID: client,
            claimedEvent: event.rawValue,
            event: event.rawValue,
            decision: result.decision.rawValue, challenges: rules.challengeKinds(result),
            reasons: rules.reasons(result),
            wireReasons: rules.wireReasons(result), asked: ids(result.asked),
            skips: ids(result.skips),
            waived: ids(result.waived),
            missing: ids(result.missing), errors: ids(result.errors), shadow: ids(result.shadow),
            signals: "{\(json)}",
            policyName: policy.name, policyVersion: policy.version, policyHash: policy.hash,
            credentialState: "authorized",
            isDegraded: result.isDegraded, evaluatedAt: at, expiresAt: at + 300)
        let label: DecisionLabel? =
            random.chance(isFraud ? 40 : 2) ? (isFraud ? .fraudulent : .legitimate) : nil
        return Row(record: record, label: label, checks: checks(record, isFraud: isFraud))
    }

    private static func json(_ value: CELValue) -> String {
        if case .string(let text) = value { "\"\(text)\"" } else { value.text }
    }

    private mutating func few(_ percent: Int, upTo most: Int) -> CELValue {
        .int(random.chance(percent) ? Int64(Int.random(in: 1...most, using: &random)) : 0)
    }

    private mutating func signals(_ event: PolicyEvent, isFraud: Bool) -> [(String, CELValue)] {
        let isNew = event == .signUp
        var signals: [(String, CELValue)] = [
            (
                "token.age_s",
                .int(Int64(Int.random(in: 1...(random.chance(20) ? 1_400 : 280), using: &random)))
            )
        ]
        if !random.chance(8) {
            let isLikelyReal = random.chance(isFraud ? 5 : 62)
            signals.append(
                ("account.real_user_status", .int(isLikelyReal ? 2 : random.chance(40) ? 1 : 0)))
        }
        signals += [
            (
                "account.age_hours",
                .int(
                    isNew
                        ? 0
                        : Int64(
                            Int.random(in: 1...(random.chance(25) ? 90 : 9_000), using: &random)))
            ),
            ("account.state", .string(isNew ? "new" : random.chance(3) ? "pending" : "active")),
            ("account.has_email", .bool(true)),
            ("account.forwarding_on", .bool(!random.chance(4))),
            (
                "account.hours_since_seen",
                .int(Int64(Int.random(in: 0...(random.chance(4) ? 6_000 : 300), using: &random)))
            ),
            ("account.bounces_7d", few(2, upTo: 3)), ("account.user_replies_30d", few(30, upTo: 6)),
            ("account.forwarding_toggles_7d", few(isFraud ? 20 : 3, upTo: 6)),
            ("inbox.signups_24h", few(isFraud ? 70 : 6, upTo: isFraud ? 14 : 4)),
            ("inbox.deletions_30d", few(isFraud ? 30 : 2, upTo: 3)),
            ("inbox.bounces_7d", few(2, upTo: 3)),
            ("checks.failed_24h", few(isFraud ? 12 : 1, upTo: 4)),
            ("checks.passed_90d", few(30, upTo: 4)),
            ("app.signups_1h", .int(Int64(Int.random(in: 2...14, using: &random)))),
            ("app.signups_1h_baseline", .double(8)),
        ]
        return signals
    }

    private mutating func checks(_ record: DecisionRecord, isFraud: Bool) -> [CheckRecord] {
        guard let kind = record.challenges.first, !random.chance(isFraud ? 45 : 9) else {
            return []
        }
        let at = record.evaluatedAt + 20
        if random.chance(isFraud ? 25 : 90) {
            return [CheckRecord(challenge: kind, initiatedAt: at, passedAt: at + 60, failedAt: nil)]
        }
        return [
            CheckRecord(
                challenge: kind, initiatedAt: at, passedAt: nil,
                failedAt: random.chance(50) ? at + 200 : nil)
        ]
    }

    /// Writes everything into a store.
    mutating func write(to store: Store) throws {
        while true {
            var rows: [Row] = []
            while rows.count < 1_000, let row = next() { rows.append(row) }
            guard !rows.isEmpty else { return }
            try store.decisions.insert(rows.map(\.record))
            try store.database.write(.relaxed) { connection throws(StoreFailure) in
                for row in rows {
                    if let label = row.label {
                        try connection.run(
                            "UPDATE decisions SET label = \(label), labelled_at = evaluated_at WHERE decision_id = \(row.record.id)"
                        )
                    }
                    for check in row.checks {
                        try connection.run(
                            """
                            INSERT INTO checks (decision_id, challenge, initiated_at, passed_at, failed_at) VALUES
                            \(list: [row.record.id, check.challenge, check.initiatedAt, check.passedAt, check.failedAt])
                            """)
                    }
                }
            }
        }
    }
}
