// Signals: their names and types, and which of them are missing while the store is down.

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

    /// Whether it comes from the store, and so is missing while that is down. Facts of the token and its status do not.
    package var isHistory: Bool {
        let group = name.prefix { $0 != "." }
        return ["account", "inbox", "checks", "app", "device", "velocity", "user", "outcomes"].contains(group)
            && name != "account.real_user_status"
    }

    /// Whether it counts by the inbox or its domain, which no team knows.
    package var countsInboxes = false

    /// Whether it reveals facts of other teams or of the inbox: teams get only a coarse code for reasons that read it.
    package var spansTeams: Bool { name.hasPrefix("inbox.") || countsInboxes }
}

/// The signals that Postern supplies (docs/POLICY.md, `signals:`). Operators define their own under `context.`.
package enum StandardSignals {
    /// Types by name, in the notation of policy files.
    package static let types: [String: String] = [
        "event": "string", "token.age_s": "int?", "session.amr": "list(string)?", "session.age_s": "int?",
        "account.real_user_status": "int?", "account.prior_status": "int?", "account.rejoins_30d": "int?",
        "account.age_hours": "int?", "account.state": "string?", "account.has_email": "bool?",
        "account.forwarding_on": "bool?", "account.managed": "bool?", "account.hours_since_seen": "int?",
        "account.hours_since_transfer": "int?", "account.bounces_7d": "int?", "account.user_replies_30d": "int?",
        "account.forwarding_toggles_7d": "int?",
        "account.risk_events_30d": "int?", "account.last_risk_event": "string?",
        "inbox.signups_24h": "int?", "inbox.deletions_30d": "int?", "inbox.bounces_7d": "int?",
        "inbox.domain_class": "string?",
        "checks.failed_24h": "int?", "checks.passed_90d": "int?", "checks.hours_since_human_check": "int?",
        "checks.hours_since_email_code": "int?", "checks.hours_since_reauthenticate": "int?",
        "device.attested": "bool?", "device.assertions": "int?", "device.accounts": "int?",
        "app.signups_1h": "int?", "app.signups_1h_baseline": "double?",
    ]

    /// The types allowed for an operator's own signals.
    static let contextTypes: [CELType] = [
        .bool, .int, .uint, .double, .string, .timestamp, .duration, .list(.string), .list(.int),
    ]
}
