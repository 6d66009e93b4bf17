// Looks up the TXT record of a claim to a domain.

import Accounts
import Database
import HTTP
import MailAuth
import Synchronization

/// Queries the DNS on separate threads, so that a slow DNS does not delay other requests.
package final class SourceProver: Sendable {
    /// For the rounds of the service, so that they do not wait for requests.
    package let pool = BlockingPool(.claimRounds)
    private let requests = BlockingPool(.claims)
    private let waiting = Mutex(0)
    /// The maximum number of requests that wait for the DNS. Beyond it, a request is treated as if
    /// the DNS had not answered.
    private static let maximumWaiting = 32
    private let make: @Sendable () throws -> any DNSResolver
    private let known = Mutex<(any DNSResolver)?>(nil)

    /// - Parameter resolver: called at the first lookup.
    package init(_ resolver: @escaping @Sendable () throws -> any DNSResolver) { make = resolver }

    /// The present answer of the DNS for the claim.
    @Sendable package func look(_ claim: SourceClaim) async throws -> SourceClaim.Proof {
        let isTaken = waiting.withLock { waiting in
            guard waiting < Self.maximumWaiting else { return false }
            waiting += 1
            return true
        }
        guard isTaken else { return .unanswered }
        defer { waiting.withLock { $0 -= 1 } }
        return try await requests.run { [self] in try lookNow(claim) }
    }

    package func stop() async {
        await pool.stop()
        await requests.stop()
    }

    /// As `look`, but blocks. The DNS cannot prove an address.
    package func lookNow(_ claim: SourceClaim) throws -> SourceClaim.Proof {
        guard claim.kind == .domain else { return .absent }
        let resolver = try known.withLock { known in
            if let known { return known }
            let made = try make()
            known = made
            return made
        }
        return SourceClaim.Proof(resolver.query(claim.recordName, .txt), token: claim.token)
    }

    /// Checks the due claims, and writes the results; blocks.
    /// - Returns: the claims whose state changed, with the new state.
    package func round(
        _ store: Store, now: () -> Int64, limit: Int
    ) throws -> [(claim: SourceClaim, state: SourceClaim.State)] {
        var changed: [(SourceClaim, SourceClaim.State)] = []
        for claim in try store.sourceClaims.due(now: now(), limit: limit) {
            if let state = try look(at: claim, store, now: now()).state {
                changed.append((claim, state))
            }
        }
        return changed
    }

    /// Checks one claim, and writes the result; blocks.
    /// - Returns: its new state (nil if unchanged), and whether the DNS answered.
    package func look(
        at claim: SourceClaim, _ store: Store, now: Int64
    ) throws -> (state: SourceClaim.State?, isAnswered: Bool) {
        let proof = try lookNow(claim)
        let after = try store.sourceClaims.record(
            proof, of: claim, Change(actor: "serve", now: now))
        return (after.flatMap { $0.state == claim.state ? nil : $0.state }, proof != .unanswered)
    }
}

extension SourceClaim.Proof {
    /// A record proves the claim if its whole text is the token. Host names are compared without
    /// regard to case, tokens with it.
    package init(_ answer: DNSAnswer, token: String) {
        switch answer {
        case .records(let records):
            let isThere = records.contains { record in
                if case .txt(let octets) = record {
                    octets.elementsEqual(token.utf8)
                } else {
                    false
                }
            }
            self = isThere ? .seen : .absent
        case .noData, .nxDomain: self = .absent
        case .temporaryFailure: self = .unanswered
        }
    }
}
