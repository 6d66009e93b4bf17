// Converts the signals of a logged decision to policy input: for the same policy in a replay, for
// another in a backtest.

import CEL
import RiskPolicy
import Support

/// Reads the logged signals of a request.
package struct LoggedSignals {
    /// The input for the policy; signals that the log lacks are missing in it.
    package let input: PolicyInput
    /// Signals that the log has only as a keyed hash, for example all of an operator's own, and
    /// signals that were left out.
    package let hashed: [String]
    /// Signals that the log has.
    package let present: Set<String>
    /// Slots of `redefined` for which a value was given, usable or not.
    let leftOut: Set<Int>

    /// Nil if the row cannot be read or has an unknown event.
    /// - Parameter redefined: slots of signals with another meaning at that time; their logged
    ///   values are left out.
    package init?(_ record: DecisionRecord, for policy: Policy, besides redefined: Set<Int> = []) {
        guard let event = PolicyEvent(rawValue: record.event),
            let now = CELTimestamp(seconds: record.evaluatedAt),
            let object = try? StrictJSON.parseObject(Array(record.signals.utf8), limit: 1 << 20)
        else { return nil }
        var input = policy.makeInput(event: event, now: now)
        input.isHistoryUnavailable = record.isDegraded
        input.snoozed = policy.ruleSet(ids: record.snoozed)
        var hashed: [String] = []
        var present: Set<String> = []
        var leftOut: Set<Int> = []
        for member in object.members where member.name != "event" {
            let mark = member.name.utf8.starts(with: "context.".utf8) ? member.value.string : nil
            let isIgnored = mark.map { $0.utf8.elementsEqual(ContextMark.ignored.utf8) } ?? false
            guard let slot = policy.slot(named: member.name) else {
                // The policy of that time left this value out, so it could not affect the decision.
                if !isIgnored { present.insert(member.name) }
                continue
            }
            if redefined.contains(slot) {
                leftOut.insert(slot)
                continue
            }
            if let fault = mark.flatMap(ContextMark.fault) {
                policy.mark(slot: slot, fault, in: &input)
                continue
            }
            present.insert(member.name)
            if isIgnored {
                hashed.append(member.name)
                continue
            }
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
        self.leftOut = leftOut
    }

    static func value(_ json: JSONValue, _ type: CELType) -> CELValue? {
        switch json {
        case .bool(let bool): .bool(bool)
        case .string(let text): .string(text)
        case .number(let number):
            if type == .double {
                Double(number.text).map(CELValue.double)
            } else {
                number.integer.map(CELValue.int)
            }
        case .array(let values) where type == .list(.string):
            .list(values.compactMap(\.string).map(CELValue.string))
        default: nil
        }
    }
}
