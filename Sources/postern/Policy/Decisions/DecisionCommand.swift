// postern decision: the log of decisions.

import Accounts
import ArgumentParser
import CEL
import Database
import Decisions
import Foundation
import RiskPolicy
import Support

struct DecisionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decision", abstract: "List, show, label and replay logged decisions.",
        subcommands: [List.self, Show.self, Label.self, ReplayCommand.self])

    /// A decision as JSON.
    static func members(_ logged: LoggedDecision) -> Members {
        let record = logged.record
        let outcomes = logged.checks.map { check -> Members in
            [
                "challenge": check.challenge, "initiated_at": timestamp(check.initiatedAt),
                "passed_at": check.passedAt.map(timestamp),
                "failed_at": check.failure(now: PosternClock.now()).map(timestamp),
            ]
        }
        return [
            "decision_id": record.id, "evaluated_at": timestamp(record.evaluatedAt),
            "expires_at": timestamp(record.expiresAt),
            "team": logged.teamID, "client_id": record.clientID,
            "claimed_event": record.claimedEvent, "event": record.event,
            "grant": record.grantNumber, "decision": record.decision,
            "challenges": record.challenges, "reasons": record.reasons,
            "wire_reasons": record.wireReasons, "asked": record.asked, "skips": record.skips,
            "waived": record.waived,
            "missing": record.missing, "errors": record.errors, "error_texts": record.errorTexts,
            "shadow": record.shadow,
            "snoozed": record.snoozed,
            "for_review": record.isForReview, "overridden_by": record.overriddenBy,
            "real_user_status": record.realUserStatus, "credential_state": record.credentialState,
            "upgrade_result": record.upgradeResult, "degraded": record.isDegraded,
            "policy": record.policyName,
            "policy_version": record.policyVersion, "policy_hash": record.policyHash,
            "signals": try? JSONDecoder().decode(BatchID.self, from: Data(record.signals.utf8)),
            "label": logged.label?.rawValue, "outcomes": outcomes,
        ]
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List decisions, the newest first.",
            discussion: "The reasons are the detailed ones for the operator; teams get less detail."
        )

        @Option(help: "Only decisions of this team.")
        var team: String?
        @Option(
            help: ArgumentHelp(
                "Only decisions since then: 12h, 30d, a date, or a time in ISO 8601.",
                valueName: "time"))
        var since: String?
        @Option(
            help:
                "Only decisions in which this rule asked, skipped, was waived, missing, in error, in shadow or snoozed."
        )
        var rule: String?
        @Option(help: "Only decisions with this reason code.")
        var reason: String?
        @Option(
            help: ArgumentHelp(
                "Only decisions about this user; postern user find says who has an inbox.",
                valueName: "user"))
        var user: String?
        @Option(
            help: ArgumentHelp("Only decisions about the account with this sub.", valueName: "sub"))
        var account: String?
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
            var filter = DecisionFilter(team: team, rule: rule, reason: reason, user: user)
            filter.since = try since.map { try ExpiryText.start($0, now: PosternClock.now()) }
            let (found, isMore) = try installation.withInstallation { installation in
                let (store, listings) = (installation.store, installation.listings)
                filter.account = try account.map { try store.accounts.account(sub: $0).number }
                let found = try Limit.read(limit) {
                    try listings.decisions.newest(filter, limit: $0)
                }
                if found.rows.isEmpty { try DecisionCommand.checkNames(rule, reason, store) }
                return found
            }
            defer { if isMore { Limit.remark(limit, "decision") } }
            if csv { return CSVLines.print(found) }
            let header = ["TIME", "DECISION", "TEAM", "EVENT", "ANSWER", "REASONS", "OUTCOMES"]
            try output.print(found, header, json: members) { logged in
                let record = logged.record
                return [
                    timestamp(record.evaluatedAt), record.id, logged.teamID, record.event,
                    record.decision + (record.isDegraded ? " (degraded)" : ""),
                    record.reasons.joined(separator: " "),
                    logged.outcomeWords.joined(separator: " "),
                ]
            }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a decision with its signals, rule by rule.",
            discussion: """
                Each rule of the policy of that time is shown with its condition in words, the parts of it and the values that \
                they compared. The log keeps only hashes of context, so its values are not shown.
                """)

        @Argument(help: "The decision's id, as in rd_….")
        var id: String
        @Flag(help: "Show the expression behind each sentence.")
        var source = false
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let (logged, account, policy) = try installation.withStore { store in
                let logged = try DecisionCommand.find(id, store)
                let account = try logged.record.grantNumber.flatMap {
                    try store.accounts.account(grant: $0)
                }
                let policy = try? LoadedPolicy(
                    try store.policies.policy(hash: logged.record.policyHash)
                ).policy
                return (logged, account, policy)
            }
            var explanation = policy.flatMap { PolicyExplanation(logged.record, policy: $0) }
            explanation?.showsSource = source
            if output.json {
                return try printJSON(
                    ExtendedView(
                        members(logged),
                        [
                            "user": account?.userID, "sub": account?.sub,
                            "rules": explanation?.explained,
                        ]))
            }
            let record = logged.record
            func words(_ list: [String]) -> String {
                list.isEmpty ? "-" : list.joined(separator: " ")
            }
            var lines = [
                ("decision", record.id), ("time", timestamp(record.evaluatedAt)),
                ("valid until", timestamp(record.expiresAt)),
                ("team", logged.teamID),
                ("app", record.clientID),
                (
                    "event",
                    record.event
                        + (record.event == record.claimedEvent
                            ? "" : " (called \(record.claimedEvent))")
                ),
                ("user", account?.userID ?? "-"), ("account", account?.sub ?? "-"),
                ("answer", record.decision),
                ("challenges", words(record.challenges)),
                ("reasons", words(record.reasons)), ("sent to the team", words(record.wireReasons)),
                ("asked by", words(record.asked)),
                ("skipped by", words(record.skips)), ("waived", words(record.waived)),
                ("missing", words(record.missing)),
                ("errors", words(record.errors)),
            ]
            lines += record.errorTexts.map { ("", $0) }
            lines += [
                ("shadow", words(record.shadow)),
                ("snoozed", words(record.snoozed)),
                ("for review", record.isForReview ? "yes" : "no"),
            ]
            if let guarantee = record.overriddenBy {
                lines.append(
                    (
                        "overridden by",
                        policy.map { RuleWords($0).guarantee(guarantee) } ?? guarantee
                    ))
            }
            if let result = record.upgradeResult { lines.append(("upgrade", result)) }
            lines += [
                ("first status", record.realUserStatus.map { "\($0)" } ?? "-"),
                ("credential", record.credentialState),
                ("degraded", record.isDegraded ? "yes" : "no"),
                ("policy", "\(record.policyName) \(record.policyVersion)"),
                ("policy hash", record.policyHash), ("outcomes", words(logged.outcomeWords)),
                ("label", logged.label?.rawValue ?? "-"),
            ]
            for (name, value) in DecisionCommand.signals(record.signals) {
                lines.append((name, value))
            }
            Properties(lines: lines).print()
            for line in explanation?.ruleLines ?? [
                "", "The policy of that time is no longer kept.",
            ] { print(shown(line)) }
        }
    }

    struct ReplayCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "replay",
            abstract: "Repeat a decision with the policy of that time, and compare the results.",
            discussion: """
                Prints "identical"; or the differences, with exit status 1. Context values are stored only as hashes: the \
                results of rules that read them are taken from the log.
                """)

        @Argument(help: "The decision's id, as in rd_….")
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
                        decisionId: id, identical: replay.isIdentical,
                        takenAsLogged: replay.takenAsLogged,
                        differences: replay.differences.map {
                            Difference(name: $0.name, logged: $0.logged, replayed: $0.replayed)
                        }))
            } else {
                if replay.isIdentical { print("identical under \(hash)") }
                for difference in replay.differences {
                    func words(_ list: [String]) -> String {
                        list.isEmpty ? "(none)" : list.joined(separator: " ")
                    }
                    print(
                        "\(difference.name): \(words(difference.logged)) in the log, \(words(difference.replayed)) now"
                    )
                }
                if !replay.takenAsLogged.isEmpty {
                    print(
                        "taken as logged, since they read context: \(replay.takenAsLogged.joined(separator: " "))"
                    )
                }
            }
            if !replay.isIdentical { throw ExitCode.failure }
        }
    }

    /// Throws if no policy in force has the rule or the reason. Otherwise a misspelt name would
    /// look like a rule that never matched.
    fileprivate static func checkNames(_ rule: String?, _ reason: String?, _ store: Store) throws {
        guard rule != nil || reason != nil else { return }
        let policies = try store.policies.arrangement().policies.map {
            try LoadedPolicy(try store.policies.policy(hash: $0.hash)).policy
        }
        func check(_ name: String?, _ kind: String, _ known: (Policy) -> [String]) throws {
            guard let name else { return }
            let names = policies.flatMap(known)
            guard !names.contains(where: { $0.utf8.elementsEqual(name.utf8) }) else { return }
            throw CommandError(
                status: EX_NOINPUT,
                message:
                    "no decision was found, and no policy in force has the \(kind) '\(name)'\(suggestion(for: name, among: names))"
            )
        }
        try check(rule, "rule") { $0.rules.map(\.id) }
        try check(reason, "reason") { $0.reasonCodes + [BuiltInReason.historyUnavailable] }
    }

    /// The decision; if it does not exist, an error of one line.
    static func find(_ id: String, _ store: Store) throws -> LoggedDecision {
        guard let found = try store.decisions.decision(id) else {
            throw StoreFailure.refused(
                .notFound, "no decision has the id \(id.prefix(64)): see postern decision list")
        }
        return found
    }

    /// The logged signals, one per line, in the order in which they were resolved.
    static func signals(_ json: String) -> [(String, String)] {
        guard let object = try? StrictJSON.parseObject(Array(json.utf8), limit: 1 << 20) else {
            return [("signals", json)]
        }
        return object.members.filter { $0.name != "event" }.map { member in
            switch member.value {
            case .bool(let flag): (member.name, flag ? "true" : "false")
            case .number(let number): (member.name, number.text)
            case .string(let text):
                (member.name, DecisionRecord.contextWords(member.name, text) ?? text)
            default: (member.name, "-")
            }
        }
    }
}

extension LoggedDecision {
    /// The outcomes of the challenges, one word for each: `email_code:passed`.
    var outcomeWords: [String] {
        checks.map {
            let isFailed = $0.failure(now: PosternClock.now()) != nil
            return
                "\($0.challenge):\($0.passedAt != nil ? "passed" : isFailed ? "failed" : "initiated")"
        }
    }
}

/// Decisions as comma-separated values (RFC 4180).
enum CSVLines {
    static func print(_ rows: [LoggedDecision]) {
        let header = [
            "decision_id", "evaluated_at", "team", "client_id", "event", "decision", "challenges",
            "reasons", "asked", "skips",
            "waived", "missing", "errors", "degraded", "policy_hash", "outcomes", "label",
            "signals",
        ]
        Swift.print(header.joined(separator: ","))
        for logged in rows {
            let record = logged.record
            let fields = [
                record.id, timestamp(record.evaluatedAt), logged.teamID, record.clientID,
                record.event, record.decision,
                record.challenges.joined(separator: " "), record.reasons.joined(separator: " "),
                record.asked.joined(separator: " "),
                record.skips.joined(separator: " "), record.waived.joined(separator: " "),
                record.missing.joined(separator: " "),
                record.errors.joined(separator: " "), record.isDegraded ? "true" : "false",
                record.policyHash,
                logged.outcomeWords.joined(separator: " "), logged.label?.rawValue ?? "",
                record.signals,
            ]
            Swift.print(fields.map(quoted).joined(separator: ","))
        }
    }

    private static func quoted(_ field: String) -> String {
        // A spreadsheet would read such a field as a formula. Identifiers of teams may begin with
        // these characters.
        let text = field.first.map { "=+-@".contains($0) } == true ? "'" + field : field
        guard text.contains(where: { $0 == "," || $0 == "\"" || $0.isNewline }) else { return text }
        return "\"" + text.replacing("\"", with: "\"\"") + "\""
    }
}
