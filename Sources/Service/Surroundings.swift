// The external parts of a service, besides configuration and store: the machine's for
// `postern serve`, simulated ones for a sandbox.

import Decisions
import Events
import Foundation
import HTTP
import Hummingbird
import MailAuth
import Milter
import PosternConfiguration
import Relay
import ServiceLifecycle
import SignIn

/// All parts that differ between `postern serve` and a sandbox.
package struct Surroundings: Sendable {
    /// The source of mail.
    package enum Mail: Sendable {
        /// From Postfix, through the milter's socket.
        case postfix
        /// From a service of this process, which calls its second argument when it accepts mail.
        case own(
            @Sendable (any MilterHandler, @escaping @Sendable () -> Void) throws -> any Service)
    }

    /// Seconds since 1970.
    package var now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    /// How often expired data is deleted, on a monotonic clock. On a clock that can be set, an hour
    /// may pass at once.
    package var deletionInterval: Duration = .seconds(3600)
    /// Used instead of the configured name servers; nil for these.
    package var resolver: (any DNSResolver)?
    package var mail = Mail.postfix
    /// Makes the poster of events from the machine's poster.
    package var posting: EventServices.Posting = { $0 }
    /// Makes the source of users' statuses from the policy in force.
    package var statuses: @Sendable (any StatusSource) -> any StatusSource = { $0 }
    /// Fixed responses for test subjects, and whether invalid context is refused: see
    /// `DecisionService.Settings`.
    package var canned: (@Sendable (String) -> CannedResponse?)?
    package var refusesOddContext = false
    /// Whether teams themselves may name http and loopback addresses for their events.
    package var allowsLoopbackEndpoints = false
    /// Routes in addition to those of every installation.
    package var modules: @Sendable (ServiceParts) -> [any RouteModule] = { _ in [] }
    /// Middleware around every request.
    package var middleware: [any MiddlewareProtocol<Request, Response, APIContext>] = []
    /// The setting that contains the listener's address, for errors.
    package var listenSetting = "http.listen"
    /// Called with `HOST:PORT` when HTTP listens.
    package var listening: @Sendable (String) -> Void = { _ in }

    /// The external parts of the machine.
    package static let machine = Surroundings()

    package init() {}

    /// A resolver for a caller with a few queries, as `Resolvers.client` returns it.
    func client(_ installation: Installation, remembers: Bool = true) throws -> any DNSResolver {
        try resolver
            ?? Resolvers.client(
                installation.configuration, path: installation.resolved.path, remembers: remembers)
    }
}
