// The settings of an installation's relay, as values. The configuration reads them from a file.

import InternetMessage

package struct RelaySettings: Sendable {
    /// Lower case; new addresses are issued in the first.
    package var relayDomains: [String]
    /// The id of our Authentication-Results; fields with this id are removed on arrival.
    package var authservID: String
    /// The destination of mail to postmaster and abuse; nil while the operator has not set it.
    package var operatorAddress: AddrSpec?
    /// More local parts (lower case) of the operator's: DMARC reports, TLS-RPT, feedback loops.
    package var localRecipients: [String: AddrSpec]
    package var providers: ProviderRules
    package var limits: RelayLimits
    /// Days during which a return path accepts reports.
    package var returnPathDays: UInt64
    /// The rate at which forwarding to an inbox is suspended; nil for never.
    package var suspension: SuspensionRate?
    /// The thresholds of the limit by consequence; nil for no limit.
    package var delivery: DeliveryRules?
    /// The warm-up of this host; nil for none.
    package var warmUp: WarmUp?
    /// The outgoing identities by their names; empty if all mail leaves in the same way.
    package var outgoing: [OutgoingIdentityName: OutgoingClass] = [:]
    /// The account of the doctor's test mail. Its inbox is at a relay domain, to which mail of
    /// other accounts would never be delivered. Nil for none.
    package var testAccount: AccountNumber?

    package init(
        relayDomains: [String], authservID: String, operatorAddress: AddrSpec? = nil,
        localRecipients: [String: AddrSpec] = [:],
        providers: ProviderRules = .standard, limits: RelayLimits = RelayLimits(),
        returnPathDays: UInt64 = 14,
        suspension: SuspensionRate? = SuspensionRate(), delivery: DeliveryRules? = DeliveryRules()
    ) {
        self.relayDomains = relayDomains.map { $0.lowercased() }
        self.authservID = authservID
        self.operatorAddress = operatorAddress
        self.localRecipients = localRecipients
        self.providers = providers
        self.limits = limits
        self.returnPathDays = returnPathDays
        self.suspension = suspension
        self.delivery = delivery
    }

    package func isRelayDomain(_ domain: String) -> Bool {
        relayDomains.contains(domain.lowercased())
    }

    /// Whether mail of this account to this domain would never be delivered.
    func isDeadEnd(_ domain: String, for account: AccountNumber) -> Bool {
        account != testAccount && isRelayDomain(domain)
    }

    /// The class of a forward's return path for a team with this identity; nil if there are no
    /// identities. A name that is not configured is the standard.
    func outgoingClass(_ identity: OutgoingIdentityName?) -> OutgoingClass? {
        outgoing.isEmpty ? nil : identity.flatMap { outgoing[$0] } ?? .standard
    }

    /// The operator's own mailbox for a local part (lower case) at a relay domain. Nil if it is not
    /// the operator's; `.some(nil)` if no address is set.
    package func operatorMailbox(_ localPart: String) -> AddrSpec?? {
        if let target = localRecipients[localPart] { return .some(target) }
        return OperatorMailbox.names.contains(localPart) ? .some(operatorAddress) : nil
    }

    /// The delivery address for a correspondent. For the operator's mailboxes at a relay domain it
    /// is their target, as they have no delivery of their own.
    package func delivery(_ address: AddrSpec) -> AddrSpec {
        guard isRelayDomain(address.domain),
            let target = operatorMailbox(address.localPart.foldedIdentity)
        else {
            return address
        }
        return target ?? address
    }
}

/// The name of an outgoing identity: 1 to 20 lower-case letters, digits and hyphens, beginning with
/// a letter. Postfix's service for it is called `postern-NAME`.
package struct OutgoingIdentityName: Sendable, Hashable, Comparable, CustomStringConvertible {
    package static let maximumLength = 20

    package let text: String
    package var description: String { text }

    /// Nil for any other text.
    package init?(_ text: String) {
        let octets = Array(text.utf8)
        guard (1...Self.maximumLength).contains(octets.count), (0x61...0x7A).contains(octets[0]),
            octets.allSatisfy({
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D
            })
        else { return nil }
        self.text = text
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }
}

/// The rate of permanent failures at which forwarding to an inbox is suspended: both
/// numbers must be reached.
package struct SuspensionRate: Sendable, Hashable {
    /// Permanent failures within the window.
    package var failures: Int
    /// Their share of the messages forwarded to the inbox within the window, in percent, 1 … 100.
    package var percent: Int
    /// The window, today included.
    package var days: Int

    package init(failures: Int = 5, percent: Int = 50, days: Int = 14) {
        self.failures = failures
        self.percent = percent
        self.days = days
    }

    /// Whether this number of failures among this number of forwarded messages reaches the rate.
    package func isReached(failures: Int, forwarded: Int) -> Bool {
        failures >= self.failures
            && failures.multipliedReportingOverflow(by: 100).partialValue >= forwarded * percent
    }
}

/// The limits of the relay. The result of exceeding each is next to it.
package struct RelayLimits: Sendable, Hashable {
    /// Proved messages per account, direction and day; beyond: `452 4.7.1`.
    package var messagesPerDay = 100
    /// Octets of a whole message; beyond: `552 5.3.4`.
    package var messageSize = 40_000_000
    /// Octets of one header field. From this size on: `550 5.6.0`. Postfix truncates the fields
    /// that it passes to a filter at 60,000 octets, name included, so a field of nearly that size
    /// may be truncated.
    package var headerFieldSize = 59_900
    /// Header fields of a message; beyond: `550 5.6.0`.
    package var headerFields = 1_000
    /// Octets of the whole header section; beyond: `550 5.6.0`.
    package var headerSize = 262_144
    /// Received fields plus hops recognized by marks; beyond: `554 5.4.6`.
    package var hops = 50
    /// Recipients of one account in one transaction; beyond: `452 4.5.3`.
    package var recipients = 100
    /// Addresses of one forward that must be stored, as they do not fit a reverse address; beyond:
    /// `554 5.5.3`. Lists of people have a few dozen addresses, and few of them are long.
    package var storedAddresses = 200
    /// New addresses of this kind for one account on one day; beyond: `452 4.7.1`. Each newsletter
    /// brings one or two.
    package var storedAddressesPerDay = 2_000
    /// Octets of an outgoing header field, name included; beyond: `552 5.3.4`. A milter's command
    /// to Postfix has room for 65,535 octets, and rewriting makes addresses longer.
    package var rewrittenFieldSize = 65_500

    package init() {}
}
