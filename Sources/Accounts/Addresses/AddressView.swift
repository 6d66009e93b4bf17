// A relay address as HTTP and commands show it.

import Support

/// A relay address with the account that it belongs to.
package struct AddressView: Encodable, Sendable {
    let address: String
    let team: String
    let sub: String
    let isCurrent: Bool
    let isForwardingOn: Bool
    let createdAt: Timestamp
    let retiredAt: Timestamp?
    // Fields that only commands show.
    var user: String?
    var account: Int64?
    var state: String?
    var isAuthorized: Bool?

    /// As HTTP shows it.
    package init(_ address: RelayAddress) {
        self.address = address.address.wireForm
        team = address.account.teamID
        sub = address.account.sub
        isCurrent = address.isCurrent
        isForwardingOn = address.isForwardingOn
        createdAt = Timestamp(address.createdAt)
        retiredAt = Timestamp(address.retiredAt)
    }

    /// As commands show it.
    package static func whole(_ address: RelayAddress) -> AddressView {
        var view = AddressView(address)
        view.user = address.account.userID
        view.account = address.account.number
        view.state = address.state
        view.isAuthorized = address.hasLiveGrant
        return view
    }
}

extension RelayAddress {
    /// The first of `retired`, `revoked`, `on` and `off` that applies to mail to it.
    package var state: String {
        if retiredAt != nil { return "retired" }
        return !hasLiveGrant ? "revoked" : isForwardingOn ? "on" : "off"
    }
}
