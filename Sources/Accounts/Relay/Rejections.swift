// The reasons why Postern refused mail from a team's sources.

/// Refusals of one kind within one hour. Contains no message content and no recipient.
package struct Rejection: Sendable, Hashable {
    /// The store's own number; later refusals have higher numbers.
    package let number: Int64
    /// The team's registered source that covers the From address, proved or not.
    package let source: String
    /// The SMTP code and enhanced status, for example `550 5.7.26`.
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
