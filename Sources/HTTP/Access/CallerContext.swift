// Who asks: a handler of a route that needs a key gets its caller with the context, which cannot be made without one.

import Accounts
import Hummingbird

/// The holder of an API key, or of an app's own access token.
package struct Principal: Sendable, Hashable {
    package let keyID: String
    package let scopes: Set<Scope>
    /// Whatever a team asks for is looked for among what belongs to it. Nil for an operator's key.
    package let team: APIKey.TeamName?
    /// The group of apps whose access token it is; nil for a key.
    package let group: Int64?

    package init(keyID: String, scopes: Set<Scope>, team: APIKey.TeamName?, group: Int64? = nil) {
        (self.keyID, self.scopes, self.team, self.group) = (keyID, scopes, team, group)
    }
}

/// Those whom a route admits.
package protocol Caller: Sendable {
    /// Throws `Problem` (403) for anyone else.
    init(_ principal: Principal) throws
}

extension Principal: Caller {
    /// Anyone with a key.
    package init(_ principal: Principal) { self = principal }
}

/// A team that asks with a key of its own.
package struct TeamCaller: Caller, Hashable {
    package let id: String
    package let number: Int64
    /// The group of apps that asks with its own token; nil where the team does with a key.
    package let group: Int64?

    package init(_ principal: Principal) throws {
        guard let team = principal.team else {
            throw Problem.forbidden("this needs a team's key; an operator's key has no team")
        }
        (id, number, group) = (team.id, team.number, principal.group)
    }
}

/// An operator.
package struct OperatorCaller: Caller {
    package init(_ principal: Principal) throws {
        guard principal.team == nil else { throw Problem.forbidden("this needs an operator's key") }
    }
}

/// The context of a route that needs a key.
package struct CallerContext<Admitted: Caller>: ChildRequestContext, RouteContext {
    package var coreContext: CoreRequestContextStorage
    package let base: APIContext
    /// Who asks.
    package let caller: Admitted
    /// The handle of the key that it asks with, or the client_id of the app whose token it is.
    package let keyID: String
    private let actor: String

    /// Throws `Problem`: 401 where no key was checked, 403 for a key of the other kind.
    package init(context: APIContext) throws {
        guard let principal = context.note.principal else { throw Problem.unauthorized(AccessGate.hint) }
        coreContext = context.coreContext
        base = context
        caller = try Admitted(principal)
        keyID = principal.keyID
        actor = principal.group == nil ? "key:\(principal.keyID)" : "client:\(principal.keyID)"
    }

    /// Whom a change that this request makes is put down to in the audit.
    package func change(now: Int64) -> Change { Change(actor: actor, now: now) }
}

/// Of a route for teams.
package typealias TeamContext = CallerContext<TeamCaller>
/// Of a route for the operator.
package typealias OperatorContext = CallerContext<OperatorCaller>
/// Of a route for both; the handler looks at the caller's team.
package typealias KeyContext = CallerContext<Principal>
