// The relay of a running service: the milter and its engine, replaced together when configuration
// or keys change.

import Accounts
import Concurrency
import Database
import Logging
import MailAuth
import Milter
import PosternConfiguration
import PosternMetrics
import RelayCore
import RelayMilter
import Synchronization

/// Callbacks for the results of forwards. Neither may block.
package struct ForwardReports: Sendable {
    /// Called for each refused forward.
    let refused: @Sendable (RefusedForward) -> Void
    /// Called for each message that is forwarded.
    let forwarded: @Sendable (ForwardAttribution) -> Void

    package init(
        refused: @escaping @Sendable (RefusedForward) -> Void,
        forwarded: @escaping @Sendable (ForwardAttribution) -> Void
    ) {
        (self.refused, self.forwarded) = (refused, forwarded)
    }
}

/// One object for the life of a process. Transactions that began before a replacement keep their
/// engine.
package final class RunningRelay: Sendable {
    /// The parts that a reload replaces.
    fileprivate struct State {
        var installation: Installation
        var engine: RelayEngine
        var carrier: CopyHandOver?
    }

    /// The state for a new configuration, not yet in use.
    package struct Prepared: Sendable {
        fileprivate let state: State
    }

    private let signer: RelaySigner
    private let counters: CounterBuffer
    private let commits: GroupCommit?
    private let metrics: ServiceMetrics
    private let resolver: (any DNSResolver)?
    private let memory: ReplyMemory
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private let state: Mutex<State>

    /// - Parameters:
    ///   - commits: writes tokens for many messages at a time; if nil, each message uses its own
    ///     transaction.
    ///   - resolver: answers instead of the configured name servers; nil to use those.
    ///   - now: seconds since 1970.
    /// - Throws: `ConfigurationError` if keys or name servers cannot be used, `DNSClientError` if
    ///   the client cannot be opened.
    package init(
        _ installation: Installation, signer: RelaySigner, counters: CounterBuffer,
        commits: GroupCommit?,
        metrics: ServiceMetrics, resolver: (any DNSResolver)? = nil,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) throws {
        (self.signer, self.counters, self.commits, self.metrics, self.resolver) = (
            signer, counters, commits, metrics, resolver
        )
        (self.now, self.logger) = (now, logger)
        let memory = ReplyMemory(limit: installation.configuration.limits.replyMemory.max)
        self.memory = memory
        let made = try Self.state(
            installation, signer, counters, commits, metrics, resolver, memory, now, logger)
        state = Mutex(made)
    }

    private static func state(
        _ installation: Installation, _ signer: RelaySigner, _ counters: CounterBuffer,
        _ commits: GroupCommit?,
        _ metrics: ServiceMetrics, _ fixed: (any DNSResolver)?, _ memory: ReplyMemory,
        _ now: @escaping @Sendable () -> Int64,
        _ logger: Logger
    ) throws -> State {
        let configuration = installation.configuration
        let resolver = try Resolvers.perMessage(
            configuration, path: installation.resolved.path, metrics: metrics, resolver: fixed)
        let engine = try EngineFactory.engine(
            installation: installation,
            authenticator: EngineFactory.authenticator(configuration, resolver: resolver),
            signer: signer, counters: counters, commits: commits,
            providers: MXProviders(resolver), replyMemory: memory, now: now)
        return State(
            installation: installation, engine: engine,
            carrier: CopyHandOver(configuration, logger: logger))
    }

    /// Checks whether a new configuration can be used. Throws the errors of `init`.
    package func prepare(_ installation: Installation) throws -> Prepared {
        Prepared(
            state: try Self.state(
                installation, signer, counters, commits, metrics, resolver, memory, now, logger))
    }

    /// The thresholds in force; nil for no limit.
    package var deliveryRules: DeliveryRules? {
        state.withLock { $0.installation.configuration.delivery }.map(DeliveryRules.init)
    }

    /// Starts to use it.
    package func use(_ prepared: Prepared) { state.withLock { $0 = prepared.state } }

    /// Continues with other keys. An engine makes and reads tokens with its own keys, so a new
    /// engine is built.
    package func renewKeys() throws { use(try prepare(state.withLock { $0.installation })) }

    /// The handler that decides about mail, for an MTA in this process.
    package func handler(reporting reports: ForwardReports) -> any MilterHandler {
        RelayMilterHandler(
            engine: { self.state.withLock { $0.engine } }, now: now, logger: logger,
            metrics: metrics,
            carrier: { self.state.withLock { $0.carrier } }, refused: reports.refused,
            forwarded: reports.forwarded)
    }

    /// Listens for Postfix, and serves it when the service runs.
    /// - Parameters:
    ///   - deadline: maximum duration of open transactions after a shutdown request.
    ///   - announce: called with the socket when signals are handled.
    package func listen(
        deadline: Duration, reporting reports: ForwardReports,
        announce: @escaping @Sendable (String) -> Void
    ) throws -> MilterService {
        let installation = state.withLock { $0.installation }
        let settings = installation.configuration.milter
        guard let socket = MilterSocket(settings.socket)?.with(mode: settings.socketMode) else {
            throw ConfigurationError(
                .invalidValue, at: installation.resolved.path, "milter.socket: cannot be read")
        }
        let peers = MilterPeers(settings.peers)
        if !peers.unknown.isEmpty {
            logger.warning(
                peers.users == nil
                    ? "milter.peers names no user of this machine: every local user may connect to the milter's socket"
                    : "milter.peers names users that do not exist on this machine",
                metadata: ["names": "\(peers.unknown.joined(separator: ","))"])
        }
        let server = MilterServer(
            .init(name: "postern", socket: socket, peers: peers.users),
            handler: handler(reporting: reports)
        ) { [logger] in
            logger.log(level: $0.level, "\($0)")
        }
        try server.start()
        return MilterService(server: server, deadline: deadline) { announce(socket.description) }
    }
}

extension MilterSocket {
    /// The same socket with these permissions, if it is a unix socket.
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
