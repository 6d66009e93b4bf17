// What a service takes from outside its configuration and store: of the machine for `postern serve`, made up for a sandbox.

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

/// Everything that `postern serve` and a sandbox do not share.
package struct Surroundings: Sendable {
    /// How mail comes in.
    package enum Mail: Sendable {
        /// From Postfix, through the milter's socket.
        case postfix
        /// From a service of this process, which calls its second argument once it takes mail.
        case own(@Sendable (any MilterHandler, @escaping @Sendable () -> Void) throws -> any Service)
    }

    /// Seconds since 1970.
    package var now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
    /// How often what has expired is deleted, on a monotonic clock. An hour of a clock that is set passes at once.
    package var deletionInterval: Duration = .seconds(3600)
    /// Answers in place of the configured name servers; nil for those.
    package var resolver: (any DNSResolver)?
    package var mail = Mail.postfix
    /// What posts events, given what posts them on a machine.
    package var posting: EventServices.Posting = { $0 }
    /// What rates users, given the policy in force.
    package var statuses: @Sendable (any StatusSource) -> any StatusSource = { $0 }
    /// Fixed answers for test subjects, and whether odd context is refused: as in `DecisionService.Settings`.
    package var canned: (@Sendable (String) -> CannedResponse?)?
    package var refusesOddContext = false
    /// Whether teams themselves may name http and loopback addresses for their events.
    package var allowsLoopbackEndpoints = false
    /// Routes in addition to those of every installation.
    package var modules: @Sendable (ServiceParts) -> [any RouteModule] = { _ in [] }
    /// Around every request.
    package var middleware: [any MiddlewareProtocol<Request, Response, APIContext>] = []
    /// The setting that gave the listener's address, for errors.
    package var listenSetting = "http.listen"
    /// Called with `HOST:PORT` once HTTP listens.
    package var listening: @Sendable (String) -> Void = { _ in }

    /// Those of the machine.
    package static let machine = Surroundings()

    package init() {}

    /// A resolver for a caller with a few questions; as `Resolvers.client`.
    func client(_ installation: Installation, remembers: Bool = true) throws -> any DNSResolver {
        try resolver
            ?? Resolvers.client(installation.configuration, path: installation.resolved.path, remembers: remembers)
    }
}
