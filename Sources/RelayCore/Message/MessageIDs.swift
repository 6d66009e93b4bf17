// Hides a user's message ids from the team and restores them for the user. Stores nothing
// (docs/decisions/019).

import InternetMessage
import MailCrypto
import Support

/// Converts ids to ids at the relay domain and back. Deterministic: the same id of an account
/// always gets the same hidden id.
package struct MessageIDs: Sendable {
    /// Longer ids are replaced irreversibly: once encrypted, they would not fit a line of a header
    /// field.
    package static let maximumReversibleLength = 150

    private static let hidden = UInt8(ascii: "i")
    private static let oneWay = UInt8(ascii: "j")
    private static let witness = UInt8(ascii: "k")
    private static let standIn = UInt8(ascii: "l")

    /// 13 characters are 65 bits.
    private static let tagDigits = 13

    private let keys: TokenKeys
    /// AES-SIV keys by key id, derived once.
    private let cipherKeys: [TokenKeys.KeyID: [UInt8]]

    /// Nil if a key cannot be derived.
    package init?(keys: TokenKeys) {
        self.keys = keys
        var cipherKeys: [TokenKeys.KeyID: [UInt8]] = [:]
        for id in keys.ids {
            guard let key = keys.secret(id),
                let derived = try? HKDFSHA256.derive(
                    key: key, info: Array("postern message ids 1".utf8), length: 64)
            else { return nil }
            cipherKeys[id] = derived
        }
        self.cipherKeys = cipherKeys
    }

    /// The id, without angle brackets, that the team sees instead of one of the user's ids.
    package func hide(_ id: [UInt8], account: AccountNumber, relayDomain: String) -> [UInt8] {
        let local: [UInt8]
        if id.count <= Self.maximumReversibleLength, let key = cipherKeys[keys.activeID],
            let sealed = try? AESSIV.seal(id, key: key, associatedData: [Self.label(account)])
        {
            local = [keys.activeID, Self.hidden] + Base32.encode(sealed)
        } else {
            let name = mac("one-way", id, account: account, key: keys.activeKey)
            local =
                [keys.activeID, Self.oneWay] + name
                + mac("one-way tag", name, account: account, key: keys.activeKey).prefix(
                    Self.tagDigits)
        }
        return local + [UInt8(ascii: "@")] + Array(relayDomain.utf8)
    }

    /// The user's own id behind this one; nil if it is not one of this account's hidden ids.
    package func reveal(
        _ id: [UInt8], account: AccountNumber, isRelayDomain: (String) -> Bool
    ) -> [UInt8]? {
        guard let (tag, text, keyID) = parts(of: id, isRelayDomain: isRelayDomain),
            tag == Self.hidden,
            let key = cipherKeys[keyID],
            let sealed = Base32.decode(text)
        else { return nil }
        return try? AESSIV.open(sealed, key: key, associatedData: [Self.label(account)])
    }

    /// Whether this is a hidden id of this account's user, reversible or not. An answer returns it
    /// unchanged; hidden again, it would be an id that the team never saw. Another account's hidden
    /// id is hidden again, so that a team learns nothing about another team.
    package func isHidden(
        _ id: [UInt8], account: AccountNumber, isRelayDomain: (String) -> Bool
    ) -> Bool {
        if reveal(id, account: account, isRelayDomain: isRelayDomain) != nil { return true }
        guard let (tag, text, keyID) = parts(of: id, isRelayDomain: isRelayDomain),
            tag == Self.oneWay,
            text.count > Self.tagDigits,
            let key = keys.key(keyID)
        else { return false }
        let right = mac(
            "one-way tag", Array(text.dropLast(Self.tagDigits)), account: account, key: key
        ).prefix(Self.tagDigits)
        return constantTimeEqual(Array(right), Array(text.suffix(Self.tagDigits)))
    }

    /// An id that a forward adds to References for a message id at a domain that is not the team's.
    /// The answer repeats References. This shows that the message id came from the team and may
    /// return unchanged.
    package func witness(for id: [UInt8], account: AccountNumber, relayDomain: String) -> [UInt8] {
        [keys.activeID, Self.witness] + mac("witness", id, account: account, key: keys.activeKey)
            + [UInt8(ascii: "@")]
            + Array(relayDomain.utf8)
    }

    /// A legal id that replaces one of the team's that is not legal. An answer shows the team its
    /// own id again. An id that is too long to be written in it gets a witness, which no answer
    /// shows.
    package func standIn(for id: [UInt8], account: AccountNumber, relayDomain: String) -> [UInt8] {
        guard id.count <= Self.maximumReversibleLength, let key = cipherKeys[keys.activeID],
            let sealed = try? AESSIV.seal(
                id, key: key, associatedData: [Self.standInLabel(account)])
        else { return witness(for: id, account: account, relayDomain: relayDomain) }
        return [keys.activeID, Self.standIn] + Base32.encode(sealed) + [UInt8(ascii: "@")]
            + Array(relayDomain.utf8)
    }

    /// The team's own id behind a stand-in; nil if it is not one of this account's.
    package func original(
        of id: [UInt8], account: AccountNumber, isRelayDomain: (String) -> Bool
    ) -> [UInt8]? {
        guard let (tag, text, keyID) = parts(of: id, isRelayDomain: isRelayDomain),
            tag == Self.standIn,
            let key = cipherKeys[keyID], let sealed = Base32.decode(text)
        else { return nil }
        return try? AESSIV.open(sealed, key: key, associatedData: [Self.standInLabel(account)])
    }

    private static func standInLabel(_ account: AccountNumber) -> [UInt8] {
        label(account) + Array(" stand-in".utf8)
    }

    /// Whether an id has the form of a witness. Witnesses are never sent to a team.
    package func isWitness(_ id: [UInt8], isRelayDomain: (String) -> Bool) -> Bool {
        parts(of: id, isRelayDomain: isRelayDomain)?.tag == Self.witness
    }

    /// The local parts of the witnesses among these ids; `isWitnessed` looks ids up in them.
    package func witnesses(among ids: [[UInt8]], isRelayDomain: (String) -> Bool) -> Set<[UInt8]> {
        var witnesses: Set<[UInt8]> = []
        for id in ids where isWitness(id, isRelayDomain: isRelayDomain) {
            guard let at = id.lastIndex(of: UInt8(ascii: "@")) else { continue }
            witnesses.insert(Array(id[..<at]))
        }
        return witnesses
    }

    /// Whether one of these witnesses was made for this id and account. Costs one code for each key
    /// and one look-up in the set, as a header can contain thousands of ids and witnesses.
    package func isWitnessed(
        _ id: [UInt8], by witnesses: Set<[UInt8]>, account: AccountNumber
    ) -> Bool {
        guard !witnesses.isEmpty else { return false }
        return keys.ids.contains { keyID in
            guard let key = keys.key(keyID) else { return false }
            return witnesses.contains(
                [keyID, Self.witness] + mac("witness", id, account: account, key: key))
        }
    }

    /// The maximum work (`WorkBudget`) to find the owner of an id and to hide it.
    func work(_ id: [UInt8]) -> Int { (keys.ids.count + 4) * (2_000 + 2 * id.count) }

    private func parts(
        of id: [UInt8], isRelayDomain: (String) -> Bool
    ) -> (
        tag: UInt8, text: ArraySlice<UInt8>, key: TokenKeys.KeyID
    )? {
        guard let at = id.lastIndex(of: UInt8(ascii: "@")), at > 2, keys.key(id[0]) != nil,
            isRelayDomain(String(decoding: id[(at + 1)...], as: UTF8.self))
        else { return nil }
        return (id[1], id[2..<at], id[0])
    }

    private func mac(
        _ purpose: String, _ id: [UInt8], account: AccountNumber, key: HMACSHA256
    ) -> [UInt8] {
        let code = key.authenticationCode(
            for: Array("postern message id \(purpose) 1\n".utf8) + Self.label(account) + [0] + id)
        return Array(Base32.encode(code).prefix(26))
    }

    private static func label(_ account: AccountNumber) -> [UInt8] {
        Array("account \(account.rawValue)".utf8)
    }
}

extension MessageIDs {
    /// The ids in a Message-ID, In-Reply-To or References field, in order, without angle
    /// brackets and white space.
    package static func ids(in value: some Sequence<UInt8>) -> [[UInt8]] {
        var ids: [[UInt8]] = []
        var current: [UInt8]?
        for octet in value {
            switch octet {
            case UInt8(ascii: "<"): current = []
            case UInt8(ascii: ">"):
                if let id = current, !id.isEmpty { ids.append(id) }
                current = nil
            case 0x20, 0x09, 0x0D, 0x0A: break
            default: current?.append(octet)
            }
        }
        return ids
    }

    /// The ids of a field even without brackets: a single word, or only the words with an `@`.
    package static func read(in value: some Sequence<UInt8>) -> [[UInt8]] {
        let ids = ids(in: value)
        guard ids.isEmpty else { return ids }
        let words = value.filter { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">") }.split(
            whereSeparator: \.isFoldingWhiteSpace)
        return words.count == 1 || words.allSatisfy { $0.contains(UInt8(ascii: "@")) }
            ? words.map { Array($0) } : []
    }

    /// Whether every program reads an id, without its brackets, in the same way (RFC 5322 section
    /// 3.6.4).
    package static func isLegal(_ id: [UInt8]) -> Bool {
        guard let at = id.lastIndex(of: UInt8(ascii: "@")), at > 0, at + 1 < id.count else {
            return false
        }
        return id.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// A field value of these ids, each on its own line.
    package static func value(_ ids: [[UInt8]]) -> [UInt8] {
        var value: [UInt8] = []
        for id in ids {
            if !value.isEmpty { value += [0x0D, 0x0A] }
            value += [0x20, UInt8(ascii: "<")] + id + [UInt8(ascii: ">")]
        }
        return value
    }
}
