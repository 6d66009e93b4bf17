// The events that teams get about their accounts.

import Database

/// A signed event's type (DESIGN.md section 5). The raw values are used in databases and in events.
package enum EventType: String, SQLCodable, Sendable, Hashable, CaseIterable {
    /// Mail to the relay address reaches no one from now on.
    case emailDisabled = "email-disabled"
    /// Mail to the relay address reaches the user again.
    case emailEnabled = "email-enabled"
    /// The user no longer uses the app: the grant ended.
    case consentRevoked = "consent-revoked"
    /// The account is gone; `sub` and address are retired permanently.
    case accountDelete = "account-delete"
    /// The user objects to a check that the app asked of them (GDPR, Article 22).
    case checkObjected = "check-objected"
    /// The user's mail program told their provider that a message of the team is unwanted (RFC 5965).
    case spamComplaint = "spam-complaint"
    /// A domain of the team is no longer proved; `sub` is the domain. It stops working after seven days, or
    /// after 30 if the DNS does not answer.
    case sourceUnproved = "source-unproved"
    /// The domain no longer works.
    case sourceStopped = "source-stopped"
    /// The account has a different relay address.
    case identifierChanged = "identifier-changed"
    /// The user ended all their sessions here.
    case sessionRevoked = "session-revoked"
    /// The user added or removed a passkey.
    case credentialChange = "credential-change"
    /// The user now has a passkey, or no longer has one.
    case assuranceLevelChange = "assurance-level-change"
    /// The user's inbox refuses so much that mail waits for a while.
    case inboxSuspended = "inbox-suspended"
    /// The inbox accepts mail again, or mail goes to another inbox.
    case inboxResumed = "inbox-resumed"
    /// Refused mail of the team, by the hour.
    case refusals
    /// A receiver wants to see that its stream works (OpenID Shared Signals Framework 1.0 section 8.1.4).
    case verification
    /// The operator changed the status of a stream (section 8.1.5).
    case streamUpdated = "stream-updated"
    /// Nothing happened: an administrator tests the endpoint.
    case test

    /// The types that exist as Apple's notifications; streams have all types but those about sources.
    package static let notifications: Set<EventType> = [
        .emailDisabled, .emailEnabled, .consentRevoked, .accountDelete, .checkObjected, .spamComplaint, .test,
    ]
    /// The types about a stream itself, which receivers do not request.
    package static let ofStreams: Set<EventType> = [.verification, .streamUpdated, .test]
}
