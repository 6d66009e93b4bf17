// The caller. A route that needs a key gets its caller with the context, and no context exists
// without one.

import Accounts
import Hummingbird

/// The holder of an API key, or of an app's access token.
package struct Principal: Sendable, Hashable {
    package let keyID: String
    package let scopes: Set<Scope>
    /// The team; only its own items are searched in its requests. Nil for an operator's key.
    package let team: APIKey.TeamName?
    /// The group of apps that the access token belongs to; nil for a key.
    package let group: Int64?

    package init(keyID: String, scopes: Set<Scope>, team: APIKey.TeamName?, group: Int64? = nil) {
        (self.keyID, self.scopes, self.team, self.group) = (keyID, scopes, team, group)
    }
}

/// A caller that a route admits.
package protocol Caller: Sendable {
    /// Throws `Problem` (403) for anyone else.
    init(_ principal: Principal) throws
}

extension Principal: Caller {
    /// Anyone with a key.
    package init(_ principal: Principal) { self = principal }
}

/// A team that uses its own key.
package struct TeamCaller: Caller, Hashable {
    package let id: String
    package let number: Int64
    /// The group of apps that uses its own token; nil if the team uses a key.
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
    /// The caller.
    package let caller: Admitted
    /// The id of the caller's key, or the client_id of the app that the token belongs to.
    package let keyID: String
    private let actor: String

    /// Throws `Problem`: 401 if no key was checked, 403 for a key of the other kind.
    package init(context: APIContext) throws {
        guard let principal = context.note.principal else {
            throw Problem.unauthorized(AccessGate.hint)
        }
        coreContext = context.coreContext
        base = context
        caller = try Admitted(principal)
        keyID = principal.keyID
        actor = principal.group == nil ? "key:\(principal.keyID)" : "client:\(principal.keyID)"
    }

    /// Attributes a change made by this request to the caller, for the audit.
    package func change(now: Int64) -> Change { Change(actor: actor, now: now) }
}

/// The context of a route for teams.
package typealias TeamContext = CallerContext<TeamCaller>
/// The context of a route for the operator.
package typealias OperatorContext = CallerContext<OperatorCaller>
/// The context of a route for both; the handler checks the caller's team.
package typealias KeyContext = CallerContext<Principal>
