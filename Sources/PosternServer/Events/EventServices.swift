// How the delivery of events is set up for an installation.

import Foundation
import Identity
import Logging
import NIOPosix
import PosternStore

package enum EventServices {
    /// Threads for what blocks: the store, and names of endpoints, each of which may take the DNS's whole patience.
    private static let threads = 6

    /// The delivery of an installation, and what it posts with, which its owner stops.
    /// Throws `ConfigurationError` where the certificates cannot be read, `DNSClientError` where the DNS client cannot be opened.
    package static func parts(
        _ installation: Installation, now: @escaping @Sendable () -> Int64, logger: Logger
    ) throws -> (delivery: EventDelivery, poster: HTTPEventPoster, pool: NIOThreadPool) {
        let configuration = installation.configuration
        let poster: HTTPEventPoster
        do { poster = try HTTPEventPoster(rootsPath: configuration.eventRootsPath) } catch {
            throw ConfigurationError(
                .invalidValue, at: installation.resolved.path, "events.trusted_certificates: no certificates (PEM) can be read there")
        }
        let pool = NIOThreadPool(numberOfThreads: threads)
        pool.start()
        let delivery = EventDelivery(
            outbox: installation.store.outbox,
            signer: IdentitySigner(installation.store.identityKeys, now: now, logger: logger), issuer: configuration.issuer,
            poster: poster, resolver: try Resolvers.client(configuration, path: installation.resolved.path), threads: pool, now: now,
            logger: logger)
        return (delivery, poster, pool)
    }

    /// The service.
    static func delivery(_ parts: ServiceParts, path: String) throws -> EventDeliveryService {
        let (delivery, poster, pool) = try self.parts(parts.installation, now: parts.now, logger: parts.logger)
        return EventDeliveryService(delivery: delivery, poster: poster, pool: pool)
    }
}
