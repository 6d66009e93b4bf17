// An account as HTTP and commands show it.

import Accounts
import Support

/// An account. A team does not see `team` and `user`: it knows its users by `sub`. A list leaves out what only one account shows.
package struct AccountView: Encodable, Sendable {
    /// Consent to the apps of a group.
    package struct Consent: Encodable, Sendable {
        let clientId: String?
        let state: String
        var realUserStatus: Int?
        var firstAuthorizedAt: Timestamp?
        var lastAuthorizedAt: Timestamp?
        var revokedAt: Timestamp?
    }

    let sub: String
    let team: String?
    let user: String?
    var credentialState: String?
    /// The relay address; nil where the account has none.
    let email: String?
    var isPrivateEmail: Bool?
    let isForwardingOn: Bool?
    let consents: [Consent]
    let createdAt: Timestamp

    /// As in a list.
    /// - Parameter isTeams: whether its team asks; otherwise the operator.
    package init(_ account: AccountSummary, isTeams: Bool) {
        sub = account.sub
        team = isTeams ? nil : account.teamID
        user = isTeams ? nil : account.userID
        email = account.address?.wireForm
        isForwardingOn = account.isForwardingOn
        consents = account.grants.map { Consent(clientId: $0.app, state: $0.state.rawValue) }
        createdAt = Timestamp(account.createdAt)
    }

    /// All of one account, from the store.
    package init(_ account: Account, isTeams: Bool, _ store: Store) throws {
        let address = try store.addresses.current(account: account.number)
        sub = account.sub
        team = isTeams ? nil : account.teamID
        user = isTeams ? nil : account.userID
        credentialState = try store.grants.credentialState(team: account.teamID, sub: account.sub).rawValue
        email = address?.address.wireForm
        isPrivateEmail = account.emailKind == .privateRelay && address != nil
        isForwardingOn = address?.isForwardingOn
        consents = try store.grants.grants(account: account.number).map {
            Consent(
                clientId: $0.group.primaryClientID, state: $0.state.rawValue, realUserStatus: $0.realUserStatus,
                firstAuthorizedAt: Timestamp($0.firstAuthorizedAt), lastAuthorizedAt: Timestamp($0.lastAuthorizedAt),
                revokedAt: Timestamp($0.revokedAt))
        }
        createdAt = Timestamp(account.createdAt)
    }
}
