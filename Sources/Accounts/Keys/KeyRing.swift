// The secret keys of an installation, by purpose and version. They are outside the database.

import MailCrypto

/// The purpose of a key. A key of one purpose is never used for another.
package enum KeyPurpose: String, Sendable, Hashable, CaseIterable {
    /// AES-256-GCM for inbox addresses and names in the database.
    case seal
    /// HMAC-SHA-256 for the blind index that finds an inbox.
    case index
    /// Address tokens (reverse addresses, return paths) and hashes of correspondents.
    case token
    /// HMAC-SHA-256 of values that are not stored and so cannot be hashed again: codes, cookies,
    /// nonces, deleted accounts. It is the index key until the first rotation of that key; after
    /// it, the first secret stays the mark key.
    case mark
}

/// One version of a key.
package struct KeyVersion: Sendable, Hashable {
    /// One base32 character (ASCII), unique within the purpose; part of tokens, and
    /// stored with sealed values.
    package let id: UInt8
    /// 32 octets.
    package let secret: [UInt8]

    package init(id: UInt8, secret: [UInt8]) {
        self.id = id
        self.secret = secret
    }

    /// `id` as text.
    package var idText: String { String(decoding: [id], as: UTF8.self) }
}

extension KeyVersion: SecretHolder {
    package var description: String { "<key \(idText)>" }
}

/// The use of one version of a key.
package enum KeyState: String, Sendable, Hashable {
    /// Makes no values yet. Every host has it, to read the values that another host makes with it.
    case next
    /// Makes new values.
    case active
    /// Only reads the values that it made.
    case old
}

/// All versions for one purpose: one makes new values, all of them read values.
package struct KeySet: Sendable, Hashable {
    package let active: KeyVersion
    /// Every version, the active one included, in the order of the file.
    package let versions: [KeyVersion]
    /// The version that becomes active next; nil outside a rotation.
    package let next: KeyVersion?

    /// `versions` must hold `active` and `next`; `KeyRing` checks files before.
    package init(active: KeyVersion, versions: [KeyVersion], next: KeyVersion? = nil) {
        self.active = active
        self.versions = versions
        self.next = next
    }

    /// The versions that no longer make values.
    package var old: [KeyVersion] { versions.filter { state(of: $0) == .old } }

    package func state(of version: KeyVersion) -> KeyState {
        version == active ? .active : version == next ? .next : .old
    }

    /// The version with this id; nil if it was retired.
    package subscript(id: UInt8) -> KeyVersion? { versions.first { $0.id == id } }

    /// The version whose id is this one-character text.
    package subscript(idText: String) -> KeyVersion? {
        let octets = Array(idText.utf8)
        return octets.count == 1 ? self[octets[0]] : nil
    }
}

/// The keys of an installation.
package struct KeyRing: Sendable, Hashable {
    package let seal: KeySet
    package let index: KeySet
    package let token: KeySet
    /// The key of marks, if it differs from the index key.
    private let mark: KeySet?

    package init(seal: KeySet, index: KeySet, token: KeySet, mark: KeySet? = nil) {
        self.seal = seal
        self.index = index
        self.token = token
        self.mark = mark
    }

    /// For hashes of values that are not stored.
    package var marks: KeySet { mark ?? index }

    /// The versions for a purpose; nil if the key file has no line for it.
    package subscript(purpose: KeyPurpose) -> KeySet? {
        switch purpose {
        case .seal: seal
        case .index: index
        case .token: token
        case .mark: mark
        }
    }

    /// The same ring with other versions for a purpose.
    package func with(_ set: KeySet, for purpose: KeyPurpose) -> KeyRing {
        KeyRing(
            seal: purpose == .seal ? set : seal, index: purpose == .index ? set : index,
            token: purpose == .token ? set : token,
            mark: purpose == .mark ? set : mark)
    }

    /// Length of every key in octets: for AES-256 and for HMAC-SHA-256.
    package static let keyLength = 32

    /// A new ring with one version `a` for each purpose, from 96 random
    /// octets. Nil if there are fewer.
    package init?(random: [UInt8]) {
        guard random.count >= 3 * Self.keyLength else { return nil }
        func set(_ number: Int) -> KeySet {
            let secret = Array(random[(number * Self.keyLength)..<((number + 1) * Self.keyLength)])
            let version = KeyVersion(id: UInt8(ascii: "a"), secret: secret)
            return KeySet(active: version, versions: [version])
        }
        self.init(seal: set(0), index: set(1), token: set(2))
    }
}
