// Host names and addresses according to the DNS, for checks that examine the relay from outside.

import MailAuth
import Support

/// The addresses of a name.
enum HostAddresses {
    case found([IPAddress])
    case none
    case unknown(String)

    /// A and AAAA of a name.
    static func of(_ name: String, _ resolver: any DNSResolver) -> HostAddresses {
        var addresses: [IPAddress] = []
        var trouble: String?
        for type in [DNSRecordType.a, .aaaa] {
            switch resolver.query(name, type) {
            case .records(let records):
                for case .address(let octets) in records {
                    if let address = IPAddress(octets: octets) { addresses.append(address) }
                }
            case .temporaryFailure(let reason): trouble = reason
            case .noData, .nxDomain: continue
            }
        }
        if !addresses.isEmpty { return .found(addresses) }
        return trouble.map { .unknown($0) } ?? .none
    }

    var list: [IPAddress] { if case .found(let list) = self { list } else { [] } }
}

/// The relay's host as other servers see it.
package struct RelayHost: Sendable {
    /// Its name in HELO.
    package let heloName: String
    /// The addresses from which it sends, as other servers see them; empty if not known.
    package let addresses: [IPAddress]
    /// The addresses that receive its mail.
    let exchanges: [IPAddress]
    /// The reason why the DNS did not answer for its name; nil if it did.
    let trouble: String?
    /// The host through which it sends its mail; nil if it sends directly.
    let relayhost: String?

    package init(heloName: String, addresses: [IPAddress]) {
        self.init(
            heloName: heloName, addresses: addresses, exchanges: addresses, trouble: nil,
            relayhost: nil)
    }

    private init(
        heloName: String, addresses: [IPAddress], exchanges: [IPAddress], trouble: String?,
        relayhost: String?
    ) {
        self.heloName = heloName
        self.addresses = addresses
        self.exchanges = exchanges
        self.trouble = trouble
        self.relayhost = relayhost
    }

    /// The host with the given addresses. Without any, with those that the DNS has for its name.
    /// - Parameters:
    ///   - given: addresses from which it sends, as text.
    ///   - relayhost: the host to which Postfix sends all mail; nil if there is none. With a
    ///     relayhost, the name's own addresses send nothing.
    /// - Throws: `CheckInputError` for a text that is not an IP address.
    package static func find(
        heloName: String, given: [String], relayhost: String? = nil, resolver: any DNSResolver
    ) throws -> RelayHost {
        let addresses = try given.map { text in
            guard let address = IPAddress(text) else {
                throw CheckInputError("\"\(text)\" is not a valid IP address")
            }
            return address
        }
        let own = HostAddresses.of(heloName, resolver)
        let trouble: String? =
            if case .unknown(let reason) = own, addresses.isEmpty || relayhost != nil {
                reason
            } else { nil }
        return RelayHost(
            heloName: heloName,
            addresses: relayhost == nil && addresses.isEmpty ? own.list : addresses,
            exchanges: own.list + addresses, trouble: trouble, relayhost: relayhost)
    }

    /// The same host, with the addresses of its outgoing identities among those that it sends from.
    package func sending(alsoAs others: [RelayHost]) -> RelayHost {
        guard relayhost == nil else { return self }
        return RelayHost(
            heloName: heloName,
            addresses: others.flatMap(\.addresses).reduce(into: addresses) {
                if !$0.contains($1) { $0.append($1) }
            }, exchanges: exchanges, trouble: trouble, relayhost: nil)
    }

    /// The check of an outgoing identity, whose name in HELO must lead to its addresses and back.
    /// - Parameter identity: its name in postern.yaml.
    package func identity(_ identity: String, _ resolver: any DNSResolver) -> [Check] {
        guard trouble == nil else {
            return [
                .unanswered(
                    CheckKind.ptr.of(heloName), "the DNS gives no answer for \(heloName)")
            ]
        }
        guard !addresses.isEmpty else {
            return [
                .broken(
                    CheckKind.ptr.of(heloName),
                    "\(heloName), the name in HELO of the outgoing identity \(identity), has no address in the DNS",
                    remedy: "publish A and AAAA records of \(heloName) with its addresses")
            ]
        }
        return reverse(resolver)
    }

    /// Checks whether the other checks are possible at all.
    package func presence() -> Check {
        if let trouble {
            return .warning(
                .address,
                "the DNS gives no answer for \(heloName), so the relay's addresses were not checked: \(trouble)",
                remedy: "try again later, or name the addresses with --ip")
        }
        if let relayhost, addresses.isEmpty {
            return .warning(
                .address,
                "mail leaves through \(relayhost), so SPF and PTR of \(heloName) do not matter, and were not checked",
                remedy:
                    "name the addresses that \(relayhost) sends from with --ip: SPF of the relay domains must cover them"
            )
        }
        return addresses.isEmpty
            ? .broken(
                .address,
                "\(heloName) has no address in the DNS, so it is unknown where the relay sends from",
                remedy: "publish A and AAAA records of \(heloName), or name the addresses with --ip"
            )
            : .ok(
                .address,
                "\(relayhost ?? heloName) sends from \(addresses.map(\.description).joined(separator: ", "))"
            )
    }

    /// The PTR record must name the HELO name, and that name must lead back to the address: large
    /// providers check this first.
    package func reverse(_ resolver: any DNSResolver) -> [Check] {
        // The operator of the relayhost decides on its name.
        guard relayhost == nil else { return [] }
        return addresses.map { address in
            let name = CheckKind.ptr.of("\(address)")
            let remedy: Remedy =
                "have the owner of the address (your provider) set its PTR record to \(heloName)"
            switch resolver.query(address.reverseName, .ptr) {
            case .temporaryFailure(let reason):
                return .warning(
                    name, "the DNS gives no answer for \(address): \(reason)",
                    remedy: "try again later")
            case .noData, .nxDomain:
                return .broken(
                    name, "\(address) has no PTR record: large providers refuse its mail",
                    remedy: remedy)
            case .records(let records):
                let names = records.compactMap {
                    if case .ptr(let name) = $0 { name.lowercased() } else { nil }
                }
                guard names.contains(heloName.lowercased()) else {
                    return .broken(
                        name,
                        "\(address) has the PTR name \(names.joined(separator: ", ")), but sends \(heloName) in HELO",
                        remedy: remedy)
                }
                switch HostAddresses.of(heloName, resolver) {
                case .unknown(let reason):
                    return .warning(
                        name, "the DNS gives no answer for \(heloName): \(reason)",
                        remedy: "try again later")
                case .found(let list) where list.contains(address):
                    return .ok(name, "\(address) is \(heloName), and \(heloName) resolves to it")
                default:
                    return .broken(
                        name,
                        "\(address) has the PTR name \(heloName), but \(heloName) does not resolve to it",
                        remedy: "add \(address) to the A or AAAA records of \(heloName)")
                }
            }
        }
    }
}

/// An argument that cannot be used.
package struct CheckInputError: Error, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}
