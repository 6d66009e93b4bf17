// Reports context that was left out or unusable in the log and in the metrics, without a line for
// each request.

import CEL
import Logging
import RiskPolicy
import Synchronization

/// The last report of each app and context.
final class ContextNotices: Sendable {
    private struct Key: Hashable {
        let app: ExactString
        let name: ExactString
        let fault: SignalFault?
    }

    /// Seconds after which the same context of an app is reported again.
    private static let interval: Int64 = 3_600
    /// Beyond this number, all are forgotten, because backends choose the names.
    private static let maximum = 1_000

    private let last = Mutex<[Key: Int64]>([:])

    /// Whether the log should report it now.
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
    /// Reports the context of a request that was not used.
    func noteContext(_ record: DecisionRecord) {
        let troubles = record.contextTroubles
        func tell(
            _ kind: ContextTrouble, _ name: String, _ fault: SignalFault?, _ message: Logger.Message
        ) {
            guard notices.isDue(name, fault, app: record.clientID, now: record.evaluatedAt) else {
                return
            }
            logger.warning(
                message,
                metadata: [
                    "trouble": "\(kind.rawValue)", "context": "\(name)",
                    "app": "\(record.clientID)",
                    "policy": "\(record.policyName)", "decision": "\(record.id)",
                ])
        }
        for name in troubles.ignored {
            tell(.ignored, name, nil, "an app sends context that its policy does not declare")
        }
        for (name, fault) in troubles.unusable {
            tell(
                .invalid, name, fault, "context \(fault.text): every rule that reads it is an error"
            )
        }
    }
}

/// Why context was not used, by the names in answers, log and metrics.
package enum ContextTrouble: String, Sendable, CaseIterable {
    case ignored = "ignored_context"
    case invalid = "invalid_context"
}

/// Names of context as labels of a metric: a limited number, for any names that backends send.
final class ContextLabels: Sendable {
    private static let maximum = 50
    private let known = Mutex<[ExactString]>([])

    /// The name, or one common label for all later names.
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
