// A domain or an address that a team wants to send from, and what becomes of it with each look at its DNS. Pure.

import Database

/// A team's claim to a domain, which a TXT record proves, or to a single address, which a mailed code does. It serves while it is
/// `proved`, and then alone.
package struct SourceClaim: Sendable, Hashable {
    package enum State: String, SQLCodable, Sendable, Hashable {
        /// The record was never seen, nor a code given.
        case pending
        case proved
        /// It was proved once, and failed for too long.
        case stopped
    }

    /// What one look at the DNS says.
    package enum Proof: Sendable, Hashable {
        case seen
        /// The DNS says that the record is not there, or is another.
        case absent
        /// The DNS said nothing.
        case unanswered
    }

    /// The store's own number.
    package let number: Int64
    package let teamNumber: Int64
    package let kind: OutboundSource.Kind
    /// As in `OutboundSource`: lower case, A-labels, or an address as an envelope has it.
    package let value: String
    /// What the record has to say: 32 characters of base32, new for each claim. It is no secret once it is published. That of an
    /// address names the claim, and is given to no one.
    package let token: String
    package internal(set) var state: State
    /// Seconds since 1970, as all times here.
    package let createdAt: Int64
    /// When the record was seen last, or the code given.
    package internal(set) var provedAt: Int64?
    /// Since when a proved one fails.
    package internal(set) var failingSince: Int64?
    /// When the team was told so.
    package internal(set) var warnedAt: Int64?
    package internal(set) var nextCheckAt: Int64

    /// Where the record is, below the domain.
    package static let label = "_postern-challenge"
    /// The name that has to have a TXT record with the token.
    package var recordName: String { "\(Self.label).\(value)" }

    // MARK: Times, in seconds

    /// From one proof to the next: a domain that was sold serves its old team no longer than this and `grace`.
    package static let interval: Int64 = 30 * 86_400
    /// From the warning until a source that goes on failing stops.
    package static let grace: Int64 = 7 * 86_400
    /// The same where the DNS says nothing at all: what does not answer proves no mail either, and may be our own network.
    static let silentGrace: Int64 = 30 * 86_400
    /// Silence that is not worth a warning.
    static let silence: Int64 = 86_400
    /// For so long a claim waits for its record or its code; then it goes.
    package static let patience: Int64 = 14 * 86_400
    /// Of an address that is proved: no one can be asked for a code in silence, so that the proof lasts as long as the source.
    static let never = Int64.max

    /// When a claim of this kind that was made now is looked at first.
    static func firstCheck(of kind: OutboundSource.Kind, now: Int64) -> Int64 { kind == .domain ? now : now + patience }

    /// The claim after a look, and what its team is told; nil for one that goes.
    package func after(_ proof: Proof, now: Int64) -> (claim: SourceClaim, event: EventType?)? {
        var next = self
        if proof == .seen {
            (next.state, next.provedAt, next.failingSince, next.warnedAt) = (.proved, now, nil, nil)
            next.nextCheckAt = kind == .domain ? now + Self.interval : Self.never
            return (next, nil)
        }
        switch state {
        case .pending:
            let age = now - createdAt
            guard age < Self.patience else { return nil }
            guard kind == .domain else { return (next, nil) }
            next.nextCheckAt = now + (age < 3_600 ? 60 : age < 86_400 ? 600 : 21_600)
            return (next, nil)
        case .stopped:
            next.nextCheckAt = now + 86_400
            return (next, nil)
        case .proved:
            guard kind == .domain else { return (next, nil) }
            let since = failingSince ?? now
            next.failingSince = since
            next.nextCheckAt = now + 21_600
            let limit = proof == .absent ? Self.grace : Self.silentGrace
            if let warnedAt {
                guard now - warnedAt >= limit else { return (next, nil) }
                next.state = .stopped
                return (next, .sourceStopped)
            }
            guard proof == .absent || now - since >= Self.silence else { return (next, nil) }
            next.warnedAt = now
            return (next, .sourceUnproved)
        }
    }
}
