// The HTTP API: its routes and its set-up. Add the routes of a subject to `modules`.

import API
import Accounts
import Database
import Decisions
import Events
import Foundation
import HTTP
import Logging
import Mail
import MailCrypto
import Monitoring
import Portal
import PosternConfiguration
import PosternMetrics
import Relay
import ServiceLifecycle
import SignIn
import WebAuthn

/// The objects that routes and services share. One for the life of a process.
package struct ServiceParts: Sendable {
    package let installation: Installation
    package let surroundings: Surroundings
    /// For calls that block, including those of the store.
    package let pool: BlockingPool
    package let cursors: Cursors
    /// Signs identity tokens and events.
    package let identitySigner: IdentitySigner
    /// Other issuers and their keys.
    package let trust: IssuerTrust
    /// Seconds since 1970.
    package var now: @Sendable () -> Int64 { surroundings.now }
    package let logger: Logger
    package let metrics = ServiceMetrics(version: PosternVersion.text)
    /// Sends messages to inboxes; blocks.
    package let mailer: InboxMailer
    /// Sends messages for which no request waits.
    package let mailQueue = MailQueue()
    /// Looks up the records of domains that teams add.
    package let prover: SourceProver
    /// The users' page; nil if the installation has no public address.
    let page: PortalPage?
    /// Nil if the installation makes no decisions.
    package let decisions: DecisionParts?
    /// Nil if the installation makes no decisions.
    package let statuses: (any StatusSource)?
    /// Nil if the installation makes no decisions.
    fileprivate let policies: ActivePolicies?

    package var store: Store { installation.store }
    /// Accepts events of other transmitters.
    package var signalIntake: SignalIntake {
        SignalIntake(
            store, keys: trust.keys, ownIssuer: installation.configuration.provider.issuer,
            now: now, logger: logger)
    }

    /// Sends users their due notices by mail; sends none if they have no page. Blocks.
    @Sendable package func tellUsers() throws { try page?.tellOfRefusals() }

    package init(
        installation: Installation, surroundings: Surroundings = .machine,
        pool: BlockingPool = BlockingPool(.requests),
        signer: RelaySigner? = nil, policies: ActivePolicies? = nil, lists: ListsInForce? = nil,
        logger: Logger
    ) throws {
        let now = surroundings.now
        self.installation = installation
        self.surroundings = surroundings
        self.pool = pool
        self.policies = policies
        self.logger = logger
        identitySigner = IdentitySigner(installation.store.identityKeys, now: now, logger: logger)
        trust = IssuerTrust(installation.store, now: now, logger: logger)
        cursors = Cursors(key: try installation.derivedKey("postern cursors 1"))
        mailer = try MailerFactory.mailer(installation, signer: signer)
        prover = SourceProver {
            // Negative answers are not cached: the team is about to add the record.
            try surroundings.client(installation, remembers: false)
        }
        let provider = installation.configuration.provider
        statuses = policies.map {
            surroundings.statuses(
                StatusDecider(store: installation.store, policies: $0, lists: lists))
        }
        let sheet =
            provider.isPageBuiltIn
            ? provider.issuer.map { [identitySigner, statuses] in
                SheetProvider(issuer: $0, signer: identitySigner, statuses: statuses)
            } : nil
        let page = try PortalPage(
            store: installation.store, mailer: mailer, queue: mailQueue,
            tokens: MailerFactory.tokens(installation), pool: pool,
            now: now, proxies: installation.configuration.http.proxies, provider: sheet,
            signUp: provider.signUp,
            requiredLevel: provider.level, recoveryDays: provider.recoveryDays,
            limits: provider.limits,
            looks: PageLooks(
                colours: installation.configuration.pageColours,
                logo: ServiceFiles.logo(installation.configuration, at: installation.resolved.path),
                links: installation.configuration.pageLinks),
            deletionDays: installation.configuration.pageDeletionDays,
            upstream: provider.upstream.map { source in
                UpstreamProvider(
                    try source.settings(at: installation.resolved.path), now: now, logger: logger)
            },
            passkeyRoots: ServiceFiles.passkeyRoots(
                installation.configuration, at: installation.resolved.path), logger: logger
        )
        self.page = page
        let (trust, identitySigner, metrics) = (trust, identitySigner, metrics)
        metrics.registry.readings(
            "postern_sign_in_wrong_codes",
            "Wrong sign-in codes that were entered within the last hour on all hosts, and the number from which codes alone open nothing in new browsers.",
            label: "kind"
        ) { [store = installation.store] in
            [
                (value: "entered", count: (try? store.page.wrongCodes(now: now())) ?? 0),
                (value: "allowed", count: provider.limits.wrongCodesPerHour),
            ]
        }
        metrics.registry.readings(
            "postern_delivery_messages",
            "Forwards of all hosts within the last 24 hours, by family of providers and by what became of them; forwarded: all of them.",
            labels: ["provider", "outcome"]
        ) { [store = installation.store] in
            let found = try? store.deliveries.totals(since: now() / 3_600 - 23)
            return found?.map { ([$0.provider.rawValue, $0.outcome.rawValue], $0.count) } ?? []
        }
        decisions = policies.map {
            DecisionParts(
                store: installation.store, policies: $0, lists: lists, trust: trust,
                own: installation.configuration.provider.issuer.map { ($0, identitySigner) },
                hasPage: sheet != nil && page != nil, executor: pool,
                interpreting: BlockingPool(.policies), metrics: metrics,
                refusesOddContext: surroundings.refusesOddContext,
                canned: surroundings.canned, now: now, logger: logger)
        }
    }
}

package enum HTTPRoutes {
    /// Every module of routes, in the order of their paths.
    package static func modules(_ parts: ServiceParts) -> [any RouteModule] {
        let configuration = parts.installation.configuration
        let common = RouteParts(
            store: parts.store, pool: parts.pool, cursors: parts.cursors,
            proxies: configuration.http.proxies, now: parts.now)
        var modules: [any RouteModule] = [
            AccountRoutes(common, listings: parts.installation.listings),
            AddressRoutes(common, messagesPerDay: configuration.limits.messagesPerDay.max),
            EventRoutes(common),
            HealthRoutes(store: parts.store, pool: parts.pool, policies: parts.policies) {
                [metrics = parts.metrics] in
                metrics.storeWritable.value > 0
            },
            MetricsRoutes(parts.metrics, parts.pool),
            NotificationRoutes(
                common, issuers: parts.trust.issuers, keys: parts.trust.keys,
                signals: parts.signalIntake), OpenAPIRoutes(),
            RejectionRoutes(common, listings: parts.installation.listings),
            ComplaintRoutes(common),
            SourceRoutes(
                common, examine: SourceExaminer(parts).examine, look: parts.prover.look,
                mail: { [mailer = parts.mailer, now = parts.now] code, languages in
                    do {
                        try mailer.send(
                            code, in: mailer.languages.best([], accepted: languages), now: now())
                    } catch let error
                        as MailerError where error.isRecipientRefused
                    {
                        throw Problem.invalid(
                            "the mail server refuses mail to this address", at: "/source")
                    }
                }), AppRoutes(common),
            EndpointRoutes(common, allowsLoopback: parts.surroundings.allowsLoopbackEndpoints),
            KeyRoutes(common),
            UserRoutes(common) { user, inbox, change in
                try parts.mailer.sendConfirmation(user: user, .number(inbox), change)
            },
        ]
        if let decisions = parts.decisions {
            modules.append(AttestationRoutes(common))
            modules.append(ListRoutes(common))
            modules.append(
                DecisionRoutes(service: decisions.service, idempotency: decisions.idempotency))
        }
        if let page = parts.page { modules.append(page) }
        // Sign-in; no routes if no issuer is configured.
        if let issuer = configuration.provider.issuer {
            let settings = ProviderSettings(
                issuer: issuer, authorizationEndpoint: configuration.provider.authorizationEndpoint,
                signInPage: configuration.provider.signInPage,
                isPageBuiltIn: configuration.provider.isPageBuiltIn,
                refreshesPerDay: configuration.provider.refreshesPerDay,
                level: configuration.provider.level, hasPasskeys: parts.page?.hasPasskeys ?? false,
                service: configuration.serviceName, languages: parts.mailer.languages)
            modules.append(
                StreamRoutes(
                    common, signer: parts.identitySigner,
                    rules: StreamRepository.Rules(
                        issuer: issuer, allowsPrivate: configuration.allowsPrivateReceivers)))
            modules.append(
                SignInRoutes(
                    settings, common, signer: parts.identitySigner, statuses: parts.statuses))
        }
        return modules + parts.surroundings.modules(parts)
    }

    /// The listener; nil if the configuration has none. While its certificate cannot be used, it
    /// answers no requests, because mail does not depend on it.
    package static func service(_ parts: ServiceParts) throws -> APIService? {
        let configuration = parts.installation.configuration.http
        guard let listen = configuration.listen else { return nil }
        let certificates = configuration.certificate.map {
            TLSCertificates(waitingFor: $0.chain, keyPath: $0.key)
        }
        if let trouble = certificates?.trouble(now: parts.now()) {
            parts.logger.error(
                "the HTTP certificate cannot be used",
                metadata: ["detail": "http.tls_certificate: \(trouble)"])
        }
        var settings = APISettings(
            host: listen.host, port: listen.port, certificates: certificates,
            connections: configuration.connections,
            connectionsPerClient: configuration.connectionsPerClient,
            proxies: configuration.proxies,
            isReachedByHTTPS: parts.installation.configuration.publicURL?.hasPrefix("https://")
                ?? false,
            bodyLimit: configuration.bodySize, requestsPerSecond: configuration.requestsPerSecond)
        let (logger, surroundings) = (parts.logger, parts.surroundings)
        settings.listenSetting = surroundings.listenSetting
        return APIService(
            settings: settings, modules: modules(parts), middleware: surroundings.middleware,
            keys: KeyCache(parts.store.apiKeys, pool: parts.pool), clock: APIClock(now: parts.now),
            logger: logger,
            observe: { [metrics = parts.metrics] route, method, status, seconds in
                metrics.httpRequests(route, method, "\(status)").add()
                metrics.httpSeconds(route).observe(seconds)
            }
        ) { address in
            logger.notice(
                "listening for HTTP",
                metadata: ["address": "\(address)", "tls": "\(certificates != nil)"])
            surroundings.listening(address)
        }
    }
}
