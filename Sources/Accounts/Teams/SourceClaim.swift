// A domain or an address that a team wants to send from, and how each DNS check
// changes its state. Pure.

import Database

/// A team's claim to a domain, proved by a TXT record, or to a single address, proved by a mailed
/// code. Mail from it is relayed only while the claim is `proved`.
package struct SourceClaim: Sendable, Hashable {
    package enum State: String, SQLCodable, Sendable, Hashable {
        /// The record was never seen, or the team never returned the code.
        case pending
        case proved
        /// It was proved, and then its checks failed for too long.
        case stopped
    }

    /// The result of one DNS check.
    package enum Proof: Sendable, Hashable {
        case seen
        /// The DNS says that the record does not exist or is different.
        case absent
        /// The DNS did not answer.
        case unanswered
    }

    /// The store's own number.
    package let number: Int64
    package let teamNumber: Int64
    package let kind: OutboundSource.Kind
    /// As in `OutboundSource`: lower case, A-labels, or an address in envelope form.
    package let value: String
    /// The required content of the record: 32 characters of base32, new for each claim. It is not
    /// secret after it is published. The token of an address only identifies the claim, and no one
    /// gets it.
    package let token: String
    package internal(set) var state: State
    /// Seconds since 1970, like all times here.
    package let createdAt: Int64
    /// When the record was last seen, or the code was returned.
    package internal(set) var provedAt: Int64?
    /// The time since which a proved claim fails.
    package internal(set) var failingSince: Int64?
    /// When Postern warned the team of the failure.
    package internal(set) var warnedAt: Int64?
    package internal(set) var nextCheckAt: Int64

    /// Where the record is, below the domain.
    package static let label = "_postern-challenge"
    /// The name that must have a TXT record with the token.
    package var recordName: String { "\(Self.label).\(value)" }

    // MARK: Times, in seconds

    /// Seconds from one proof to the next. A sold domain serves its old team for at most this time
    /// plus `grace`.
    package static let interval: Int64 = 30 * 86_400
    /// Seconds from the warning until a source that still fails is stopped.
    package static let grace: Int64 = 7 * 86_400
    /// `grace` if the DNS does not answer at all. Then no mail is proved either, and the cause may
    /// be our own network.
    static let silentGrace: Int64 = 30 * 86_400
    /// Seconds for which the DNS may fail to answer without a warning.
    static let silence: Int64 = 86_400
    /// Seconds for which a claim waits for its record or its code; then it is deleted.
    package static let patience: Int64 = 14 * 86_400
    /// For a proved address, which is not checked again: a check would need a person to return a
    /// code.
    static let never = Int64.max

    /// When a new claim of this kind is first checked.
    static func firstCheck(of kind: OutboundSource.Kind, now: Int64) -> Int64 {
        kind == .domain ? now : now + patience
    }

    /// The claim after a check, and the event for its team; nil if the claim is to be deleted.
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
