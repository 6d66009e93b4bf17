// The blind index: finds an inbox by its address without storing the address.

import Database
import InternetMessage
import MailCrypto

/// Keyed hashes of addresses.
package struct BlindIndex: Sendable {
    private let keys: KeyHolder
    /// Never changes, so its hashes still match after a rotation of the index key.
    private let mark: KeyVersion
    private let providers: ProviderRules
    /// 128 bits: two addresses never have the same index.
    private static let length = 16

    init(keys: KeyHolder, providers: ProviderRules) {
        self.keys = keys
        mark = keys.current.marks.active
        self.providers = providers
    }

    /// The index values stored with an inbox in the database.
    package struct Entry {
        /// Id of the key.
        package let key: String
        /// The address, ignoring letter case.
        package let exact: [UInt8]
        /// The address in its provider's canonical form: one for all
        /// spellings that reach one mailbox.
        package let canonical: [UInt8]
    }

    /// The hashes to search for an address: with the key in use, and with the
    /// other one during a rotation.
    package struct Search {
        package let exact: (SQLValue, SQLValue)
        package let canonical: (SQLValue, SQLValue)
    }

    package func entry(_ address: AddrSpec) -> Entry { entry(address, keys.current.index.active) }

    package func search(_ address: AddrSpec) -> Search {
        let set = keys.current.index
        let first = entry(address, set.active)
        let second = set.versions.first { $0 != set.active }.map { entry(address, $0) } ?? first
        return Search(
            exact: (.blob(first.exact), .blob(second.exact)),
            canonical: (.blob(first.canonical), .blob(second.canonical)))
    }

    /// Whether a stored canonical index is that of the mailbox, with the key in use or the other
    /// one. Takes constant time.
    func isCanonical(_ stored: [UInt8], of address: AddrSpec) -> Bool {
        let matches = keys.current.index.versions.map {
            constantTimeEqual(stored, entry(address, $0).canonical)
        }
        return matches.contains(true)
    }

    /// The canonical form under a permanent key, for hashes that are compared over years.
    package func lasting(_ address: AddrSpec) -> [UInt8] { entry(address, mark).canonical }

    /// A hash of the canonical form under a key used for nothing else. It counts sign-ups, and
    /// reveals nothing about `canonical`.
    package func velocity(_ address: AddrSpec) -> [UInt8] {
        let velocityKey = HMACSHA256.authenticationCode(
            for: Array("postern velocity key 1".utf8), key: mark.secret)
        return Array(
            HMACSHA256.authenticationCode(for: lasting(address), key: velocityKey).prefix(
                Self.length))
    }

    private func entry(_ address: AddrSpec, _ key: KeyVersion) -> Entry {
        Entry(
            key: key.idText, exact: hash("exact", address.folded, key),
            canonical: hash("canonical", providers.canonical(address), key))
    }

    private func hash(_ purpose: String, _ address: AddrSpec, _ key: KeyVersion) -> [UInt8] {
        let local = Array(address.localPart.utf8)
        // The length separates local part and domain, even if they contain the separator.
        let message =
            Array("postern inbox \(purpose) 1 \(local.count) ".utf8) + local
            + Array("@\(address.domain)".utf8)
        return Array(
            HMACSHA256.authenticationCode(for: message, key: key.secret).prefix(Self.length))
    }
}
