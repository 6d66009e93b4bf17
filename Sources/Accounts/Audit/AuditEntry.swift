// Audit entries: the actor, the change and the time.

/// The actor and the time of an administrative change. Every method that changes something has it
/// as a parameter.
package struct Change: Sendable, Hashable {
    /// `uid:0`, later also `key:…`.
    package let actor: String
    /// Seconds since 1970.
    package let now: Int64

    package init(actor: String, now: Int64) {
        self.actor = actor
        self.now = now
    }
}

/// One line of the audit. Contains identifiers, never an inbox address or a name.
package struct AuditEntry: Sendable, Hashable {
    package let number: Int64
    package let at: Int64
    package let actor: String
    /// For example `team.add`.
    package let action: String
    /// The object of the action, for example `team:juice`.
    package let subject: String
    package let detail: String
}
