// The TXT record that publishes a signing key (RFC 6376 section 3.6.1), in the forms that name servers want.

import MailCrypto
import Support

/// The DNS record for one key.
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
        text = "v=DKIM1; k=\(type);\(isTesting ? " t=y;" : "") p=\(String(decoding: Base64.encodeUnbroken(data), as: UTF8.self))"
    }

    /// The text cut into character-strings of at most 255 octets (RFC 1035 section 3.3), to be joined without a separator.
    package var characterStrings: [String] {
        let octets = Array(text.utf8)
        return stride(from: 0, to: octets.count, by: 255).map {
            String(decoding: octets[$0..<min($0 + 255, octets.count)], as: UTF8.self)
        }
    }

    /// One record as written in a zone file (RFC 1035 section 5.1), with the full name and its dot; no line end after it.
    package var zoneFileRecord: String {
        let strings = characterStrings.map { "\"\($0)\"" }
        return strings.count == 1 ? "\(name). IN TXT \(strings[0])" : "\(name). IN TXT ( \(strings.joined(separator: "\n    ")) )"
    }

    /// What is wrong with the DNS answer for `name`, in words for the operator; nil if verifiers find this key there.
    package func objection(to answer: DNSAnswer) -> String? {
        guard case .records(let records) = answer else { return Self.describe(answer) }
        let texts = records.compactMap { if case .txt(let text) = $0 { text } else { nil } }
        guard let own = try? DKIMKeyRecord(Array(text.utf8)) else { return "the key to be published cannot be read" }
        let found = texts.compactMap { try? DKIMKeyRecord($0) }
        guard let match = found.first(where: { $0.keyType == own.keyType && $0.keyData == own.keyData }) else {
            return found.isEmpty ? Self.describe(answer) : "another key is published"
        }
        if !match.allowsSHA256 { return "the record does not allow SHA-256 (h=)" }
        if match.isTesting, !own.isTesting { return "the record says test mode (t=y): mail counts as unsigned" }
        if found.count > 1 { return "there are \(found.count) keys at one name, and verifiers may take the wrong one" }
        return nil
    }

    /// Describes an answer for a key's name, in words for the operator: `rsa, 2048 bits`, `no key in the DNS`, ….
    package static func describe(_ answer: DNSAnswer) -> String {
        var lookup = DKIMKeyLookup(resolver: KnownAnswer(answer: answer), limits: DKIMLimits())
        switch lookup.records("") {
        case .failed(_, let reason): return reason
        case .found(let records):
            return records.map { record in
                let testing = record.isTesting ? ", test mode (t=y)" : ""
                switch record.publicKey {
                case .rsa(let key): return "rsa, \(key.bitCount) bits\(testing)"
                case .ed25519: return "ed25519\(testing)"
                case .none: return "a key that cannot be read"
                }
            }.joined(separator: "; ")
        }
    }
}

private struct KnownAnswer: DNSResolver {
    let answer: DNSAnswer
    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer { answer }
}
