// The HTTP listener as a service of the group.

import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The listener's settings.
package struct APISettings: Sendable {
    package var host: String
    /// 0 uses any free port, which is announced.
    package var port: Int
    /// The setting that gave `host` and `port`, for the error.
    package var listenSetting = "http.listen"
    package var certificates: TLSCertificates?
    /// The most open connections. When they are reached, silent ones are closed
    /// (`OpenConnections`); if all are working, further ones wait in the kernel's queue.
    package var connections: Int
    /// Open connections of one client; further ones are closed at once. Wider networks may have
    /// more (`ClientNetwork`).
    package var connectionsPerClient: Int
    /// Trusted reverse proxies besides those on this machine.
    package var proxies: TrustedProxies
    /// Whether browsers must use only https (RFC 6797): clients reach the service by https, at this
    /// listener or at a proxy.
    package var isReachedByHTTPS: Bool
    /// The most octets in a body, unless a route sets another limit.
    package var bodyLimit: Int
    /// Requests per second with one key.
    package var requestsPerSecond: Int
    package var timeouts = ConnectionTimeouts()

    package init(
        host: String, port: Int, certificates: TLSCertificates? = nil, connections: Int = 2000,
        connectionsPerClient: Int = 200,
        proxies: TrustedProxies = TrustedProxies(), isReachedByHTTPS: Bool = false,
        bodyLimit: Int = 65_536,
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

    init(description: String) { self.description = description }

    /// The reason why the service cannot listen on an address, and the remedy.
    /// - Parameter setting: the setting that gave the address.
    package init(setting: String, address: String, _ error: IOError) {
        description = "\(setting): " + APIService.listenProblem(address, error)
    }
}

/// Called for each request; `route` is one of the service's patterns or `(none)`, so that
/// there are few of them.
package typealias RequestObserver =
    @Sendable (_ route: String, _ method: String, _ status: Int, _ seconds: Double) -> Void

/// Serves HTTP until shutdown; requests in progress are finished first.
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
    ///   - middleware: around all routes, the first outermost: sees each response as it leaves.
    ///   - announce: called with `HOST:PORT` once it listens.
    package init(
        settings: APISettings, modules: [any RouteModule],
        middleware: [any MiddlewareProtocol<Request, Response, APIContext>] = [], keys: KeyCache,
        clock: APIClock, logger: Logger,
        observe: @escaping RequestObserver = { _, _, _, _ in },
        announce: @escaping @Sendable (String) -> Void
    ) {
        let router = Self.router(
            settings: settings, modules: modules, middleware: middleware, keys: keys, clock: clock,
            logger: logger,
            observe: observe)
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
            limit: settings.connections, perClient: settings.connectionsPerClient,
            proxies: settings.proxies, logger: logger)
        application = Application(
            responder: router.responder,
            server: HTTPServerBuilder {
                APIChannel(
                    responder: $0, certificates: certificates, timeouts: timeouts,
                    connections: connections)
            },
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port), serverName: nil,
                backlog: 1024,
                availableConnectionsDelegate: .maximum(settings.connections, logger: quiet)),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? settings.port
                announce(
                    settings.host.contains(":")
                        ? "[\(settings.host)]:\(port)" : "\(settings.host):\(port)")
            },
            logger: quiet)
    }

    /// The routes and their middleware, without a listener: for tests.
    package static func router(
        settings: APISettings, modules: [any RouteModule],
        middleware: [any MiddlewareProtocol<Request, Response, APIContext>] = [], keys: KeyCache,
        clock: APIClock, logger: Logger,
        observe: @escaping RequestObserver = { _, _, _, _ in }
    ) -> (responder: RouterResponder<APIContext>, routes: [RouteEntry]) {
        let table = RouteTable()
        let router = Router(context: APIContext.self, options: .autoGenerateHeadEndpoints)
        for outer in middleware { router.add(middleware: outer) }
        router.add(
            middleware: EntryMiddleware(
                clock: clock, logger: logger, bodyLimit: settings.bodyLimit,
                isReachedByHTTPS: settings.isReachedByHTTPS,
                table: table,
                page: { problem, isUnrouted, request, context in
                    modules.lazy.compactMap {
                        $0.page(for: problem, isUnrouted: isUnrouted, request, context)
                    }.first
                },
                observe: observe))
        let limiter = RateLimiter(
            perSecond: Double(settings.requestsPerSecond),
            burst: 2 * Double(settings.requestsPerSecond))
        let routes = Routes(
            router: router, keys: keys, limiter: limiter, clock: clock, proxies: settings.proxies,
            table: table)
        for module in modules { module.addRoutes(to: routes) }
        return (router.buildResponder(), table.entries)
    }

    /// Why clients cannot connect, or should not trust the certificate; nil if all is well.
    package func certificateTrouble(now: Int64) -> String? { certificates?.trouble(now: now) }

    /// When the certificate in use ends, in seconds since 1970; nil without a certificate.
    package var certificateEnd: Int64? { certificates?.end }

    /// Reads the certificate again if its files changed; returns whether they did; blocks. Throws
    /// `TLSCertificates.Failure`, and the old certificate stays.
    package func reloadCertificate() throws -> Bool { try certificates?.reloadIfChanged() ?? false }

    package func run() async throws {
        do {
            _ = try await keys.blocking { try $0.refresh() }
        } catch {
            logger.error(
                "API keys cannot be read yet: all keys are refused",
                metadata: ["detail": "\(error)"])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await cancelWhenGracefulShutdown { await upkeep() } }
            group.addTask {
                do {
                    try await application.run()
                } catch let error as IOError {
                    throw APIServiceError(setting: listenSetting, address: address, error)
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

    /// The reason why the service cannot listen on an address, and the remedy.
    static func listenProblem(_ address: String, _ error: IOError) -> String {
        switch error.errnoCode {
        case EADDRINUSE:
            "\(address) is in use by another program; end it, or choose another port (0 takes any free one)"
        case EADDRNOTAVAIL:
            "this machine has no address \(address.split(separator: ":").dropLast().joined(separator: ":"))"
        case EACCES:
            "\(address) cannot be listened on by this user: ports below 1024 need an extra privilege"
        default: "\(address) cannot be listened on: \(String(cString: strerror(error.errnoCode)))"
        }
    }

    /// Refreshes keys every second, writes the used keys every minute, and reloads changed
    /// certificates every ten seconds.
    private func upkeep() async {
        var second = 0
        var told = ""
        while !Task.isCancelled {
            guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
            second += 1
            do {
                if try await keys.blocking({ try $0.refresh() }) {
                    logger.debug("API keys changed")
                }
                if second % 60 == 0 {
                    try await keys.blocking { [clock] in try $0.flushUse(now: clock.now()) }
                }
            } catch {
                logger.warning(
                    "API keys cannot be read, the old ones stay in force",
                    metadata: ["detail": "\(error)"])
            }
            guard second % 10 == 0, let certificates else { continue }
            do {
                if try await keys.blocking({ _ in try certificates.reloadIfChanged() }) {
                    logger.notice("HTTP certificate reloaded")
                    told = ""
                }
            } catch  where "\(error)" != told {
                told = "\(error)"
                logger.error(
                    "the HTTP certificate cannot be used",
                    metadata: ["detail": "\(certificates.trouble(now: clock.now()) ?? told)"])
            } catch {}
        }
        // A cancelled task gets no thread, but the remaining data must still be written.
        await Task { [keys, clock] in try? await keys.blocking { try $0.flushUse(now: clock.now()) }
        }.value
    }
}
