// Says in the log and in the metrics what context was left out or could not be used, without a line for each question.

import CEL
import Logging
import RiskPolicy
import Synchronization

/// Which app was named for which context, and when.
final class ContextNotices: Sendable {
    private struct Key: Hashable {
        let app: ExactString
        let name: ExactString
        let fault: SignalFault?
    }

    /// Seconds after which the same context of an app is named again.
    private static let interval: Int64 = 3_600
    /// Beyond this, all are forgotten: names come from outside.
    private static let maximum = 1_000

    private let last = Mutex<[Key: Int64]>([:])

    /// Whether the log should name it now.
    func isDue(_ name: String, _ fault: SignalFault?, app: String, now: Int64) -> Bool {
        let key = Key(app: ExactString(app), name: ExactString(name), fault: fault)
        return last.withLock { last in
            if let before = last[key], now - before < Self.interval, now >= before { return false }
            if last.count >= Self.maximum { last = [:] }
            last[key] = now
            return true
        }
    }
}

extension DecisionService {
    /// Names what a question's context was not used for.
    func noteContext(_ record: DecisionRecord) {
        let troubles = record.contextTroubles
        func tell(_ kind: ContextTrouble, _ name: String, _ fault: SignalFault?, _ message: Logger.Message) {
            guard notices.isDue(name, fault, app: record.clientID, now: record.evaluatedAt) else { return }
            logger.warning(
                message,
                metadata: [
                    "trouble": "\(kind.rawValue)", "context": "\(name)", "app": "\(record.clientID)",
                    "policy": "\(record.policyName)", "decision": "\(record.id)",
                ])
        }
        for name in troubles.ignored { tell(.ignored, name, nil, "an app sends context that its policy does not declare") }
        for (name, fault) in troubles.unusable {
            tell(.invalid, name, fault, "context \(fault.text): every rule that reads it is an error")
        }
    }
}

/// What became of context that was not used, as answers, log and metrics name it.
package enum ContextTrouble: String, Sendable, CaseIterable {
    case ignored = "ignored_context"
    case invalid = "invalid_context"
}

/// Names of context as labels of a metric: a few, whatever backends send.
final class ContextLabels: Sendable {
    private static let maximum = 50
    private let known = Mutex<[ExactString]>([])

    /// The name, or one for all that came later.
    func label(_ name: String) -> String {
        let exact = ExactString(name)
        return known.withLock { known in
            if known.contains(exact) { return name }
            guard known.count < Self.maximum else { return QuestionContext.otherName }
            known.append(exact)
            return name
        }
    }
}
