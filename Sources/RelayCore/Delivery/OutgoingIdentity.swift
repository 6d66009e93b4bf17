// The identities by which forwards leave a host, so that the mail of one class of teams does not
// share the reputation of another.

/// A name in HELO with the addresses that Postfix sends from.
package struct OutgoingIdentity: Sendable, Hashable {
    /// Besides the standard identity, which is Postfix's own: each takes a class of return paths.
    package static let most = OutgoingClass.count - 1

    package let name: OutgoingIdentityName
    /// An IPv4 address of this host in numeric form; nil if the identity has none.
    package let address: String?
    /// An IPv6 address of this host in numeric form; nil if the identity has none.
    package let address6: String?
    /// The name in HELO, in lower case.
    package let heloName: String

    package init(
        name: OutgoingIdentityName, address: String?, address6: String?, heloName: String
    ) {
        (self.name, self.address, self.address6) = (name, address, address6)
        self.heloName = heloName
    }

    /// The addresses, IPv4 first.
    package var addresses: [String] { [address, address6].compactMap(\.self) }

    /// The classes of identities, in the order of their names. With more than `most`, the rest have
    /// none.
    package static func classes(
        of identities: [OutgoingIdentity]
    ) -> [OutgoingIdentityName: OutgoingClass] {
        let names = Set(identities.map(\.name)).sorted()
        return Dictionary(
            uniqueKeysWithValues: zip(names, 1...).compactMap { name, number in
                OutgoingClass(number: number).map { (name, $0) }
            })
    }
}
