// Counters of a policy: requests with the same value of a key within a window. The count is the
// signal `velocity.NAME`.

import CEL

/// One of a policy's `counters:`.
package struct PolicyCounter: Sendable, Hashable {
    /// The value of a request that a counter counts by.
    package enum Key: Sendable, Hashable {
        /// The request's name for the account.
        case account
        /// The account's inbox, as known to this installation.
        case inbox
        /// The domain of that inbox, unless many people share it at a provider: only the classes
        /// own and disposable.
        case inboxDomain
        /// The device that attested the app.
        case device
        /// A value from the backend, by the name after `context.`.
        case context(String)

        /// As written in a policy.
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
    /// A window is divided into this many slices: counted requests may be older than the window by
    /// one slice, 3.1 % of it.
    private static let slices: Int64 = 32

    package let name: String
    package let key: Key
    /// Seconds.
    package let window: Int64
    /// The events that count; not empty. The count can be read at every event.
    package let events: Set<PolicyEvent>
    /// The value that counts only once; nil if every request counts.
    package let distinct: Key?

    package init(name: String, key: Key, window: Int64, events: Set<PolicyEvent>, distinct: Key?) {
        self.name = name
        self.key = key
        self.window = window
        self.events = events
        self.distinct = distinct
    }

    /// Whether it reads the domain of the inbox.
    package var readsDomain: Bool { key == .inboxDomain || distinct == .inboxDomain }

    /// Whether it reads the inbox or its domain.
    package var readsInbox: Bool { readsDomain || key == .inbox || distinct == .inbox }

    /// The signal that holds the count.
    package var signal: String { "velocity." + name }
    /// Length of a slice in seconds.
    package var slice: Int64 { max(1, window / Self.slices) }

    /// Identifies the counted values: counts of another definition do not apply. Policies of a team
    /// share equal counters.
    package var definition: String {
        let counted = PolicyEvent.allCases.filter(events.contains).map(\.rawValue).joined(
            separator: ",")
        return "\(name) \(key.text) \(window) \(counted) \(distinct?.text ?? "")"
    }
}
