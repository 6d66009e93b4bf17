// The steps of a rotation, as changes of a ring.

import MailCrypto
import Support

extension KeyRing {
    /// A ring with one more version, which makes no values yet. The secret of the index key stays
    /// as the key of marks.
    /// - Parameter secret: 32 random octets.
    /// - Returns: nil if the ring already has such a version, or no id is free.
    package func adding(_ purpose: KeyPurpose, secret: [UInt8]) -> KeyRing? {
        guard let set = self[purpose], set.next == nil, secret.count == Self.keyLength,
            let id = set.freeID
        else { return nil }
        let new = KeyVersion(id: id, secret: secret)
        let ring = with(
            KeySet(active: set.active, versions: set.versions + [new], next: new), for: purpose)
        guard purpose == .index, self[.mark] == nil else { return ring }
        return ring.with(KeySet(active: set.active, versions: [set.active]), for: .mark)
    }

    /// Makes the next version active and the active one old. Returns the same ring if it has no
    /// next version.
    package func activating(_ purpose: KeyPurpose) -> KeyRing {
        guard let set = self[purpose], let next = set.next else { return self }
        return with(KeySet(active: next, versions: set.versions), for: purpose)
    }

    /// The ring without an old version. Returns the same ring if the version is not an old one.
    package func removing(_ purpose: KeyPurpose, id: String) -> KeyRing {
        guard let set = self[purpose], let version = set[id], set.state(of: version) == .old else {
            return self
        }
        return with(
            KeySet(
                active: set.active, versions: set.versions.filter { $0 != version }, next: set.next),
            for: purpose)
    }

    /// `seal b` and so on, each with its state and a fingerprint of the secret, so that
    /// hosts can compare their keys.
    package var summary: [String: String] {
        var summary: [String: String] = [:]
        for purpose in KeyPurpose.allCases {
            for version in self[purpose]?.versions ?? [] {
                guard let state = self[purpose]?.state(of: version) else { continue }
                summary["\(purpose.rawValue) \(version.idText)"] =
                    "\(state.rawValue) \(version.fingerprint)"
            }
        }
        return summary
    }
}

extension KeyVersion {
    /// Eight characters that distinguish two secrets and reveal nothing about them.
    package var fingerprint: String {
        let mark = HMACSHA256.authenticationCode(
            for: Array("postern key fingerprint 1".utf8), key: secret)
        return String(Base32.characters(fromRandom: mark).prefix(8))
    }
}

extension KeySet {
    /// The first free id after the newest version's; wraps around the alphabet.
    fileprivate var freeID: UInt8? {
        let alphabet = Base32.alphabet
        let start = (versions.last.flatMap { alphabet.firstIndex(of: $0.id) } ?? -1) + 1
        return (0..<alphabet.count).map { alphabet[(start + $0) % alphabet.count] }.first {
            self[$0] == nil
        }
    }
}
