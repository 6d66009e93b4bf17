// Makes the engine that decides about an installation's mail.

import Accounts
import Database
import InternetMessage
import MailAuth
import PosternConfiguration
import RelayCore

/// Makes engines. The service and `postern explain` use it in the same way.
package enum EngineFactory {
    /// - Parameters:
    ///   - counters: nil for an engine that changes nothing in the store.
    ///   - commits: writes tokens for many messages at a time; if nil, each message uses its own
    ///     transaction.
    ///   - providers: finds the providers of inboxes.
    ///   - replyMemory: shared by all engines of a process, so that a reload does
    ///     not double the budget.
    /// - Throws: `ConfigurationError` if the keys cannot be used, `TemplateError`.
    package static func engine(
        installation: Installation, authenticator: any SenderAuthenticator,
        signer: (any MessageSigner)?,
        counters: CounterBuffer?,
        commits: GroupCommit? = nil, providers: any ProviderFinding = KnownProviders(),
        replyMemory: ReplyMemory, now: @escaping @Sendable () -> Int64
    ) throws -> RelayEngine {
        let directory = StoreDirectory(
            store: installation.store, counters: counters, commits: commits, now: now)
        let notice = try MailerFactory.replyNotice(installation)
        guard let keys = TokenKeys(installation.keys.token),
            let probe = probe(installation.configuration, keys),
            let engine = RelayEngine(
                settings: RelaySettings(installation.configuration), keys: keys,
                directory: ProbingDirectory(directory, probe: probe, now: now),
                authenticator: ProbingAuthenticator(authenticator, probe: probe), signer: signer,
                answeredNotice: notice, providers: providers, replyMemory: replyMemory,
                randomness: random)
        else {
            throw ConfigurationError(
                .invalidValue, at: installation.configuration.keyFilePath,
                "the token keys cannot be used; restore the key file from a backup")
        }
        return engine
    }

    /// The test account of `postern doctor`; nil without a relay domain.
    private static func probe(_ configuration: Configuration, _ keys: TokenKeys) -> ProbeIdentity? {
        configuration.relayDomains.first.map { ProbeIdentity(keys: keys, domain: $0) }
    }

    /// Makes the proof of senders. It uses our own evaluation or, if configured, the results of an
    /// upstream filter that the operator trusts.
    package static func authenticator(
        _ configuration: Configuration, resolver: @escaping @Sendable () -> any DNSResolver
    ) -> any SenderAuthenticator {
        let native = NativeAuthenticator(resolver: resolver)
        guard !configuration.trustedAuthservIDs.isEmpty else { return native }
        return PreferringAuthenticator(
            upstream: UpstreamResultsAuthenticator(trustedIDs: configuration.trustedAuthservIDs),
            otherwise: native)
    }

    private static func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        // Eight octets for each call to the system generator.
        var word: UInt64 = 0
        return (0..<count).map { index in
            word = index % 8 == 0 ? generator.next() : word >> 8
            return UInt8(truncatingIfNeeded: word)
        }
    }
}

extension DeliveryRules {
    /// The thresholds of the configuration.
    init(_ delivery: Configuration.Delivery) {
        self.init()
        users = delivery.users
        messages = delivery.messages
        complaintsPerThousand = delivery.complaintsPerThousand
        refusalsPerThousand = delivery.refusalsPerThousand
        holdFactor = delivery.holdFactor
        slowedPerHour = delivery.slowedPerHour.max
    }
}

extension RelaySettings {
    /// The part of the configuration that the relay uses.
    init(_ configuration: Configuration) {
        var limits = RelayLimits()
        limits.messagesPerDay = configuration.limits.messagesPerDay.max
        limits.messageSize = configuration.limits.messageSize.max
        limits.headerFieldSize = configuration.limits.headerField.max
        limits.headerFields = configuration.limits.headerFields.max
        limits.headerSize = configuration.limits.headerSize.max
        limits.hops = configuration.limits.hops.max
        limits.recipients = configuration.limits.recipients.max
        self.init(
            relayDomains: configuration.relayDomains, authservID: configuration.authservID,
            operatorAddress: configuration.operatorAddress,
            localRecipients: configuration.localRecipients, providers: configuration.providers,
            limits: limits,
            returnPathDays: UInt64(configuration.returnPathDays),
            suspension: configuration.suspension.map {
                SuspensionRate(failures: $0.failures, percent: $0.percent, days: $0.days)
            }, delivery: configuration.delivery.map(DeliveryRules.init)
        )
        warmUp = configuration.warmUpDay.map {
            WarmUp(host: configuration.hostname, firstDay: $0)
        }
        outgoing = OutgoingIdentity.classes(of: configuration.outgoingIdentities)
        testAccount = ProbeIdentity.account
    }
}
