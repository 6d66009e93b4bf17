// The TXT record that publishes a signing key (RFC 6376 section 3.6.1), in the forms that name
// servers need.

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
    ///   - isTesting: adds `t=y`, so that verifiers treat the mail as unsigned.
    /// - Throws: `DKIMSigner.InvalidName`, `CryptoError`.
    package init(
        domain: String, selector: String, key: DKIMSigningKey, isTesting: Bool = false
    ) throws {
        let signer = try DKIMSigner(domain: domain, selector: selector, key: key)
        name = "\(signer.selector)._domainkey.\(signer.domain)"
        let data = String(decoding: Base64.encodeUnbroken(try key.publicKeyData()), as: UTF8.self)
        text = "v=DKIM1; k=\(key.algorithm.rawValue);\(isTesting ? " t=y;" : "") p=\(data)"
    }

    /// The text divided into character-strings of at most 255 octets (RFC 1035 section 3.3), to be
    /// joined without a separator.
    package var characterStrings: [String] {
        let octets = Array(text.utf8)
        return stride(from: 0, to: octets.count, by: 255).map {
            String(decoding: octets[$0..<min($0 + 255, octets.count)], as: UTF8.self)
        }
    }

    /// One record as written in a zone file (RFC 1035 section 5.1), with the full name and its
    /// dot; no line end after it.
    package var zoneFileRecord: String {
        let strings = characterStrings.map { "\"\($0)\"" }
        return strings.count == 1
            ? "\(name). IN TXT \(strings[0])"
            : "\(name). IN TXT ( \(strings.joined(separator: "\n    ")) )"
    }

    /// The fault in the DNS answer for `name`, for the operator; nil if verifiers find this key
    /// there.
    package func objection(to answer: DNSAnswer) -> String? {
        guard case .records(let records) = answer else { return DKIMKeyAnswer(answer).text }
        let texts = records.compactMap { if case .txt(let text) = $0 { text } else { nil } }
        guard let own = try? DKIMKeyRecord(Array(text.utf8)) else {
            return "the key to be published cannot be read"
        }
        let found = texts.compactMap { try? DKIMKeyRecord($0) }
        guard
            let match = found.first(where: {
                $0.algorithm == own.algorithm && $0.keyData == own.keyData
            })
        else {
            return found.isEmpty ? DKIMKeyAnswer(answer).text : "another key is published"
        }
        if !match.allowsSHA256 { return "the record does not allow SHA-256 (h=)" }
        if match.isTesting, !own.isTesting {
            return "the record says test mode (t=y): mail counts as unsigned"
        }
        if found.count > 1 {
            return "there are \(found.count) keys at one name, and verifiers may take the wrong one"
        }
        return nil
    }
}

/// The DNS answer for a key's name.
package enum DKIMKeyAnswer: Sendable {
    /// No usable key, with the reason for the operator.
    case none(String)
    case keys([PublishedKey])

    package struct PublishedKey: Sendable {
        /// Nil if its data cannot be read.
        package let key: DKIMPublicKey?
        /// `t=y`: its signatures prove nothing.
        package let isTesting: Bool

        fileprivate var text: String {
            key.map { $0.text + (isTesting ? ", test mode (t=y)" : "") }
                ?? "a key that cannot be read"
        }
    }

    package init(_ answer: DNSAnswer) {
        var lookup = DKIMKeyLookup(resolver: KnownAnswer(answer: answer), limits: DKIMLimits())
        switch lookup.records("") {
        case .failed(_, let reason): self = .none(reason)
        case .found(let records):
            self = .keys(records.map { PublishedKey(key: $0.publicKey, isTesting: $0.isTesting) })
        }
    }

    /// For the operator: `rsa, 2048 bits`, `no key in the DNS`, ….
    package var text: String {
        switch self {
        case .none(let reason): reason
        case .keys(let keys): keys.map(\.text).joined(separator: "; ")
        }
    }
}

private struct KnownAnswer: DNSResolver {
    let answer: DNSAnswer
    func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer { answer }
}
