// Who changed what, and when.

/// Who makes an administrative change, and when: passed to every method that changes something.
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
    /// As in `team.add`.
    package let action: String
    /// What it was done to, as in `team:juice`.
    package let subject: String
    package let detail: String
}
