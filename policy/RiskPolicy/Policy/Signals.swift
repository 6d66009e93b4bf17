// Signals as a policy declares them, and the signals that are missing while the store is
// unavailable.

import CEL

/// A declared signal.
package struct SignalDeclaration: Sendable, Equatable {
    /// Dotted name.
    package let name: String
    /// Without the `?`.
    package let type: CELType
    /// Declared with `?`.
    package let mayBeMissing: Bool
    /// For numbers: inclusive bounds; a value outside is refused as input.
    package var minimum: Double?
    /// Inclusive.
    package var maximum: Double?
    /// For strings: maximum number of UTF-8 bytes.
    package var maximumLength = PolicyFileLimits.maximumStringBytes

    /// The source of its value.
    package enum Source: Sendable, Equatable {
        case postern(StandardSignal)
        /// The backend that sends the request.
        case context
        /// A counter of the policy, and whether it counts by the inbox or its domain, which no team
        /// knows.
        case counter(countsInboxes: Bool)
    }

    package let source: Source

    package init(name: String, type: CELType, mayBeMissing: Bool, source: Source) {
        self.name = name
        self.type = type
        self.mayBeMissing = mayBeMissing
        self.source = source
    }

    /// Whether it comes from the store, and so is missing while the store is unavailable.
    package var isHistory: Bool {
        switch source {
        case .postern(let signal): signal.facts.origin != .question
        case .context: false
        case .counter: true
        }
    }

    /// Whether it reveals facts of other teams or of the inbox: teams get only a coarse code
    /// for reasons that read it.
    package var spansTeams: Bool {
        switch source {
        case .postern(let signal): signal.facts.origin == .inboxHistory
        case .context: false
        case .counter(let countsInboxes): countsInboxes
        }
    }
}

/// The signals that an operator defines.
enum ContextSignals {
    /// The beginning of their names.
    static let prefix = "context."

    static let types: [CELType] = [
        .bool, .int, .uint, .double, .string, .timestamp, .duration, .list(.string), .list(.int),
    ]
}
