// The TXT record that publishes a signing key (RFC 6376 section 3.6.1), in the forms that name servers want.

import MailCrypto

/// What stands in the DNS for one key.
package struct DKIMKeyPublication: Sendable, Hashable {
    /// `selector._domainkey.domain`, without trailing dot.
    package let name: String
    /// The record's text in one piece: `v=DKIM1; k=rsa; p=…`.
    package let text: String

    /// - Parameters:
    ///   - domain: the signing domain, ASCII form.
    ///   - isTesting: adds `t=y`: verifiers then treat the mail as unsigned.
    /// - Throws: `DKIMSigner.InvalidName`, `CryptoError`.
    package init(domain: String, selector: String, key: DKIMSigner.Key, isTesting: Bool = false) throws {
        let signer = try DKIMSigner(domain: domain, selector: selector, key: key)
        name = "\(signer.selector)._domainkey.\(signer.domain)"
        let type: String
        let data: [UInt8]
        switch key {
        case .rsa(let key):
            type = "rsa"
            data = try key.publicKeyInfo()
        case .ed25519(let key):
            type = "ed25519"
            data = try key.rawPublicKey()
        }
        text = "v=DKIM1; k=\(type);\(isTesting ? " t=y;" : "") p=\(String(decoding: DKIMBase64.encode(data), as: UTF8.self))"
    }

    /// The text cut into character-strings of at most 255 octets (RFC 1035 section 3.3), to be joined without a separator.
    package var characterStrings: [String] {
        let octets = Array(text.utf8)
        return stride(from: 0, to: octets.count, by: 255).map {
            String(decoding: octets[$0..<min($0 + 255, octets.count)], as: UTF8.self)
        }
    }

    /// One record as it stands in a zone file (RFC 1035 section 5.1), with the full name and its dot; no line end behind it.
    package var zoneFileRecord: String {
        let strings = characterStrings.map { "\"\($0)\"" }
        return strings.count == 1 ? "\(name). IN TXT \(strings[0])" : "\(name). IN TXT ( \(strings.joined(separator: "\n    ")) )"
    }
}
