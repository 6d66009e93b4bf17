// Sealing: encrypts private data in the database, and binds it to its place there.

import Database
import InternetMessage
import MailCrypto
import Support

/// A sealed value as two columns.
package struct SealedValue: Sendable, Hashable {
    /// Id of the seal key.
    package let key: String
    /// 12 octets of nonce, then ciphertext and tag (AES-256-GCM).
    package let octets: [UInt8]

    package init(key: String, octets: [UInt8]) { (self.key, self.octets) = (key, octets) }

    /// From the columns `NAME_key` and `NAME_sealed`; nil if they are NULL.
    package init?(row: SQLRow, _ name: String) throws(StoreFailure) {
        guard let octets: [UInt8] = try row[name + "_sealed"] else { return nil }
        try self.init(key: row[name + "_key"], octets: octets)
    }
}

/// The place of a sealed value. It is associated data, so a value that was moved to another row
/// cannot be opened there.
package enum SealContext {
    case userName(user: Int64)
    case givenName(user: Int64)
    case inbox(user: Int64)
    case storedToken(String)
    case dkimKey(domain: String, selector: String)
    case identityKey(String)
    case passkeyName(user: Int64)
    /// The secret of an authenticator app.
    case authenticator(user: Int64)
    case accountName(account: Int64)
    case accountNote(account: Int64)
    case lastSender(account: Int64)
    case deviceKey(mark: [UInt8])
    /// The credential that a receiver expects in the Authorization field.
    case streamAuthorization(String)
    /// The credential that an issuer expects when we fetch its events.
    case issuerPoll(String)

    var octets: [UInt8] {
        switch self {
        case .userName(let user): Array("postern user name 1 \(user)".utf8)
        case .givenName(let user): Array("postern given name 1 \(user)".utf8)
        case .inbox(let user): Array("postern inbox 1 \(user)".utf8)
        case .storedToken(let token): Array("postern stored token 1 \(token)".utf8)
        case .dkimKey(let domain, let selector):
            Array("postern dkim key 1 \(selector)._domainkey.\(domain)".utf8)
        case .identityKey(let keyID): Array("postern identity key 1 \(keyID)".utf8)
        case .passkeyName(let user): Array("postern passkey name 1 \(user)".utf8)
        case .authenticator(let user): Array("postern authenticator 1 \(user)".utf8)
        case .accountName(let account): Array("postern account name 1 \(account)".utf8)
        case .accountNote(let account): Array("postern account note 1 \(account)".utf8)
        case .lastSender(let account): Array("postern last sender 1 \(account)".utf8)
        case .deviceKey(let mark): Array("postern device key 1 \(Hex.encode(mark))".utf8)
        case .issuerPoll(let name): Array("postern issuer poll 1 \(name)".utf8)
        case .streamAuthorization(let id): Array("postern stream authorization 1 \(id)".utf8)
        }
    }
}

/// Seals and opens with the installation's seal keys.
package struct Sealer: Sendable {
    private let keys: KeyHolder
    /// Plaintexts are padded to a multiple of this, so that their length reveals almost nothing.
    private static let block = 64
    /// GCM with random nonces allows 2^32 values a key (NIST SP 800-38D section 8.3): far
    /// beyond any number of inboxes.
    private static let nonceLength = 12

    init(keys: KeyHolder) { self.keys = keys }

    /// Ensures that the active key is the one in use. Throws `staleKeys`.
    package func require(_ connection: any DatabaseConnection) throws(StoreFailure) {
        try connection.require(.seal, keys.current.seal.active.idText)
    }

    /// Seals with the active key and a random nonce, for a row that is written in this transaction.
    /// At most 65,535 octets. Throws `staleKeys` if another key is active by now.
    /// - Parameter connection: nil if `require` was called in this transaction.
    package func seal(
        _ plaintext: [UInt8], _ context: SealContext, _ connection: (any DatabaseConnection)?
    ) throws(StoreFailure) -> SealedValue {
        let active = keys.current.seal.active
        try connection?.require(.seal, active.idText)
        guard plaintext.count <= 0xFFFF else {
            throw .refused(.invalid, "the value is longer than 65535 octets")
        }
        var padded = [UInt8(plaintext.count >> 8), UInt8(plaintext.count & 0xFF)] + plaintext
        let rest = padded.count % Self.block
        if rest > 0 { padded += [UInt8](repeating: 0, count: Self.block - rest) }
        do {
            let nonce = try SecureRandom.bytes(count: Self.nonceLength)
            let sealed = try AESGCM.seal(
                padded, key: active.secret, nonce: nonce, associatedData: context.octets)
            return SealedValue(key: active.idText, octets: nonce + sealed)
        } catch {
            throw .temporary(.resources, "sealing failed: \(error)")
        }
    }

    /// Opens a value. Throws `unsealing` if its key is missing, or if the
    /// value was changed or moved.
    package func open(_ value: SealedValue, _ context: SealContext) throws(StoreFailure) -> [UInt8]
    {
        guard let key = keys.current.seal[value.key] else {
            throw .permanent(
                .unsealing, "a value was sealed with key \(value.key), which the key file lacks")
        }
        guard value.octets.count > Self.nonceLength,
            let padded = try? AESGCM.open(
                Array(value.octets[Self.nonceLength...]), key: key.secret,
                nonce: Array(value.octets[..<Self.nonceLength]),
                associatedData: context.octets),
            padded.count >= 2
        else {
            throw .permanent(
                .unsealing, "a sealed value cannot be opened: wrong key file, or changed data")
        }
        let length = Int(padded[0]) << 8 | Int(padded[1])
        guard length <= padded.count - 2 else {
            throw .permanent(.unsealing, "a sealed value has an impossible length")
        }
        return Array(padded[2..<(2 + length)])
    }

    /// Seals text.
    package func seal(
        _ text: String, _ context: SealContext, _ connection: (any DatabaseConnection)?
    ) throws(StoreFailure) -> SealedValue {
        try seal(Array(text.utf8), context, connection)
    }

    /// Opens text.
    package func openText(
        _ value: SealedValue, _ context: SealContext
    ) throws(StoreFailure) -> String {
        String(decoding: try open(value, context), as: UTF8.self)
    }

    /// A user's name from the columns `name_key` and `name_sealed`; nil if they are NULL.
    package func name(_ row: SQLRow, user: Int64) throws(StoreFailure) -> String? {
        try SealedValue(row: row, "name").map { row throws(StoreFailure) in
            try openText(row, .userName(user: user))
        }
    }

    /// An inbox address from the columns `address_key` and `address_sealed`.
    package func inbox(_ row: SQLRow, user: Int64) throws(StoreFailure) -> InboxAddress {
        guard let sealed = try SealedValue(row: row, "address") else {
            throw .permanent(.unexpectedData, "an inbox has no address")
        }
        return InboxAddress(try openAddress(sealed, .inbox(user: user)))
    }

    /// Seals an address: length of the local part in two octets, local part, domain.
    package func seal(
        _ address: AddrSpec, _ context: SealContext, _ connection: (any DatabaseConnection)?
    ) throws(StoreFailure) -> SealedValue {
        let local = Array(address.localPart.utf8)
        guard local.count <= 0xFFFF else { throw .refused(.invalid, "the address is too long") }
        return try seal(
            [UInt8(local.count >> 8), UInt8(local.count & 0xFF)] + local
                + Array(address.domain.utf8), context, connection)
    }

    /// Opens an address.
    package func openAddress(
        _ value: SealedValue, _ context: SealContext
    ) throws(StoreFailure) -> AddrSpec {
        let octets = try open(value, context)
        guard octets.count >= 2, octets.count - 2 >= Int(octets[0]) << 8 | Int(octets[1]) else {
            throw .permanent(.unsealing, "a sealed address has an impossible length")
        }
        let end = 2 + (Int(octets[0]) << 8 | Int(octets[1]))
        return AddrSpec(
            localPart: String(decoding: octets[2..<end], as: UTF8.self),
            domain: String(decoding: octets[end...], as: UTF8.self))
    }
}
