// Converts the signals of a logged decision to policy input: for the same policy in a replay, for another in a backtest.

import CEL
import JSON
import RiskPolicy

/// Reads the logged signals of a question.
package struct LoggedSignals {
    /// The input for the policy; signals that the log does not hold are missing in it.
    package let input: PolicyInput
    /// Signals that the log holds only as a keyed hash, for example all of an operator's own.
    package let hashed: [String]
    /// Signals that the log holds.
    package let present: Set<String>

    /// Nil where the row cannot be read or has an unknown event.
    package init?(_ record: DecisionRecord, for policy: Policy) {
        guard let event = PolicyEvent(rawValue: record.event), let now = CELTimestamp(seconds: record.evaluatedAt),
            let object = try? StrictJSON.parseObject(Array(record.signals.utf8), limit: 1 << 20)
        else { return nil }
        var input = policy.makeInput(event: event, now: now)
        input.isHistoryUnavailable = record.isDegraded
        input.snoozed = policy.ruleSet(ids: record.snoozed)
        var hashed: [String] = []
        var present: Set<String> = []
        for member in object.members where member.name != "event" {
            present.insert(member.name)
            guard let slot = policy.slot(named: member.name) else { continue }
            if member.name.hasPrefix("context."), member.value.string?.hasPrefix("#") == true {
                hashed.append(member.name)
                continue
            }
            // The logged type differs from the one declared now: missing.
            if let value = Self.value(member.value, policy.signals[slot].type) {
                try? policy.set(slot: slot, to: value, in: &input)
            }
        }
        self.input = input
        self.hashed = hashed
        self.present = present
    }

    static func value(_ json: JSONValue, _ type: CELType) -> CELValue? {
        switch json {
        case .bool(let bool): .bool(bool)
        case .string(let text): .string(text)
        case .number(let number):
            if type == .double { Double(number.text).map(CELValue.double) } else { number.integer.map(CELValue.int) }
        case .array(let values) where type == .list(.string):
            .list(values.compactMap(\.string).map(CELValue.string))
        default: nil
        }
    }
}
