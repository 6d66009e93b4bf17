// What a policy has counted: questions with one value of a key within a window. The count is the signal `velocity.NAME`.

import CEL

/// One of a policy's `counters:`.
package struct PolicyCounter: Sendable, Hashable {
    /// What of a question is looked at.
    package enum Key: Sendable, Hashable {
        /// The name by which the question names the account.
        case account
        /// The inbox of the account, as one of this installation.
        case inbox
        /// The domain of that inbox, where it is one that no provider shares among many: own or disposable.
        case inboxDomain
        /// The device that attested the app.
        case device
        /// What the backend supplied, by the name behind `context.`.
        case context(String)

        /// As it is written in a policy.
        package var text: String {
            switch self {
            case .account: "account"
            case .inbox: "inbox"
            case .inboxDomain: "inbox_domain"
            case .device: "device"
            case .context(let name): "context." + name
            }
        }
    }

    /// A minute to thirty days, in seconds.
    package static let windows: ClosedRange<Int64> = 60...2_592_000
    /// A window is kept in this many slices: what is counted may be older than the window by one of them, 3.1 % of it.
    private static let slices: Int64 = 32

    package let name: String
    package let key: Key
    /// Seconds.
    package let window: Int64
    /// The events that count; never empty. What was counted can be read at every event.
    package let events: Set<PolicyEvent>
    /// What counts once, however often it comes; nil where every question counts.
    package let distinct: Key?

    package init(name: String, key: Key, window: Int64, events: Set<PolicyEvent>, distinct: Key?) {
        self.name = name
        self.key = key
        self.window = window
        self.events = events
        self.distinct = distinct
    }

    /// Whether it looks at the domain of the inbox.
    package var readsDomain: Bool { key == .inboxDomain || distinct == .inboxDomain }

    /// Whether it looks at the inbox in any way.
    package var readsInbox: Bool { readsDomain || key == .inbox || distinct == .inbox }

    /// The signal that it is read by.
    package var signal: String { "velocity." + name }
    /// Seconds of a slice.
    package var slice: Int64 { max(1, window / Self.slices) }

    /// What counts mean: those of another definition say nothing about this one. Two policies of a team share what is equal.
    package var definition: String {
        let counted = PolicyEvent.allCases.filter(events.contains).map(\.rawValue).joined(separator: ",")
        return "\(name) \(key.text) \(window) \(counted) \(distinct?.text ?? "")"
    }
}
