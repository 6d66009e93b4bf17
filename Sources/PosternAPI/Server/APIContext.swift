// What goes with a request from middleware to route.

import Foundation
import Hummingbird
import Logging
import NIOCore
import PosternStore
import Synchronization

/// Who asks.
package enum Principal: Sendable, Hashable {
    /// A team's key: whatever it asks for is looked for among what belongs to this team.
    case team(id: String, number: Int64, keyID: String, scopes: Set<Scope>)
    case `operator`(keyID: String, scopes: Set<Scope>)

    package var keyID: String {
        switch self {
        case .team(_, _, let keyID, _), .operator(let keyID, _): keyID
        }
    }

    package var scopes: Set<Scope> {
        switch self {
        case .team(_, _, _, let scopes), .operator(_, let scopes): scopes
        }
    }
}

/// What is learned of a request on its way, for its line in the log.
final class RequestNote: Sendable {
    private let stored = Mutex<Principal?>(nil)
    var principal: Principal? {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}

/// The request context of every route.
package struct APIContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// Stands in the answer, in every log line and in problems.
    package internal(set) var requestID = ""
    /// Nil on routes that are open to everyone.
    package internal(set) var principal: Principal?
    /// What is logged about the request; shared by all copies of the context.
    let note = RequestNote()
    /// Octets of a body that are taken.
    package internal(set) var bodyLimit = 65_536
    /// Of the client; nil where there is no connection, as in tests of the router.
    package let remoteAddress: SocketAddress?
    private let channel: any Channel

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        remoteAddress = source.channel.remoteAddress
        channel = source.channel
    }

    /// Lets a client that waits for word (`Expect: 100-continue`) send its body.
    func askForBody(of request: Request) {
        guard remoteAddress != nil, request.headers[.expect] != nil else { return }
        channel.triggerUserOutboundEvent(ConnectionGuard.BodyWanted(), promise: nil)
    }

    /// The team that asks. Throws `Problem` (403) for an operator's key or one without the scope, 401 without key.
    package func team(scope: Scope) throws -> Team {
        guard case .team(let id, let number, let keyID, _) = try principal(scope: scope) else {
            throw Problem.forbidden("this needs a team's key; an operator's key has no team")
        }
        return Team(id: id, number: number, keyID: keyID)
    }

    /// Throws `Problem` (403) for a team's key or one without the scope, 401 without key. Gives the key's id.
    @discardableResult
    package func `operator`(scope: Scope) throws -> String {
        guard case .operator(let keyID, _) = try principal(scope: scope) else {
            throw Problem.forbidden("this needs an operator's key")
        }
        return keyID
    }

    /// Who asks, with this scope. Throws `Problem` (401 or 403).
    @discardableResult
    package func principal(scope: Scope) throws -> Principal {
        guard let principal else { throw Problem.unauthorized("send Authorization: Bearer and an API key") }
        guard principal.scopes.contains(scope) else { throw Problem.forbidden("the key lacks the scope \(scope.rawValue)") }
        return principal
    }

    /// Whom a change that this request makes is put down to in the audit.
    package func change(now: Int64) -> Change { Change(actor: principal.map { "key:\($0.keyID)" } ?? "http", now: now) }

    /// The team of a request.
    package struct Team: Sendable, Hashable {
        package let id: String
        package let number: Int64
        package let keyID: String
    }

    /// A part of the path, decoded. Throws `Problem` (404) where it is not text.
    package func pathParameter(_ name: String) throws -> String {
        guard let raw = parameters.get(name), let text = raw.removingPercentEncoding, !text.isEmpty else {
            throw Problem.notFound()
        }
        return text
    }
}
