// Why mail from a team's sources was refused.

import InternetMessage

/// Refusals of one kind within one hour. Contains no message content and no recipient.
package struct Rejection: Sendable, Hashable {
    /// The store's own number; later refusals have higher numbers.
    package let number: Int64
    /// The team's registered source that covers the From address, proved or not.
    package let source: String
    /// As in `550 5.7.26`.
    package let answer: String
    /// The stable word of the relay's reason.
    package let reason: String
    /// Seconds since 1970.
    package let firstAt: Int64
    package let lastAt: Int64
    package let count: Int
    /// The word in brackets in the latest answer.
    package let reference: String
}

/// A refused forward, before it is known which teams it concerns.
package struct RejectionEvent: Sendable, Hashable {
    /// Seconds since 1970.
    package let at: Int64
    /// The From address. Only the source that covers it is stored.
    package let author: AddrSpec
    /// Whether a team registered the author: no other team sees the refusal.
    package let isRegistered: Bool
    /// The account that the mail was for. If the refusal says something about the account, only its own team sees it.
    package let account: Int64
    package let tellsOfAccount: Bool
    package let answer: String
    package let reason: String
    package let reference: String

    package init(
        at: Int64, author: AddrSpec, account: Int64, isRegistered: Bool = true, tellsOfAccount: Bool, answer: String,
        reason: String, reference: String
    ) {
        self.at = at
        self.author = author
        self.account = account
        self.isRegistered = isRegistered
        self.tellsOfAccount = tellsOfAccount
        self.answer = answer
        self.reason = reason
        self.reference = reference
    }
}
