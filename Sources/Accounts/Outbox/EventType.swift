// What teams are notified of their accounts.

import Database

/// A signed event's type (DESIGN.md section 5). The raw values are in databases and in what endpoints get.
package enum EventType: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// Mail to the relay address reaches no one from now on.
    case emailDisabled = "email-disabled"
    /// It reaches the user again.
    case emailEnabled = "email-enabled"
    /// The user no longer uses the app: the grant ended.
    case consentRevoked = "consent-revoked"
    /// The account is gone; `sub` and address are retired permanently.
    case accountDelete = "account-delete"
    /// The user objects to a check that the app asked of them (GDPR, Article 22).
    case checkObjected = "check-objected"
    /// The user's mail program told their provider that a message of the team is unwanted (RFC 5965).
    case spamComplaint = "spam-complaint"
    /// A domain of the team is no longer proved; `sub` is the domain, and it stops to serve in seven days.
    case sourceUnproved = "source-unproved"
    /// It serves no longer.
    case sourceStopped = "source-stopped"
    /// Nothing happened: an administrator tries the endpoint.
    case test
}
