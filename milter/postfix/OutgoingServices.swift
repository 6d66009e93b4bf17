// Postfix's side of outgoing identities: a service of master.cf for each, and the table by which
// Postfix chooses it from the envelope sender.

/// An identity as Postfix needs it.
package struct OutgoingService: Sendable, Hashable {
    /// As in postern.yaml; the service is `postern-NAME`.
    package let name: String
    /// A POSIX extended regular expression for the local parts of its return paths.
    package let expression: String
    /// IPv4 and IPv6 addresses of this host; nil for none.
    package let address: String?
    package let address6: String?
    package let heloName: String

    package init(
        name: String, expression: String, address: String?, address6: String?, heloName: String
    ) {
        (self.name, self.expression, self.heloName) = (name, expression, heloName)
        (self.address, self.address6) = (address, address6)
    }

    static let prefix = "postern-"
    /// The name of the service in master.cf.
    package var service: String { Self.prefix + name }

    /// The line that creates the service.
    var line: String { "\(service) unix - - n - - smtp" }

    /// Its parameters.
    var settings: [MasterSetting] {
        let reason = "forwards of the teams with this identity leave by this name and address"
        let only = "the identity has no address of the other family, and must not borrow one"
        return
            [
                ("smtp_helo_name", heloName, reason),
                ("smtp_bind_address", address ?? "", reason),
                ("smtp_bind_address6", address6 ?? "", reason),
                (
                    "inet_protocols",
                    address == nil ? "ipv6" : address6 == nil ? "ipv4" : "all", only
                ),
            ].map {
                MasterSetting(service: "\(service)/unix", name: $0.0, value: $0.1, reason: $0.2)
            }
    }

    /// The item of `sender_dependent_default_transport_maps`, with `$$` for `$` as in main.cf.
    static func table(_ services: [OutgoingService], _ relayDomains: [String]) -> String {
        let domains = relayDomains.map(PostfixSettings.escaped).joined(separator: "|")
        let rules = services.map { "{ /^\($0.expression)@(\(domains))$$/ \($0.service): }" }
        return "regexp:{ \(rules.joined(separator: " ")) }"
    }

    /// Whether an item of the list is a table that an earlier set-up made.
    static func isTable(_ item: String) -> Bool {
        item.hasPrefix("regexp:{ { /^") && item.hasSuffix(": } }")
            && item.contains("$$/ \(prefix)")
    }
}
