// The blind index: finds an inbox by its address without storing the address.

import InternetMessage
import MailCrypto

/// Keyed hashes of addresses.
struct BlindIndex: Sendable {
    private let key: KeyVersion
    private let providers: ProviderRules
    /// 128 bits: two addresses with one index do not happen.
    private static let length = 16

    init(keys: KeySet, providers: ProviderRules) {
        key = keys.active
        self.providers = providers
    }

    /// Id of the key in use.
    var keyID: String { key.idText }

    /// The index of an address, letter case aside.
    func exact(_ address: AddrSpec) -> [UInt8] { hash("address", address.folded) }

    /// The index of the address in its provider's canonical form: one for all spellings that reach one mailbox.
    func canonical(_ address: AddrSpec) -> [UInt8] { hash("canonical", providers.canonical(address)) }

    /// A hash of the canonical form under a key used for nothing else: by it sign-ups are counted, and it says nothing of `canonical`.
    func velocity(_ address: AddrSpec) -> [UInt8] {
        let velocityKey = HMACSHA256.authenticationCode(for: Array("postern velocity key 1".utf8), key: key.secret)
        return Array(HMACSHA256.authenticationCode(for: canonical(address), key: velocityKey).prefix(Self.length))
    }

    private func hash(_ purpose: String, _ address: AddrSpec) -> [UInt8] {
        let local = Array(address.localPart.utf8)
        // The length keeps local part and domain apart whatever they hold.
        let message = Array("postern inbox \(purpose) 1 \(local.count) ".utf8) + local + Array("@\(address.domain)".utf8)
        return Array(HMACSHA256.authenticationCode(for: message, key: key.secret).prefix(Self.length))
    }
}
