// A relay address as HTTP and commands show it.

import Accounts
import HTTP

/// A relay address with the account that it belongs to.
package struct AddressView: Encodable, Sendable {
    let address: String
    let team: String
    let sub: String
    let isCurrent: Bool
    let isForwardingOn: Bool
    let createdAt: Timestamp
    let retiredAt: Timestamp?

    package init(_ address: RelayAddress) {
        self.address = address.address.wireForm
        team = address.account.teamID
        sub = address.account.sub
        isCurrent = address.isCurrent
        isForwardingOn = address.isForwardingOn
        createdAt = Timestamp(address.createdAt)
        retiredAt = Timestamp(address.retiredAt)
    }
}
