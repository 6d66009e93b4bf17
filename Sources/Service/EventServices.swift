// How the delivery of events is set up for an installation.

import SignIn
import Events
import Foundation
import Logging
import PosternConfiguration
import PosternMetrics
import Relay

package enum EventServices {
    /// The delivery of an installation, and what it posts with, which its owner stops; nil where no issuer is configured.
    /// Throws `ConfigurationError` where the certificates cannot be read, `DNSClientError` where the DNS client cannot be opened.
    package static func parts(
        _ installation: Installation, signer: IdentitySigner, metrics: ServiceMetrics? = nil,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) throws -> (delivery: EventDelivery, poster: HTTPEventPoster, threads: DeliveryThreads)? {
        let configuration = installation.configuration
        guard let issuer = configuration.provider.issuer else { return nil }
        let poster: HTTPEventPoster
        do { poster = try HTTPEventPoster(rootsPath: configuration.eventRootsPath) } catch {
            throw ConfigurationError(
                .invalidValue, at: installation.resolved.path, "events.trusted_certificates: no certificates (PEM) found")
        }
        let threads = DeliveryThreads()
        let delivery = EventDelivery(
            outbox: installation.store.outbox,
            signer: signer, issuer: issuer,
            poster: poster, resolver: try Resolvers.client(configuration, path: installation.resolved.path), threads: threads,
            now: now,
            metrics: metrics, logger: logger)
        return (delivery, poster, threads)
    }

    /// The service; nil, with a warning where events wait, where no issuer is configured.
    static func service(_ parts: ServiceParts) throws -> EventDeliveryService? {
        guard
            let (delivery, poster, threads) = try self.parts(
                parts.installation, signer: parts.identitySigner, metrics: parts.metrics, now: parts.now, logger: parts.logger)
        else {
            if (try? parts.store.endpoints.endpoints().isEmpty) == false {
                parts.logger.warning("no event is delivered: set http.public_url or provider.issuer")
            }
            return nil
        }
        return EventDeliveryService(delivery: delivery, poster: poster, threads: threads, logger: parts.logger)
    }
}
