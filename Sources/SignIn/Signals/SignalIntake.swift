// Accepts security event tokens of configured issuers, whether pushed or fetched.

import Accounts
import Database
import Logging
import SharedSignals

/// Used by routes and by the poller.
package struct SignalIntake: Sendable {
    private let store: Store
    private let keys: any VerificationKeySource
    /// The provider's `iss`: an audience that means all apps; nil if there is none.
    private let ownIssuer: String?
    private let now: @Sendable () -> Int64
    private let logger: Logger

    package init(
        _ store: Store, keys: any VerificationKeySource, ownIssuer: String?,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        (self.store, self.keys, self.ownIssuer, self.now, self.logger) = (
            store, keys, ownIssuer, now, logger
        )
    }

    /// Accepts a SET and returns its `jti`, so that its sender need not send it again. Stores it,
    /// unless its kind or its subject changes nothing here. Throws `IncomingSignal.Refusal` for a
    /// permanent refusal. Throws `KeysUnavailable` and `StoreFailure` for a SET that may be
    /// accepted later.
    package func take(_ text: String, of issuer: IssuerConfiguration) async throws -> String {
        let token: CompactJWS
        do throws(TokenRejection) { token = try CompactJWS(text) } catch {
            throw IncomingSignal.Refusal(.invalidRequest, error.reason)
        }
        let keys = try await keys.keys(of: issuer, for: token.keyID)
        let time = now()
        let signal = try IncomingSignal(token, issuer: issuer, keys: keys, now: time)
        let outcome = try await BlockingPool.issuers.run { [store, ownIssuer] in
            let isForAll = signal.audience.contains { $0.hasSameOctets(as: ownIssuer ?? "") }
            let client = try isForAll ? nil : signal.audience.first { try store.apps.isClient($0) }
            guard isForAll || client != nil else {
                throw IncomingSignal.Refusal(.invalidAudience, "it is for another audience")
            }
            guard let kind = signal.kind, let subject = signal.subject else {
                return ExternalEventOutcome.unknownType
            }
            let event = ExternalRiskEvent(
                issuer: signal.issuer, jti: signal.id, subject: subject, clientID: client,
                kind: kind.rawValue,
                happenedAt: signal.happenedAt)
            return try store.externalEvents.note(
                event, Change(actor: "issuer:\(issuer.name)", now: time))
        }
        logger.info(
            "signal",
            metadata: [
                "issuer": "\(issuer.name)", "type": "\(signal.kind?.rawValue ?? "other")",
                "outcome": "\(outcome.rawValue)",
            ])
        return signal.id
    }
}
