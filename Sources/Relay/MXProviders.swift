// Finds the provider of an inbox by the mail exchangers of its domain.

import MailAuth
import RelayCore
import Synchronization

/// Remembers what it found, because a relay forwards to the same few domains all day.
package final class MXProviders: ProviderFinding {
    private struct Known {
        let family: ProviderFamily
        let until: ContinuousClock.Instant
    }

    /// Domains that are remembered. When there are more, all are forgotten.
    private static let capacity = 20_000
    /// How long a domain is remembered: providers seldom change, and a query costs a message a
    /// moment.
    private static let lifetime: Duration = .seconds(6 * 3600)
    /// The same if the DNS did not answer.
    private static let pause: Duration = .seconds(300)

    private let resolver: Resolvers.Maker
    private let known = Mutex<[[UInt8]: Known]>([:])

    /// - Parameter resolver: makes a resolver for the queries about one message.
    package init(_ resolver: @escaping Resolvers.Maker) { self.resolver = resolver }

    package func family(of domain: String) -> ProviderFamily {
        let (key, now) = (Array(domain.utf8), ContinuousClock.now)
        if let known = known.withLock({ $0[key] }), known.until > now { return known.family }
        let (family, lifetime) = query(domain)
        known.withLock { known in
            if known.count >= Self.capacity { known = [:] }
            known[key] = Known(family: family, until: now + lifetime)
        }
        return family
    }

    private func query(_ domain: String) -> (ProviderFamily, Duration) {
        switch resolver().query(domain, .mx) {
        case .records(let records):
            let hosts = records.compactMap { record -> (preference: UInt16, exchange: String)? in
                guard case .mx(let preference, let exchange) = record else { return nil }
                return (preference, exchange)
            }
            let first = hosts.min {
                // Equal preferences: always the same one.
                ($0.preference, $0.exchange) < ($1.preference, $1.exchange)
            }
            return (first.map { ProviderFamily(host: $0.exchange) } ?? .other, Self.lifetime)
        // Without MX the domain is the host (RFC 5321 section 5.1).
        case .noData, .nxDomain: return (ProviderFamily(host: domain), Self.lifetime)
        case .temporaryFailure: return (ProviderFamily(domain: domain), Self.pause)
        }
    }
}
