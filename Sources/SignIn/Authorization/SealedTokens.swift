// Values that pass through a browser, which can neither read nor change them.

import Accounts
import Database
import Foundation
import MailCrypto
import Support

/// Seals values into text: a random part, and the value encrypted with a key derived from it.
struct SealedTokens {
    /// Octets of the random part. Each derived key is used once.
    static let tokenLength = 20
    private static let nonce = [UInt8](repeating: 0, count: 12)

    let secrets: SecretHash

    /// Base64url.
    func seal(_ value: some Encodable, _ purpose: SecretHash.Purpose) throws(StoreFailure) -> String
    {
        let token = try Self.newToken()
        return Base64URL.encode(token + (try encrypt(value, token, purpose)))
    }

    /// The value of a text made by `seal`; nil for anything else.
    func open<Value: Decodable>(_ text: String, _ purpose: SecretHash.Purpose) -> Value? {
        Self.parts(text).flatMap { decrypt($0.sealed, $0.token, purpose) }
    }

    static func newToken() throws(StoreFailure) -> [UInt8] { try SecureRandom.octets(tokenLength) }

    static func parts(_ text: String) -> (token: [UInt8], sealed: [UInt8])? {
        guard text.utf8.count <= 65_536, let octets = Base64URL.decode(text.utf8),
            octets.count > tokenLength
        else { return nil }
        return (Array(octets.prefix(tokenLength)), Array(octets.dropFirst(tokenLength)))
    }

    func encrypt(
        _ value: some Encodable, _ token: [UInt8], _ purpose: SecretHash.Purpose
    ) throws(StoreFailure) -> [UInt8] {
        do {
            let plain = Array(try JSONEncoder().encode(value))
            return try AESGCM.seal(
                plain, key: key(token, purpose), nonce: Self.nonce, associatedData: [])
        } catch {
            throw .temporary(.resources, "sealing failed: \(error)")
        }
    }

    func decrypt<Value: Decodable>(
        _ sealed: [UInt8], _ token: [UInt8], _ purpose: SecretHash.Purpose
    ) -> Value? {
        let plain = try? AESGCM.open(
            sealed, key: key(token, purpose), nonce: Self.nonce, associatedData: [])
        return plain.flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
    }

    private func key(_ token: [UInt8], _ purpose: SecretHash.Purpose) -> [UInt8] {
        secrets.hash(purpose, Hex.encode(token), context: "key")
    }
}
