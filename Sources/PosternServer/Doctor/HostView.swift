// Host names and addresses as the DNS has them, for checks that look at the relay from outside.

import MailAuth

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

/// What the relay says of itself to others.
package struct RelayHost: Sendable {
    /// What it says in HELO.
    package let heloName: String
    /// Where it sends from, as others see it.
    package let addresses: [IPAddress]

    package init(heloName: String, addresses: [IPAddress]) {
        self.heloName = heloName
        self.addresses = addresses
    }

    /// The host with the addresses given, or else those that the DNS has for its name.
    /// - Parameter given: addresses as text.
    /// - Throws: `CheckInputError` for a text that is no IP address.
    package static func find(heloName: String, given: [String], resolver: any DNSResolver) throws -> RelayHost {
        let addresses = try given.map { text in
            guard let address = IPAddress(text) else { throw CheckInputError("\"\(text)\" is no IP address") }
            return address
        }
        return RelayHost(heloName: heloName, addresses: addresses.isEmpty ? HostAddresses.of(heloName, resolver).list : addresses)
    }

    /// How the checks can be made at all.
    package func presence() -> Check {
        addresses.isEmpty
            ? .broken(
                "address", "\(heloName) has no address in the DNS, so nobody knows where the relay sends from",
                remedy: "publish A and AAAA records of \(heloName), or name the addresses with --ip")
            : .ok("address", "\(heloName) sends from \(addresses.map(\.description).joined(separator: ", "))")
    }

    /// PTR = HELO, forward-confirmed: what large providers look at first.
    package func reverse(_ resolver: any DNSResolver) -> [Check] {
        addresses.map { address in
            let name = "ptr \(address)"
            let remedy = "have the owner of the address (your provider) set its PTR record to \(heloName)"
            switch resolver.query(address.reverseName, .ptr) {
            case .temporaryFailure(let reason):
                return .warning(name, "the DNS gives no answer about \(address): \(reason)", remedy: "try again later")
            case .noData, .nxDomain:
                return .broken(name, "\(address) has no PTR record: large providers refuse its mail", remedy: remedy)
            case .records(let records):
                let names = records.compactMap { if case .ptr(let name) = $0 { name.lowercased() } else { nil } }
                guard names.contains(heloName.lowercased()) else {
                    return .broken(
                        name, "\(address) is called \(names.joined(separator: ", ")), but says \(heloName) in HELO",
                        remedy: remedy)
                }
                switch HostAddresses.of(heloName, resolver) {
                case .unknown(let reason):
                    return .warning(name, "the DNS gives no answer about \(heloName): \(reason)", remedy: "try again later")
                case .found(let list) where list.contains(address):
                    return .ok(name, "\(address) is \(heloName), and \(heloName) leads back to it")
                default:
                    return .broken(
                        name, "\(address) is called \(heloName), but \(heloName) does not lead back to it",
                        remedy: "add \(address) to the A or AAAA records of \(heloName)")
                }
            }
        }
    }
}

/// An argument that cannot be used.
package struct CheckInputError: Error, Sendable, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}
