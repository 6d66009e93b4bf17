// Repeats a logged decision from its signals and the policy of that time. Pure.

import RiskPolicy

/// The result of a replay.
package struct Replay: Sendable {
    /// One value that differs in the replay.
    package struct Difference: Sendable, Hashable {
        /// As in `postern decision show`.
        package let name: String
        package let logged: [String]
        package let replayed: [String]
    }

    package let differences: [Difference]
    /// Rules that read live lists, or context that the log has only as hashes. The replay uses
    /// their logged results.
    package let takenAsLogged: [String]
    /// Whether decision, challenges and reasons were replayed; false if they depend on context that
    /// is no longer available.
    package let isWhole: Bool

    package var isIdentical: Bool { differences.isEmpty }

    /// Repeats the decision. Throws `ReplayError` if the logged signals cannot be read.
    package init(_ record: DecisionRecord, policy: Policy) throws {
        guard let logged = LoggedSignals(record, for: policy) else {
            throw ReplayError(reason: "the signals in the log cannot be read")
        }
        let result = policy.decide(logged.input)
        let hidden = logged.present.contains { $0.hasPrefix("context.") }
        // The log does not contain the entries of live lists.
        let readsContext: (String) -> Bool = {
            hidden && $0.contains("context.") || $0.contains("lists.")
        }
        let taken = Set(policy.rules.filter { readsContext($0.condition.text) }.map(\.id))
        let others =
            policy.guarantees.contains { readsContext($0.condition.text) }
            || policy.challenges.contains { readsContext($0.unavailableWhen?.text ?? "") }
        let isWhole = taken.isEmpty && !others
        var differences: [Difference] = []
        func compare(_ name: String, _ logged: [String], _ replayed: [String]) {
            if logged != replayed {
                differences.append(Difference(name: name, logged: logged, replayed: replayed))
            }
        }
        func ids(_ set: RuleSet) -> [String] { set.map { policy.rules[$0].id } }
        func compareRules(_ name: String, _ logged: [String], _ replayed: [String]) {
            // Whether a rule is waived or requires a check depends on other rules too.
            guard isWhole || name == "missing" || name == "errors" else { return }
            compare(
                name, logged.filter { !taken.contains($0) }, replayed.filter { !taken.contains($0) }
            )
        }
        let answer = policy.answer(result)
        if isWhole {
            var replayed = DecisionBuilder.Outcome(policy: policy, result: result)
            if record.upgradeResult == UpgradeResult.failure { replayed.fail(policy, result.event) }
            compare("decision", [record.decision], [replayed.decision.rawValue])
            compare("challenges", record.challenges, replayed.challenges)
            compare("reasons", record.reasons, replayed.reasons)
            compare("wire_reasons", record.wireReasons, replayed.wireReasons)
            compare(
                "overridden_by", record.overriddenBy.map { [$0] } ?? [],
                answer.overriddenBy.map { [$0] } ?? [])
        }
        compareRules("asked", record.asked, ids(result.asked))
        compareRules("skips", record.skips, ids(result.skips))
        compareRules("waived", record.waived, ids(result.waived))
        compareRules("missing", record.missing, ids(result.missing))
        compareRules("errors", record.errors, answer.errors)
        compareRules("snoozed", record.snoozed, ids(result.snoozed))
        compareRules("shadow", record.shadow, ids(result.shadow))
        self.differences = differences
        self.isWhole = isWhole
        takenAsLogged = policy.rules.map(\.id).filter(taken.contains)
    }
}

/// A row of the log cannot be replayed.
package struct ReplayError: Error, Sendable, CustomStringConvertible {
    package let reason: String
    package var description: String { reason }
}
