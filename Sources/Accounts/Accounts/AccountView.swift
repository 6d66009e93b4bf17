// An account as HTTP and commands show it.

import Support

/// An account. A team does not see `team` and `user`: it knows its users by `sub`. Some fields are
/// in a single account only, and not in lists.
package struct AccountView: Encodable, Sendable {
    /// Consent to the apps of a group.
    package struct Consent: Encodable, Sendable {
        let clientId: String?
        let state: String
        var realUserStatus: Int?
        var priorStatus: Int?
        var firstAuthorizedAt: Timestamp?
        var lastAuthorizedAt: Timestamp?
        var revokedAt: Timestamp?
    }

    /// The reader of the view.
    package enum Asker: Sendable {
        /// Its team, over HTTP.
        case team
        /// The operator, over HTTP.
        case service
        /// An administrator, by a command.
        case administrator
    }

    private var account: Int64?
    let sub: String
    private let team: String?
    private let user: String?
    package private(set) var credentialState: String?
    private var emailKind: String?
    /// The relay address; nil if the account has none.
    package let email: String?
    private var isPrivateEmail: Bool?
    let isForwardingOn: Bool?
    private var sharesName: Bool?
    let consents: [Consent]
    let createdAt: Timestamp

    /// As shown in a list.
    package init(_ account: AccountSummary, for asker: Asker) {
        sub = account.sub
        team = asker == .team ? nil : account.teamID
        user = asker == .team ? nil : account.userID
        email = account.address?.wireForm
        isForwardingOn = account.isForwardingOn
        consents = account.grants.map { Consent(clientId: $0.app, state: $0.state.rawValue) }
        createdAt = Timestamp(account.createdAt)
    }

    /// All fields of one account, from the store.
    package init(_ account: Account, for asker: Asker, _ store: Store) throws {
        let address = try store.addresses.current(account: account.number)
        sub = account.sub
        team = asker == .team ? nil : account.teamID
        user = asker == .team ? nil : account.userID
        credentialState = try store.grants.credentialState(team: account.teamID, sub: account.sub)
            .rawValue
        email = address?.address.wireForm
        isPrivateEmail = account.emailKind == .privateRelay && address != nil
        isForwardingOn = address?.isForwardingOn
        let isAdministrators = asker == .administrator
        consents = try store.grants.grants(account: account.number).map {
            Consent(
                clientId: $0.group.primaryClientID, state: $0.state.rawValue,
                realUserStatus: $0.realUserStatus,
                priorStatus: isAdministrators ? $0.priorStatus : nil,
                firstAuthorizedAt: Timestamp($0.firstAuthorizedAt),
                lastAuthorizedAt: Timestamp($0.lastAuthorizedAt), revokedAt: Timestamp($0.revokedAt)
            )
        }
        createdAt = Timestamp(account.createdAt)
        guard isAdministrators else { return }
        self.account = account.number
        emailKind = account.emailKind.rawValue
        sharesName = account.sharesName
    }
}
