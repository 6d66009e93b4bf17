// The HTTP listener as a service of the group.

import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// How the listener is set up.
package struct APISettings: Sendable {
    package var host: String
    /// 0 takes any free port, which is announced.
    package var port: Int
    /// Where `host` and `port` were set, for the error.
    package var listenSetting = "http.listen"
    package var certificates: TLSCertificates?
    /// Open connections. Beyond it those that say nothing are closed (`OpenConnections`), and where all are at work, further ones
    /// wait in the kernel's queue.
    package var connections: Int
    /// Open connections of one client; further ones are closed at once. Wider networks have more (`ClientNetwork`).
    package var connectionsPerClient: Int
    /// Reverse proxies beside those on this machine.
    package var proxies: TrustedProxies
    /// Whether browsers are to ask over https alone (RFC 6797): it is how others reach us, here or at a proxy.
    package var isReachedByHTTPS: Bool
    /// Octets of a body, where a route says nothing else.
    package var bodyLimit: Int
    /// Requests a second of one key.
    package var requestsPerSecond: Int
    package var timeouts = ConnectionTimeouts()

    package init(
        host: String, port: Int, certificates: TLSCertificates? = nil, connections: Int = 2000, connectionsPerClient: Int = 200,
        proxies: TrustedProxies = TrustedProxies(), isReachedByHTTPS: Bool = false, bodyLimit: Int = 65_536,
        requestsPerSecond: Int = 100
    ) {
        self.host = host
        self.port = port
        self.certificates = certificates
        self.connections = connections
        self.connectionsPerClient = connectionsPerClient
        self.proxies = proxies
        self.isReachedByHTTPS = isReachedByHTTPS || certificates != nil
        self.bodyLimit = bodyLimit
        self.requestsPerSecond = requestsPerSecond
    }
}

/// The listener cannot be opened.
package struct APIServiceError: Error, Sendable, CustomStringConvertible {
    package let description: String
}

/// What is notified of each request; `route` is a pattern of ours or `(none)`, so that there are few of them.
package typealias RequestObserver = @Sendable (_ route: String, _ method: String, _ status: Int, _ seconds: Double) -> Void

/// Serves HTTP until shutdown; requests under way are finished first.
package struct APIService: Service {
    package let routes: [RouteEntry]
    private let application: Application<RouterResponder<APIContext>>
    private let keys: KeyCache
    private let certificates: TLSCertificates?
    private let clock: APIClock
    private let logger: Logger
    private let address: String
    private let listenSetting: String

    /// - Parameters:
    ///   - announce: called with `HOST:PORT` once it listens.
    package init(
        settings: APISettings, modules: [any RouteModule], keys: KeyCache, clock: APIClock, logger: Logger,
        observe: @escaping RequestObserver = { _, _, _, _ in }, announce: @escaping @Sendable (String) -> Void
    ) {
        let router = Self.router(settings: settings, modules: modules, keys: keys, clock: clock, logger: logger, observe: observe)
        routes = router.routes
        self.keys = keys
        self.clock = clock
        self.logger = logger
        certificates = settings.certificates
        address = "\(settings.host):\(settings.port)"
        listenSetting = settings.listenSetting
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .error)
        let certificates = settings.certificates
        let timeouts = settings.timeouts
        let connections = OpenConnections(
            limit: settings.connections, perClient: settings.connectionsPerClient, proxies: settings.proxies, logger: logger)
        application = Application(
            responder: router.responder,
            server: HTTPServerBuilder {
                APIChannel(responder: $0, certificates: certificates, timeouts: timeouts, connections: connections)
            },
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port), serverName: nil, backlog: 1024,
                availableConnectionsDelegate: .maximum(settings.connections, logger: quiet)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? settings.port
                announce(settings.host.contains(":") ? "[\(settings.host)]:\(port)" : "\(settings.host):\(port)")
            },
            logger: quiet)
    }

    /// The routes and what answers them, without a listener: for tests.
    package static func router(
        settings: APISettings, modules: [any RouteModule], keys: KeyCache, clock: APIClock, logger: Logger,
        observe: @escaping RequestObserver = { _, _, _, _ in }
    ) -> (responder: RouterResponder<APIContext>, routes: [RouteEntry]) {
        let table = RouteTable()
        let router = Router(context: APIContext.self, options: .autoGenerateHeadEndpoints)
        router.add(
            middleware: EntryMiddleware(
                clock: clock, logger: logger, bodyLimit: settings.bodyLimit, isReachedByHTTPS: settings.isReachedByHTTPS,
                table: table,
                page: { problem, request, context in modules.lazy.compactMap { $0.page(for: problem, request, context) }.first },
                observe: observe))
        let limiter = RateLimiter(perSecond: Double(settings.requestsPerSecond), burst: 2 * Double(settings.requestsPerSecond))
        let routes = Routes(
            router: router, keys: keys, limiter: limiter, clock: clock, proxies: settings.proxies, table: table)
        for module in modules { module.addRoutes(to: routes) }
        return (router.buildResponder(), table.entries)
    }

    /// Reads the certificate again where its files changed; whether they did; blocks. Throws `TLSCertificates.Failure`: the old
    /// one stays.
    package func reloadCertificate() throws -> Bool { try certificates?.reloadIfChanged() ?? false }

    package func run() async throws {
        do {
            _ = try await keys.blocking { try $0.refresh() }
        } catch {
            logger.error("API keys cannot be read yet: all keys are refused", metadata: ["detail": "\(error)"])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await cancelWhenGracefulShutdown { await upkeep() } }
            group.addTask {
                do {
                    try await application.run()
                } catch let error as IOError {
                    throw APIServiceError(description: "\(listenSetting): " + Self.listenProblem(address, error))
                }
            }
            do {
                while try await group.next() != nil {}
            } catch {
                group.cancelAll()
                throw error
            }
        }
    }

    /// Why an address cannot be listened on, and what to do.
    static func listenProblem(_ address: String, _ error: IOError) -> String {
        switch error.errnoCode {
        case EADDRINUSE: "\(address) is in use by another program; end it, or choose another port (0 takes any free one)"
        case EADDRNOTAVAIL: "this machine has no address \(address.split(separator: ":").dropLast().joined(separator: ":"))"
        case EACCES: "\(address) cannot be listened on by this user: ports below 1024 need an extra privilege"
        default: "\(address) cannot be listened on: \(String(cString: strerror(error.errnoCode)))"
        }
    }

    /// Every second: keys that changed; every minute: which were used; every ten seconds: certificates that changed.
    private func upkeep() async {
        var second = 0
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(1))
            second += 1
            do {
                if try await keys.blocking({ try $0.refresh() }) { logger.debug("API keys changed") }
                if second % 60 == 0 { try await keys.blocking { [clock] in try $0.flushUse(now: clock.now()) } }
            } catch {
                logger.warning("API keys cannot be read, the old ones stay in force", metadata: ["detail": "\(error)"])
            }
            guard second % 10 == 0, let certificates else { continue }
            do {
                if try await keys.blocking({ _ in try certificates.reloadIfChanged() }) {
                    logger.notice("HTTP certificate reloaded")
                }
            } catch {
                logger.error("HTTP certificate not reloaded, the old one stays in use", metadata: ["detail": "\(error)"])
            }
        }
        // A task that was cancelled gets no thread; what is left is written all the same.
        await Task { [keys, clock] in try? await keys.blocking { try $0.flushUse(now: clock.now()) } }.value
    }
}
