// Looks for the TXT record of a claim to a domain.

import Database
import Accounts
import HTTP
import MailAuth
import Synchronization

/// Asks the DNS on its own threads, so that a slow one keeps no one else waiting.
package final class SourceProver: Sendable {
    /// For the rounds of the service, whatever requests wait for.
    package let pool = BlockingPool(.claimRounds)
    private let requests = BlockingPool(.claims)
    private let waiting = Mutex(0)
    /// Requests that wait for the DNS at once. Beyond it: as if it did not answer.
    private static let maximumWaiting = 32
    private let make: @Sendable () throws -> any DNSResolver
    private let known = Mutex<(any DNSResolver)?>(nil)

    /// - Parameter resolver: made by the first who asks.
    package init(_ resolver: @escaping @Sendable () throws -> any DNSResolver) { make = resolver }

    /// What the DNS says of the claim now.
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

    /// The same; blocks. No DNS proves an address.
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

    /// Looks at what is due, and writes down what the DNS says; blocks.
    /// - Returns: the claims whose state changed, and to what.
    package func round(
        _ store: Store, now: () -> Int64, limit: Int
    ) throws -> [(claim: SourceClaim, state: SourceClaim.State)] {
        var changed: [(SourceClaim, SourceClaim.State)] = []
        for claim in try store.sourceClaims.due(now: now(), limit: limit) {
            if let state = try look(at: claim, store, now: now()).state { changed.append((claim, state)) }
        }
        return changed
    }

    /// Looks at one claim, and writes down what the DNS says; blocks.
    /// - Returns: its new state, nil if it has none, and whether the DNS answered.
    package func look(
        at claim: SourceClaim, _ store: Store, now: Int64
    ) throws -> (state: SourceClaim.State?, isAnswered: Bool) {
        let proof = try lookNow(claim)
        let after = try store.sourceClaims.record(proof, of: claim, Change(actor: "serve", now: now))
        return (after.flatMap { $0.state == claim.state ? nil : $0.state }, proof != .unanswered)
    }
}

extension SourceClaim.Proof {
    /// The whole text of one of the records is the token. Names of hosts are compared without regard to case, tokens are not.
    package init(_ answer: DNSAnswer, token: String) {
        switch answer {
        case .records(let records):
            let isThere = records.contains { record in
                if case .txt(let octets) = record { octets.elementsEqual(token.utf8) } else { false }
            }
            self = isThere ? .seen : .absent
        case .noData, .nxDomain: self = .absent
        case .temporaryFailure: self = .unanswered
        }
    }
}
