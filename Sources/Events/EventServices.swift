// Sets up the delivery of events for an installation.

import Logging
import MailAuth
import PosternConfiguration
import PosternMetrics
import SignIn

package enum EventServices {
    /// Throws `ConfigurationError` if the certificates cannot be read. Called before anything is
    /// created that would have to be stopped.
    package static func checkRoots(_ installation: Installation) throws(ConfigurationError) {
        _ = try poster(installation)
    }

    private static func poster(
        _ installation: Installation
    ) throws(ConfigurationError) -> HTTPEventPoster {
        do {
            return try HTTPEventPoster(rootsPath: installation.configuration.eventRootsPath)
        } catch {
            throw ConfigurationError(
                .invalidValue, at: installation.resolved.path,
                "events.trusted_certificates: no certificates (PEM) found")
        }
    }

    /// Replaces or wraps a poster.
    package typealias Posting = @Sendable (any EventPosting) -> any EventPosting

    /// The delivery of an installation, and its poster, which the caller must stop; nil if no
    /// issuer is configured. Throws `ConfigurationError` if the certificates cannot be read, and
    /// the errors of `resolver`.
    package static func parts(
        _ installation: Installation, signer: IdentitySigner,
        resolver: () throws -> any DNSResolver,
        posting: Posting = { $0 }, metrics: ServiceMetrics? = nil,
        now: @escaping @Sendable () -> Int64, logger: Logger
    ) throws -> (
        delivery: EventDelivery, logouts: LogoutDelivery, poster: HTTPEventPoster,
        threads: DeliveryThreads
    )? {
        let configuration = installation.configuration
        guard let issuer = configuration.provider.issuer else { return nil }
        let poster = try poster(installation)
        let (threads, resolver) = (DeliveryThreads(), try resolver())
        let posts = posting(poster)
        let delivery = EventDelivery(
            outbox: installation.store.outbox, signer: signer, issuer: issuer, poster: posts,
            resolver: resolver,
            threads: threads, allowsPrivateStreams: configuration.allowsPrivateReceivers, now: now,
            metrics: metrics,
            logger: logger)
        let logouts = LogoutDelivery(
            logouts: installation.store.logouts, signer: signer, issuer: issuer, poster: posts,
            resolver: resolver,
            threads: threads, allowsPrivate: configuration.allowsPrivateReceivers, now: now,
            logger: logger)
        return (delivery, logouts, poster, threads)
    }

    /// The service; nil if no issuer is configured, with a warning if events wait.
    package static func service(
        _ installation: Installation, signer: IdentitySigner,
        resolver: () throws -> any DNSResolver,
        posting: Posting = { $0 }, metrics: ServiceMetrics, now: @escaping @Sendable () -> Int64,
        logger: Logger
    ) throws -> EventDeliveryService? {
        guard
            let (delivery, logouts, poster, threads) = try parts(
                installation, signer: signer, resolver: resolver, posting: posting,
                metrics: metrics, now: now, logger: logger)
        else {
            if (try? installation.store.endpoints.endpoints().isEmpty) == false {
                logger.warning("no event is delivered: set http.public_url or provider.issuer")
            }
            return nil
        }
        return EventDeliveryService(
            delivery: delivery, logouts: logouts, poster: poster, threads: threads, logger: logger)
    }
}
