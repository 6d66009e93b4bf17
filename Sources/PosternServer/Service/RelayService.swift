// The service: the milter, the HTTP API, housekeeping and reloads under one group, started and ended together.

import Foundation
import HTTP
import InternetMessage
import Logging
import MailAuth
import Milter
import PosternStore
import RelayCore
import RelayMilter
import RiskDecisions
import ServiceLifecycle
import Synchronization

package enum RelayService {
    /// How long transactions under way may take once shutdown was asked for. Longer than the DNS budget of a message, shorter
    /// than systemd's timeout (90 s).
    private static let shutdownDeadline: Duration = .seconds(60)

    /// Serves until SIGTERM or SIGINT. SIGHUP reads the configuration, the HTTP certificate and the policies again (`Reload` says
    /// which keys it puts in force); sockets, database and key file stay unchanged.
    /// - Parameters:
    ///   - reread: reads the installation again, for a reload.
    ///   - announce: called once the milter accepts connections and signals are handled.
    package static func run(
        installation: Installation, reread: @escaping @Sendable () throws -> Installation, logger: Logger,
        announce: @escaping @Sendable (String) -> Void
    ) async throws {
        let configuration = installation.configuration
        guard let socket = MilterSocket(configuration.milter.socket)?.with(mode: configuration.milter.socketMode) else {
            throw ConfigurationError(.invalidValue, at: installation.resolved.path, "milter.socket: cannot be read")
        }
        let hold = try installation.store.database.holdForService()
        defer { hold?.release() }
        let counters = CounterBuffer(installation.store.counters)
        let memory = ReplyMemory(limit: configuration.limits.replyMemory.max)
        let now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
        let rejections = RejectionBuffer(installation.store.rejections)
        // One for the life of the process, whatever is reloaded: it watches the store itself.
        let signer = try RelaySigner(keys: installation.store.dkimKeys)
        let policies = policies(installation, now: now(), logger: logger)
        let parts = try ServiceParts(installation: installation, signer: signer, policies: policies, now: now, logger: logger)
        let build: @Sendable (Installation) throws -> RelayEngine = { installation in
            let resolver = try Resolvers.perMessage(
                installation.configuration, path: installation.resolved.path, metrics: parts.metrics)
            return try EngineFactory.engine(
                installation: installation,
                authenticator: EngineFactory.authenticator(installation.configuration, resolver: resolver),
                signer: signer, counters: counters, commits: parts.decisions?.commits, replyMemory: memory, now: now)
        }
        let current = ValueHolder(installation)
        let engine = ValueHolder(try build(installation))
        let carrier = ValueHolder<CopyHandOver?>(CopyHandOver(configuration, logger: logger))
        let handler = RelayMilterHandler(
            engine: { engine.current }, now: now, logger: logger, metrics: parts.metrics, carrier: { carrier.current }
        ) { rejections.add(RejectionEvent($0)) }
        let peers = MilterPeers(configuration.milter.peers)
        if !peers.unknown.isEmpty {
            logger.warning(
                peers.users == nil
                    ? "milter.peers names no user of this machine: every local user may connect to the milter's socket"
                    : "milter.peers names users that do not exist on this machine",
                metadata: ["names": "\(peers.unknown.joined(separator: ","))"])
        }
        let listening = MilterServer.Configuration(name: "postern", socket: socket, peers: peers.users)
        let server = MilterServer(listening, handler: handler) { diagnostic in
            logger.log(level: diagnostic.level, "\(diagnostic)")
        }
        let http = try HTTPRoutes.service(parts)
        try server.start()

        // For what the service does by itself: however many requests there are, counters are written, and others see that it
        // runs.
        let servicePool = BlockingPool(threads: 4, isShared: false)
        // Ended in the opposite order: mail first, what serves it last. Further services go before the listeners.
        var services: [any Service] = [
            HousekeepingService(
                store: installation.store, counters: counters, rejections: rejections, pool: servicePool, now: now, logger: logger
            ),
            StatusService(parts, pool: servicePool),
            QueueWatchService(
                directory: configuration.postfixDirectory, relayDomains: configuration.relayDomains, pool: parts.pool,
                metrics: parts.metrics,
                trouble: parts.queueTrouble, logger: logger),
            SigningKeyService(signer: signer, logger: logger),
            PolicyService(policies: policies, store: installation.store, now: now, logger: logger),
            ReloadService(logger: logger) {
                let new = try reread()
                // Whatever cannot be used is found before anything is put in force.
                let next = try build(new)
                if try http?.reloadCertificate() == true { logger.notice("HTTP certificate reloaded") }
                current.exchange(new)
                engine.exchange(next)
                carrier.exchange(CopyHandOver(new.configuration, logger: logger))
                LogOutput.setLevel(new.configuration.log)
                policies.refresh(now: now())
                return Reload(from: installation.resolved, to: new.resolved)
            },
            // Tokens are made and read with the keys that an engine has, so it is built again.
            KeyFileService(installation: installation, pool: parts.pool, now: now, logger: logger) {
                engine.exchange(try build(current.current))
            },
        ]
        services.append(IssuerKeysService(parts.trust))
        if let events = try EventServices.service(parts) { services.append(events) }
        if let decisions = parts.decisions {
            services.append(
                DecisionLogService(
                    parts: decisions, store: installation.store, pool: parts.pool, now: now, logger: logger))
        }
        if let http { services.append(http) }
        services.append(MilterService(server: server, deadline: shutdownDeadline) { announce(socket.description) })

        var group = ServiceGroupConfiguration(
            services: services.map { .init(service: NamedService($0)) }, gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        group.maximumGracefulShutdownDuration = shutdownDeadline + .seconds(5)
        try await ServiceGroup(configuration: group).run()
        parts.mailQueue.stop()
        await parts.pool.stop()
        await servicePool.stop()
    }

    /// The policies in force; a database from before there were any gets the built-in one. Mail flows whatever becomes of them.
    private static func policies(_ installation: Installation, now: Int64, logger: Logger) -> ActivePolicies {
        let repository = installation.store.policies
        do {
            try ActivePolicies.installBuiltIn(repository, Change(actor: "serve", now: now))
        } catch {
            logger.error("the built-in policy cannot be activated", metadata: ["detail": "\(error)"])
        }
        return ActivePolicies(repository, host: installation.configuration.hostname, now: now, logger: logger)
    }
}

/// What is in force, as the engine; transactions begun before an exchange keep the one they began with.
final class ValueHolder<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    var current: Value { value.withLock { $0 } }

    func exchange(_ other: Value) { value.withLock { $0 = other } }
}

extension MilterSocket {
    /// The same socket with these permissions, where it is a unix socket.
    fileprivate func with(mode: UInt32) -> MilterSocket {
        if case .unix(let path, _, let group) = self {
            return .unix(path: path, mode: UInt16(truncatingIfNeeded: mode), group: group)
        }
        return self
    }
}

extension MilterDiagnostic {
    fileprivate var level: Logger.Level {
        switch self {
        case .listening, .stopped: .notice
        default: .error
        }
    }
}
