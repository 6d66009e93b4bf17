// Failures that a developer orders: the kind, the place, and the number of times.

import Support
import Synchronization

/// A part of the service that can fail.
package enum SandboxPart: String, Sendable, Hashable, CaseIterable {
    case decisions, token, keys, discovery, authorize, userinfo, page, streams, api, mail,
        deliveries

    /// The beginnings of its paths; empty for parts that serve no requests.
    package var paths: [String] {
        switch self {
        case .decisions: ["/v1/decisions"]
        case .token: ["/auth/token", "/auth/revoke", "/auth/introspect"]
        case .keys: ["/auth/keys"]
        case .discovery: ["/.well-known/"]
        case .authorize: ["/auth/authorize", "/auth/continue"]
        case .userinfo: ["/auth/userinfo"]
        case .page: ["/me", "/sign-in"]
        case .streams: ["/ssf/"]
        case .api: ["/v1/"]
        case .mail, .deliveries: []
        }
    }
}

/// The kind of failure.
package enum SandboxFailure: String, Sendable, Hashable, CaseIterable {
    case status500 = "status-500"
    case status503 = "status-503"
    /// Answers late.
    case slow
    /// Does nothing, gives no answer for some time, and then answers 504.
    case timeout
    /// Does the work, gives no answer for some time, and then answers 504.
    case lostAnswer = "lost-answer"

    /// Whether it can happen in this part.
    package func suits(_ part: SandboxPart) -> Bool {
        switch part {
        // SMTP answers 451, so only one word is allowed.
        case .mail: self == .status503
        case .deliveries: self != .lostAnswer
        default: true
        }
    }

    /// The status of the answer; nil for the service's own status.
    var status: Int? {
        switch self {
        case .status500: 500
        case .status503: 503
        case .slow: nil
        case .timeout, .lostAnswer: 504
        }
    }
}

/// Ordered failures that have not happened yet, the oldest first.
package final class SandboxFailures: Sendable {
    /// The most orders waiting at one time.
    package static let maximum = 100
    /// The most times that one order can happen.
    package static let maximumTimes = 1_000
    /// The longest wait, in seconds.
    package static let maximumSeconds = 300

    package struct Order: Sendable {
        package let part: SandboxPart
        package let failure: SandboxFailure
        package fileprivate(set) var times: Int
        /// For a wait.
        package let seconds: Int
    }

    private let waiting = Mutex<[Order]>([])
    package var orders: [Order] { waiting.withLock { $0 } }

    package init() {}

    /// False if too many orders wait.
    package func add(
        _ failure: SandboxFailure, at part: SandboxPart, times: Int, seconds: Int
    ) -> Bool {
        waiting.withLock { orders in
            guard orders.count < Self.maximum else { return false }
            orders.append(Order(part: part, failure: failure, times: times, seconds: seconds))
            return true
        }
    }

    /// The first order for a part; counts as one occurrence.
    package func take(_ part: SandboxPart) -> Order? { take { $0 == part } }

    /// The first order for the part of a path; counts as one occurrence.
    package func take(path: String) -> Order? {
        take { $0.paths.contains { path.utf8.starts(with: $0.utf8) } }
    }

    private func take(_ fits: (SandboxPart) -> Bool) -> Order? {
        waiting.withLock { orders in
            guard let index = orders.firstIndex(where: { fits($0.part) }) else { return nil }
            orders[index].times -= 1
            return orders[index].times == 0 ? orders.remove(at: index) : orders[index]
        }
    }

    package func removeAll() { waiting.withLock { $0 = [] } }
}
