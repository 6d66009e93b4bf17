// Decides how likely a user is to be real, at the first authorization of an app.

import Accounts
import CEL
import Database
import InternetMessage
import RiskPolicy
import SignIn

/// Runs the status policy in force, in the transaction of the authorization, so that two concurrent
/// ones see each other.
package struct StatusDecider: StatusSource {
    let store: Store
    let policies: ActivePolicies
    let lists: ListsInForce?

    package init(store: Store, policies: ActivePolicies, lists: ListsInForce?) {
        self.store = store
        self.policies = policies
        self.lists = lists
    }

    package func status(
        _ connection: any DatabaseConnection, of request: ProviderAuthorization, now: Int64
    ) throws(StoreFailure) -> GivenStatus? {
        guard let loaded = policies.statusPolicy, let time = CELTimestamp(seconds: now) else {
            return nil
        }
        let grant = request.grant
        let (team, group) = try connection.appGroup(clientID: grant.clientID)
        let user = try connection.userNumber(grant.userID)
        let inbox = try inbox(connection, user, grant)
        let facts = StatusSignals(
            user: user, team: team.number, group: group.number, inbox: inbox?.id, now: now)
        guard try facts.isDue(connection) else { return nil }
        var values = try facts.values(connection)
        values.merge(try facts.values(of: request.method, request.signIn, connection)) { $1 }
        // The value that the authorization will store.
        values[.userManaged] = .bool(request.orgID != nil)
        if let domain = inbox?.address.revealed.domain {
            values[.inboxDomainClass] = .string(
                (lists?.domainClass(domain) ?? DomainClass.of(domain)).rawValue)
        }
        let policy = loaded.policy
        let (input, signals) = policy.statusInput(values, now: time)
        let result = policy.decide(input)
        return GivenStatus(
            status: policy.status(result).code, reasons: policy.reasons(result), signals: signals,
            policyName: loaded.name,
            policyVersion: loaded.version, policyHash: loaded.hash)
    }

    /// Known facts about a user for an app, except the sign-in: for tests of the facts that other
    /// teams add.
    package func signals(
        _ connection: any DatabaseConnection, userID: String, clientID: String, now: Int64
    ) throws(StoreFailure) -> [StandardSignal: CELValue] {
        let (team, group) = try connection.appGroup(clientID: clientID)
        let user = try connection.userNumber(userID)
        let inbox = try inbox(
            connection, user, AuthorizationRequest(clientID: clientID, userID: userID))
        return try StatusSignals(
            user: user, team: team.number, group: group.number, inbox: inbox?.id, now: now
        )
        .values(connection)
    }

    /// The inbox that will receive mail of the app.
    private func inbox(
        _ connection: any DatabaseConnection, _ user: Int64, _ grant: AuthorizationRequest
    ) throws(StoreFailure) -> Inbox? {
        if let name = grant.inbox {
            return try store.inboxes.inbox(connection, user: user, id: grant.userID, name)
        }
        let row: Int64? = try connection.value(
            "SELECT id FROM inboxes WHERE user_id = \(user) AND verified_at IS NOT NULL ORDER BY is_default DESC, id LIMIT 1"
        )
        return try row.map { row throws(StoreFailure) in
            try store.inboxes.inbox(connection, user: user, row: row)
        }
    }
}
