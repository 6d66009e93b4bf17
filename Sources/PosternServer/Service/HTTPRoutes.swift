// The HTTP API: which routes it has, and how it is set up. Add a subject's routes to `modules`.

import Logging
import MailCrypto
import PosternAPI
import PosternMail
import PosternStore
import RelayCore
import ServiceLifecycle

/// What routes and services are made of. One for the life of a process.
package struct ServiceParts: Sendable {
    package let installation: Installation
    /// For calls that block, those of the store among them.
    package let pool: BlockingPool
    package let cursors: Cursors
    /// Seconds since 1970.
    package let now: @Sendable () -> Int64
    package let logger: Logger
    /// Writes to inboxes of its own accord; blocks.
    package let mailer: InboxMailer
    /// Where mail is written that nobody waits for.
    package let mailQueue = MailQueue()
    /// The page of one's own; nil where the installation has no public address.
    let page: MePage?

    package var store: Store { installation.store }

    package init(
        installation: Installation, pool: BlockingPool = BlockingPool(), signer: (any MessageSigner)? = nil,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) throws {
        self.installation = installation
        self.pool = pool
        self.now = now
        self.logger = logger
        cursors = Cursors(
            key: try HKDFSHA256.derive(
                key: installation.keys.token.active.secret, info: Array("postern cursors 1".utf8), length: 32))
        mailer = try MailerFactory.mailer(installation, signer: signer)
        page = try MePage(
            store: installation.store, mailer: mailer, queue: mailQueue, tokens: MailerFactory.tokens(installation), pool: pool, now: now,
            logger: logger)
    }
}

package enum HTTPRoutes {
    /// Every module of routes, in the order of their paths.
    package static func modules(_ parts: ServiceParts) -> [any RouteModule] {
        [
            HealthRoutes(store: parts.store, pool: parts.pool)
        ] + (parts.page.map { [$0] } ?? [])
    }

    /// The listener; nil where the configuration has none. Throws `ConfigurationError` where the certificate cannot be used.
    package static func service(_ parts: ServiceParts) throws -> APIService? {
        let configuration = parts.installation.configuration.http
        guard let listen = configuration.listen else { return nil }
        let certificates: TLSCertificates?
        do {
            certificates = try configuration.certificate.map { try TLSCertificates(certificatePath: $0.chain, keyPath: $0.key) }
        } catch let failure as TLSCertificates.Failure {
            throw ConfigurationError(.invalidValue, at: parts.installation.resolved.path, "http.tls_certificate: \(failure)")
        }
        let settings = APISettings(
            host: listen.host, port: listen.port, certificates: certificates, connections: configuration.connections,
            bodyLimit: configuration.bodySize, requestsPerSecond: configuration.requestsPerSecond)
        let logger = parts.logger
        return APIService(
            settings: settings, modules: modules(parts), keys: KeyCache(parts.store.apiKeys), clock: APIClock(now: parts.now),
            logger: logger
        ) { address in
            logger.notice("listening for HTTP", metadata: ["address": "\(address)", "tls": "\(certificates != nil)"])
        }
    }
}
