// A logged decision made again, from its signals and the policy of that time. Pure.

import Identity
import PosternStore
import RiskPolicy

/// What a replay came to.
package struct Replay: Sendable {
    /// One thing that came out differently.
    package struct Difference: Sendable, Hashable {
        /// As in `postern decision show`.
        package let name: String
        package let logged: [String]
        package let replayed: [String]
    }

    package let differences: [Difference]
    /// Rules that read context, which the log keeps as hashes only: taken as logged.
    package let takenAsLogged: [String]
    /// Whether decision, challenges and reasons were made again; false where they hang on context that nobody has any more.
    package let isWhole: Bool

    package var isIdentical: Bool { differences.isEmpty }

    /// Makes the decision again. Throws `ReplayError` where the log's signals cannot be read.
    package init(_ record: DecisionRecord, policy: Policy) throws {
        let input = try Self.input(record, policy)
        let result = policy.decide(input)
        let hidden = record.signals.contains("\"context.")
        let readsContext: (String) -> Bool = { hidden && $0.contains("context.") }
        let taken = Set(policy.rules.filter { readsContext($0.condition.text) }.map(\.id))
        let others =
            policy.guarantees.contains { readsContext($0.condition.text) }
            || policy.challenges.contains { readsContext($0.unavailableWhen?.text ?? "") }
        let isWhole = taken.isEmpty && !others
        var differences: [Difference] = []
        func compare(_ name: String, _ logged: [String], _ replayed: [String]) {
            if logged != replayed { differences.append(Difference(name: name, logged: logged, replayed: replayed)) }
        }
        func ids(_ set: RuleSet) -> [String] { set.map { policy.rules[$0].id } }
        func compareRules(_ name: String, _ logged: [String], _ replayed: [String]) {
            // What is waived or asked hangs on other rules too.
            guard isWhole || name == "missing" || name == "errors" else { return }
            compare(name, logged.filter { !taken.contains($0) }, replayed.filter { !taken.contains($0) })
        }
        let answer = policy.answer(result)
        if isWhole {
            var replayed = Composer.Outcome(policy: policy, result: result)
            if record.upgradeResult == UpgradeResult.failure { replayed.fail(policy, result.event) }
            compare("decision", [record.decision], [replayed.decision.rawValue])
            compare("challenges", record.challenges, replayed.challenges)
            compare("reasons", record.reasons, replayed.reasons)
            compare("wire_reasons", record.wireReasons, replayed.wireReasons)
            compare("overridden_by", record.overriddenBy.map { [$0] } ?? [], answer.overriddenBy.map { [$0] } ?? [])
        }
        compareRules("asked", record.asked, ids(result.asked))
        compareRules("skips", record.skips, ids(result.skips))
        compareRules("waived", record.waived, ids(result.waived))
        compareRules("missing", record.missing, ids(result.missing))
        compareRules("errors", record.errors, answer.errors)
        compareRules("shadow", record.shadow, ids(result.shadow))
        self.differences = differences
        self.isWhole = isWhole
        takenAsLogged = policy.rules.map(\.id).filter(taken.contains)
    }

    /// The input of a logged decision, for any policy: signals that it does not declare are left out.
    package static func input(_ record: DecisionRecord, _ policy: Policy) throws -> PolicyInput {
        guard let event = PolicyEvent(rawValue: record.event), let now = CELTimestamp(seconds: record.evaluatedAt),
            let signals = try? StrictJSON.parseObject(Array(record.signals.utf8), limit: 1 << 20)
        else { throw ReplayError(reason: "the signals in the log cannot be read") }
        var input = policy.makeInput(event: event, now: now)
        for member in signals.members where member.name != "event" && !member.name.hasPrefix("context.") {
            let value: CELValue
            switch member.value {
            case .bool(let bool): value = .bool(bool)
            case .string(let text): value = .string(text)
            case .number(let number):
                value = number.integer.map(CELValue.int) ?? Double(number.text).map(CELValue.double) ?? .missing
            default: value = .missing
            }
            // Another policy may declare fewer, or otherwise: missing to it.
            try? policy.set(member.name, to: value, in: &input)
        }
        input.isHistoryUnavailable = record.isDegraded
        return input
    }
}

/// A row of the log cannot be replayed.
package struct ReplayError: Error, Sendable, CustomStringConvertible {
    package let reason: String
    package var description: String { reason }
}
