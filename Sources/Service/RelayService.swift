// The service: the milter, the HTTP API, housekeeping and reloads in one group,
// started and ended together.

import Accounts
import Database
import Decisions
import Events
import HTTP
import Logging
import Monitoring
import PersonalData
import PosternConfiguration
import Relay
import RelayCore
import ServiceLifecycle
import Synchronization

package enum RelayService {
    /// How long open transactions may take after a shutdown is requested. Longer than the DNS
    /// budget of a message, shorter than systemd's timeout (90 s).
    private static let shutdownDeadline: Duration = .seconds(60)

    /// Serves until SIGTERM or SIGINT. On SIGHUP it reads the configuration, the HTTP certificate
    /// and the policies again (`Reload` lists the keys that take effect). Sockets, database and key
    /// file stay unchanged.
    /// - Parameters:
    ///   - surroundings: the external parts of the service; a sandbox has others than the
    ///     machine's.
    ///   - reread: reads the installation again, for a reload; nil if SIGHUP reloads nothing.
    ///   - manager: the service manager, which the service notifies of its state; nil if there is
    ///     none.
    ///   - announce: called with the milter's socket when mail is accepted and signals are handled.
    package static func run(
        installation: Installation, surroundings: Surroundings = .machine,
        reread: (@Sendable () throws -> Installation)?,
        logger: Logger, manager: ServiceManager? = nil,
        announce: @escaping @Sendable (String) -> Void
    ) async throws {
        let configuration = installation.configuration
        try EventServices.checkRoots(installation)
        let hold = try installation.store.database.holdForService()
        defer { hold?.release() }
        let counters = CounterBuffer(installation.store.counters)
        let now = surroundings.now
        let rejections = installation.store.refusalBuffer()
        let lastMail = installation.store.persons.lastMailBuffer()
        // One for the life of the process, also across reloads, because it watches the store
        // itself.
        let signer = try RelaySigner(keys: installation.store.dkimKeys)
        let policies = policies(installation, now: now(), logger: logger)
        let lists = ListsInForce(installation.store.liveLists, now: now(), logger: logger)
        let parts = try ServiceParts(
            installation: installation, surroundings: surroundings, signer: signer,
            policies: policies, lists: lists,
            logger: logger)
        let relay = try RunningRelay(
            installation, signer: signer, counters: counters, commits: parts.decisions?.commits,
            metrics: parts.metrics,
            resolver: surroundings.resolver, now: now, logger: logger)
        let http = try HTTPRoutes.service(parts)
        let reports = ForwardReports(
            refused: { [metrics = parts.metrics] refused in
                for use in refused.uses {
                    metrics.usesByOthers(use.proof == nil ? "none" : "signature").add()
                }
                rejections.add(refused)
            }, forwarded: { lastMail.add($0, at: now()) })
        let mail = try entrance(surroundings.mail, relay, reporting: reports, announce: announce)

        // A separate pool: even if the store hangs, a reload ends and the key file is watched.
        let servicePool = BlockingPool(.service)
        let queueTrouble = ValueHolder<String?>(nil)
        let logTrouble = ValueHolder<String?>(nil)
        let keysInUse = ValueHolder(installation.keys)
        // Services end in the reverse order: mail first, then the services that mail needs. Add
        // further services before the listeners.
        var services: [any Service] = [
            HousekeepingService(
                store: installation.store, counters: counters, rejections: rejections,
                lastMail: lastMail,
                tellUsers: parts.tellUsers,
                reviewSuspensions: { try SuspensionReview.run(installation, now: now()) },
                pool: servicePool, now: now,
                logger: logger, deletionInterval: surroundings.deletionInterval
            ),
            StatusService(
                parts: parts, pool: servicePool, queueTrouble: queueTrouble,
                logTrouble: logTrouble,
                certificateTrouble: { http?.certificateTrouble(now: $0) },
                certificateEnd: { http?.certificateEnd },
                keysInUse: keysInUse),
            SourceProofService(
                store: installation.store, prover: parts.prover, now: now, logger: logger),
            DeliveryService(
                store: installation.store, counters: counters,
                rules: { relay.deliveryRules }, pool: servicePool, now: now, logger: logger),
            SigningKeyService(signer: signer, pool: servicePool, logger: logger),
            PolicyService(
                policies: policies, store: installation.store, pool: servicePool, now: now,
                logger: logger),
            ListService(
                lists: lists, policies: policies, store: installation.store, pool: servicePool,
                now: now, logger: logger),
            KeyFileService(
                installation: installation, pool: parts.pool, now: now, logger: logger,
                inUse: keysInUse,
                changed: relay.renewKeys),
        ]
        if case .postfix = surroundings.mail {
            services.append(
                QueueWatchService(
                    directory: configuration.postfixDirectory,
                    relayDomains: configuration.relayDomains, pool: parts.pool,
                    metrics: parts.metrics, trouble: queueTrouble, logger: logger))
            if let path = configuration.deliveryLogPath {
                services.append(
                    DeliveryLogService(
                        path: path, installation: installation, keysInUse: keysInUse,
                        pool: servicePool, trouble: logTrouble, now: now, logger: logger))
            }
        }
        if let reread {
            services.append(
                ReloadService(logger: logger, pool: servicePool, metrics: parts.metrics) {
                    let new = try reread()
                    // Errors in the configuration are found before any of it takes effect.
                    let next = try relay.prepare(new)
                    if try http?.reloadCertificate() == true {
                        logger.notice("HTTP certificate reloaded")
                    }
                    relay.use(next)
                    LogOutput.setLevel(new.configuration.log)
                    policies.refresh(now: now())
                    return Reload(from: installation.resolved, to: new.resolved)
                })
        }
        services.append(IssuerKeysService(parts: parts))
        services.append(
            SignalPollService(
                poller: SignalPoller(
                    installation.store, issuers: parts.trust.issuers, intake: parts.signalIntake,
                    logger: logger)))
        let events = try EventServices.service(
            installation, signer: parts.identitySigner,
            resolver: { try surroundings.client(installation) }, posting: surroundings.posting,
            metrics: parts.metrics,
            now: now, logger: logger)
        if let events { services.append(events) }
        if let decisions = parts.decisions {
            services.append(
                DecisionLogService(
                    parts: decisions, store: installation.store, pool: parts.pool, now: now,
                    logger: logger))
        }
        if let http { services.append(http) }
        services.append(mail)
        if let manager { services.insert(WatchdogService(manager: manager), at: 0) }

        var group = ServiceGroupConfiguration(
            services: services.map { .init(service: NamedService($0)) },
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        group.maximumGracefulShutdownDuration = shutdownDeadline + .seconds(5)
        try await ServiceGroup(configuration: group).run()
        parts.mailQueue.stop()
        await parts.pool.stop()
        await servicePool.stop()
    }

    /// The service that receives mail.
    private static func entrance(
        _ mail: Surroundings.Mail, _ relay: RunningRelay, reporting reports: ForwardReports,
        announce: @escaping @Sendable (String) -> Void
    ) throws -> any Service {
        switch mail {
        case .postfix:
            try relay.listen(deadline: shutdownDeadline, reporting: reports, announce: announce)
        case .own(let make):
            try make(relay.handler(reporting: reports)) { announce("this process") }
        }
    }

    /// The policies in force. A database without policies gets the built-in one. Mail flows even if
    /// this fails.
    private static func policies(
        _ installation: Installation, now: Int64, logger: Logger
    ) -> ActivePolicies {
        let repository = installation.store.policies
        do {
            try ActivePolicies.installBuiltIn(repository, Change(actor: "serve", now: now))
        } catch {
            logger.error(
                "the built-in policy cannot be activated", metadata: ["detail": "\(error)"])
        }
        return ActivePolicies(
            repository, host: installation.configuration.hostname, now: now, logger: logger)
    }
}
