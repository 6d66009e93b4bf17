// Signatures with any tags, right or wrong, made with the module's own parts.

import Foundation
import InternetMessage
import MailCrypto
import Support

@testable import MailAuth

enum DKIMForge {
    static let rsa: Result<RSAPrivateKey, any Error> = Result {
        try RSAPrivateKey.generate(bits: 1024)
    }
    static let ed25519: Result<Ed25519PrivateKey, any Error> = Result {
        try Ed25519PrivateKey.generate()
    }

    static let keyName = "s._domainkey.app.example"

    /// `p=` of the key for this algorithm.
    static func publicKey(_ algorithm: String = "ed25519-sha256") throws -> String {
        let bytes =
            algorithm.hasPrefix("rsa")
            ? try rsa.get().publicKeyInfo() : try ed25519.get().rawPublicKey()
        return String(decoding: Base64.encodeUnbroken(bytes), as: UTF8.self)
    }

    static func dns(
        _ tags: String = "v=DKIM1; k=ed25519;", algorithm: String = "ed25519-sha256"
    ) throws -> DKIMTestDNS {
        DKIMTestDNS(txt: [keyName: "\(tags) p=\(try publicKey(algorithm))"])
    }

    static let message = DKIMTestMessage(
        "From: a@app.example\r\nTo: b@relay.example\r\nSubject: x\r\n\r\nLine one\r\nLine two\r\n")

    /// Adds a signature at the top. `{bh}` and `{b}` in `template` are replaced by the body hash
    /// and the signature; the field name is added.
    static func sign(
        _ message: DKIMTestMessage = message,
        _ template: String = "v=1; a=ed25519-sha256; d=app.example; s=s; h=from; bh={bh}; b={b}",
        header: DKIMCanonicalization = .simple, body: DKIMCanonicalization = .simple,
        length: Int? = nil,
        names: [String] = ["from"]
    ) throws -> DKIMTestMessage {
        let canonical = canonicalBody(body, message.body, chunk: 4096)
        let hash = Base64.encodeUnbroken(SHA256.hash(canonical.prefix(length ?? canonical.count)))
        let text = " " + template.replacing("{bh}", with: String(decoding: hash, as: UTF8.self))
        let unsigned = HeaderField(
            name: "DKIM-Signature", rawValue: Array(text.replacing(/\s*\{b\}\s*/, with: "").utf8))
        let fields = DKIMSignedFields(message.header)
        let digest = fields.digest(
            fields.signed(DKIMNameList(names), own: nil), canonicalization: header,
            signatureField: unsigned,
            signatureRange: 0..<0)
        let signature =
            template.contains("rsa-")
            ? try rsa.get().signSHA256(digest: digest) : try ed25519.get().sign(digest)
        var signed = message
        let value = text.replacing(
            "{b}", with: String(decoding: Base64.encodeUnbroken(signature), as: UTF8.self))
        signed.header.fields.insert(
            HeaderField(name: "DKIM-Signature", rawValue: Array(value.utf8)), at: 0)
        return signed
    }
}
