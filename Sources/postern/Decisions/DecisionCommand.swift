// postern decision: the log of decisions.

import ArgumentParser
import Foundation
import Identity
import JSON
import PosternStore
import RiskDecisions

struct DecisionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decision", abstract: "List, show and replay logged decisions.",
        subcommands: [List.self, Show.self, ReplayCommand.self])

    /// A decision as commands show it.
    struct Row: Encodable {
        let decisionId: String
        let evaluatedAt: String
        let expiresAt: String
        let team: String
        let clientId: String
        let claimedEvent: String
        let event: String
        let grant: Int64?
        let decision: String
        let challenges: [String]
        let reasons: [String]
        let wireReasons: [String]
        let asked: [String]
        let skips: [String]
        let waived: [String]
        let missing: [String]
        let errors: [String]
        let shadow: [String]
        let overriddenBy: String?
        let realUserStatus: Int?
        let credentialState: String
        let upgradeResult: String?
        let degraded: Bool
        let policy: String
        let policyVersion: String
        let policyHash: String
        let signals: String
        let label: String?
        let outcomes: [Outcome]

        struct Outcome: Encodable {
            let challenge: String
            let initiatedAt: String
            let passedAt: String?
            let failedAt: String?
        }

        init(_ logged: LoggedDecision) {
            let record = logged.record
            decisionId = record.id
            evaluatedAt = timestamp(record.evaluatedAt)
            expiresAt = timestamp(record.expiresAt)
            team = logged.teamID
            clientId = record.clientID
            claimedEvent = record.claimedEvent
            event = record.event
            grant = record.grantNumber
            decision = record.decision
            challenges = record.challenges
            reasons = record.reasons
            wireReasons = record.wireReasons
            asked = record.asked
            skips = record.skips
            waived = record.waived
            missing = record.missing
            errors = record.errors
            shadow = record.shadow
            overriddenBy = record.overriddenBy
            realUserStatus = record.realUserStatus
            credentialState = record.credentialState
            upgradeResult = record.upgradeResult
            degraded = record.isDegraded
            policy = record.policyName
            policyVersion = record.policyVersion
            policyHash = record.policyHash
            signals = record.signals
            label = logged.label?.rawValue
            outcomes = logged.checks.map {
                Outcome(
                    challenge: $0.challenge, initiatedAt: timestamp($0.initiatedAt), passedAt: $0.passedAt.map(timestamp),
                    failedAt: $0.failure(now: PosternClock.now()).map(timestamp))
            }
        }

        /// How the challenges ended, in a word each: `email_code:passed`.
        var outcomeWords: [String] {
            outcomes.map { "\($0.challenge):\($0.passedAt != nil ? "passed" : $0.failedAt != nil ? "failed" : "initiated")" }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List decisions, the newest first.",
            discussion: "Reasons are the precise ones for the operator; teams get less detail.")

        @Option(help: "Only those that belong to this team.")
        var team: String?
        @Option(help: ArgumentHelp("Only decisions since then: 12h, 30d, a date, or a time in ISO 8601.", valueName: "time"))
        var since: String?
        @Option(help: "Only decisions in which this rule asked, skipped, was waived, missing, in error or in shadow.")
        var rule: String?
        @Option(help: "Only decisions with this reason code.")
        var reason: String?
        @Option(help: "The maximum number of rows.")
        var limit: Int = 50
        @Flag(help: "Print CSV with a header.")
        var csv = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            if csv && output.json { throw ValidationError("Give either --csv or --json.") }
            if limit < 1 { throw ValidationError("--limit must be 1 or more.") }
        }

        func run() throws {
            var filter = DecisionFilter(team: team, rule: rule, reason: reason)
            if let since {
                let now = PosternClock.now()
                guard let start = ExpiryText.duration(since).map({ now - $0 }) ?? ExpiryText.moment(since, endOfDay: false) else {
                    throw CommandError.usage("\(since) is not a valid time: give 12h, 30d, or a date as in 2027-01-31")
                }
                filter.since = start
            }
            let rows = try installation.withStore { store in
                try store.decisions.newest(filter, limit: limit).0.map(Row.init)
            }
            if output.json { return try printJSON(rows) }
            if csv { return CSVLines.print(rows) }
            Table(
                header: ["TIME", "DECISION", "TEAM", "EVENT", "ANSWER", "REASONS", "OUTCOMES"],
                rows: rows.map {
                    [
                        $0.evaluatedAt, $0.decisionId, $0.team, $0.event, $0.decision + ($0.degraded ? " (degraded)" : ""),
                        $0.reasons.joined(separator: " "), $0.outcomeWords.joined(separator: " "),
                    ]
                }
            ).print()
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show a decision with its signals, rule by rule.")

        @Argument(help: "Its id, as in rd_….")
        var id: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let row = Row(try installation.withStore { try DecisionCommand.find(id, $0) })
            if output.json { return try printJSON(row) }
            func words(_ list: [String]) -> String { list.isEmpty ? "-" : list.joined(separator: " ") }
            var lines = [
                ("decision", row.decisionId), ("time", row.evaluatedAt), ("valid until", row.expiresAt), ("team", row.team),
                ("app", row.clientId),
                ("event", row.event + (row.event == row.claimedEvent ? "" : " (called \(row.claimedEvent))")),
                ("grant", row.grant.map { "\($0)" } ?? "-"), ("answer", row.decision), ("challenges", words(row.challenges)),
                ("reasons", words(row.reasons)), ("told the team", words(row.wireReasons)), ("asked by", words(row.asked)),
                ("skipped by", words(row.skips)), ("waived", words(row.waived)), ("missing", words(row.missing)),
                ("errors", words(row.errors)), ("shadow", words(row.shadow)),
            ]
            if let guarantee = row.overriddenBy { lines.append(("overridden by", guarantee)) }
            if let result = row.upgradeResult { lines.append(("upgrade", result)) }
            lines += [
                ("first status", row.realUserStatus.map { "\($0)" } ?? "-"), ("credential", row.credentialState),
                ("degraded", row.degraded ? "yes" : "no"), ("policy", "\(row.policy) \(row.policyVersion)"),
                ("policy hash", row.policyHash), ("outcomes", words(row.outcomeWords)), ("label", row.label ?? "-"),
            ]
            for (name, value) in DecisionCommand.signals(row.signals) { lines.append((name, value)) }
            Properties(lines: lines).print()
        }
    }

    struct ReplayCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "replay", abstract: "Repeat a decision under the policy of that time, and compare.",
            discussion: """
                Prints "identical", or what differs, with exit status 1. Values of context are stored as hashes: rules \
                that read them count as they were logged.
                """)

        @Argument(help: "Its id, as in rd_….")
        var id: String
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        private struct Result: Encodable {
            let decisionId: String
            let identical: Bool
            let takenAsLogged: [String]
            let differences: [Difference]
        }

        private struct Difference: Encodable {
            let name: String
            let logged: [String]
            let replayed: [String]
        }

        func run() throws {
            let (replay, hash) = try installation.withStore { store in
                let record = try DecisionCommand.find(id, store).record
                let policy = try LoadedPolicy(try store.policies.policy(hash: record.policyHash))
                return (try Replay(record, policy: policy.policy), record.policyHash)
            }
            if output.json {
                try printJSON(
                    Result(
                        decisionId: id, identical: replay.isIdentical, takenAsLogged: replay.takenAsLogged,
                        differences: replay.differences.map {
                            Difference(name: $0.name, logged: $0.logged, replayed: $0.replayed)
                        }))
            } else {
                if replay.isIdentical { print("identical under \(hash)") }
                for difference in replay.differences {
                    func words(_ list: [String]) -> String { list.isEmpty ? "(none)" : list.joined(separator: " ") }
                    print("\(difference.name): \(words(difference.logged)) in the log, \(words(difference.replayed)) now")
                }
                if !replay.takenAsLogged.isEmpty {
                    print("taken as logged, since they read context: \(replay.takenAsLogged.joined(separator: " "))")
                }
            }
            if !replay.isIdentical { throw ExitCode.failure }
        }
    }

    /// The decision, or one line of error.
    static func find(_ id: String, _ store: Store) throws -> LoggedDecision {
        guard let found = try store.decisions.decision(id) else {
            throw StoreRefusal(.notFound, "no decision has the id \(id.prefix(64)): see postern decision list")
        }
        return found
    }

    /// The signals of the log, one a line, in the order in which they were resolved.
    static func signals(_ json: String) -> [(String, String)] {
        guard let object = try? StrictJSON.parseObject(Array(json.utf8), limit: 1 << 20) else { return [("signals", json)] }
        return object.members.filter { $0.name != "event" }.map { member in
            switch member.value {
            case .bool(let flag): (member.name, flag ? "true" : "false")
            case .number(let number): (member.name, number.text)
            case .string(let text): (member.name, text)
            default: (member.name, "-")
            }
        }
    }
}

/// Decisions as comma-separated values (RFC 4180).
enum CSVLines {
    static func print(_ rows: [DecisionCommand.Row]) {
        let header = [
            "decision_id", "evaluated_at", "team", "client_id", "event", "decision", "challenges", "reasons", "asked", "skips",
            "waived", "missing", "errors", "degraded", "policy_hash", "outcomes", "label", "signals",
        ]
        Swift.print(header.joined(separator: ","))
        for row in rows {
            let fields = [
                row.decisionId, row.evaluatedAt, row.team, row.clientId, row.event, row.decision,
                row.challenges.joined(separator: " "), row.reasons.joined(separator: " "), row.asked.joined(separator: " "),
                row.skips.joined(separator: " "), row.waived.joined(separator: " "), row.missing.joined(separator: " "),
                row.errors.joined(separator: " "), row.degraded ? "true" : "false", row.policyHash,
                row.outcomeWords.joined(separator: " "), row.label ?? "", row.signals,
            ]
            Swift.print(fields.map(quoted).joined(separator: ","))
        }
    }

    private static func quoted(_ field: String) -> String {
        // A field that a spreadsheet would take for a formula is text: identifiers of teams may begin so.
        let text = field.first.map { "=+-@".contains($0) } == true ? "'" + field : field
        guard text.contains(where: { $0 == "," || $0 == "\"" || $0.isNewline }) else { return text }
        return "\"" + text.replacing("\"", with: "\"\"") + "\""
    }
}
