// Parts that identify their user by a key: signatures, keys and certificates, and encrypted parts
// (RFC 3156, RFC 8551).

import InternetMessage

/// The kind of an OpenPGP or S/MIME part, by its type, its file name and its first octets.
enum CryptographicPart: Hashable {
    /// A signature in a separate part, a key or a certificate. It leads to the inbox by a key
    /// server and proves nothing for a relay address, so it is removed.
    case removable
    /// A signature with the signed text inside it: they cannot be separated.
    case enclosing
    /// Contains the ids of the keys that open it, usually also the user's own, and cannot be
    /// searched.
    case encrypted

    private static let removableTypes: Set<String> = [
        "pgp-signature", "pgp-keys", "pkcs7-signature", "x-pkcs7-signature", "pkix-cert",
        "x-x509-ca-cert", "x-x509-user-cert",
        "x-x509-email-cert", "x-pkcs7-certificates",
    ]

    /// Maximum octets of a body that are read.
    private static let head = 1_024

    /// Nil for any other part.
    init?(_ part: MIMEPart, in bytes: [UInt8]) {
        guard !part.isComposite else { return nil }
        let type = part.contentType
        let name = (part.fileName ?? "").lowercased()
        if type.matches("application") {
            if Self.removableTypes.contains(type.subtype) {
                self = .removable
                return
            }
            if type.subtype == "pgp-encrypted" {
                self = .encrypted
                return
            }
        }
        // Text is read as text; blocks in it are found anywhere (`ArmouredBlocks`).
        if PartKind.isText(type) { return nil }
        let raw = bytes[part.bodyRange].prefix(Self.head)
        let start = (part.transferEncoding.decode(raw)?.bytes ?? Array(raw)).drop(
            while: \.isFoldingWhiteSpace)
        if type.matches("application"),
            type.subtype == "pkcs7-mime" || type.subtype == "x-pkcs7-mime"
        {
            self = Self.ofSMIME(type.parameters["smime-type"]?.lowercased(), name: name, start)
        } else if let kind = Self.ofArmour(start) ?? Self.ofName(name, start) {
            self = kind
        } else {
            return nil
        }
    }

    private static func ofSMIME(
        _ kind: String?, name: String, _ start: ArraySlice<UInt8>
    ) -> CryptographicPart {
        if kind == "certs-only" || kind == nil && name.hasSuffix(".p7c") { return .removable }
        return kind == "signed-data" || isSignedData(start) ? .enclosing : .encrypted
    }

    /// The object identifier of signed-data, 1.2.840.113549.1.7.2, at the start of its ContentInfo
    /// (RFC 5652 section 5.1).
    private static let signedData: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02,
    ]

    private static func isSignedData(_ start: ArraySlice<UInt8>) -> Bool {
        // A tag and a length of at most nine octets come before it.
        (2...10).contains { start.dropFirst($0).starts(with: signedData) }
    }

    private static func ofArmour(_ start: ArraySlice<UInt8>) -> CryptographicPart? {
        guard start.starts(with: "-----BEGIN PGP ".utf8) else { return nil }
        let kind = start.dropFirst(15)
        if kind.starts(with: "MESSAGE".utf8) { return .encrypted }
        return kind.starts(with: "SIGNED MESSAGE".utf8) ? .enclosing : .removable
    }

    private static func ofName(_ name: String, _ start: ArraySlice<UInt8>) -> CryptographicPart? {
        if name.hasSuffix(".p7s") || name.hasSuffix(".p7c") || name.hasSuffix(".p7b") {
            return .removable
        }
        if name.hasSuffix(".p7m") { return isSignedData(start) ? .enclosing : .encrypted }
        guard [".asc", ".gpg", ".pgp", ".sig", ".key"].contains(where: { name.hasSuffix($0) })
        else { return nil }
        // The tag of the first packet (RFC 9580 section 4.2), in both formats.
        switch start.first {
        case 0x88, 0x89, 0xC2, 0x98, 0x99, 0x9A, 0xC6: return .removable
        case 0x84, 0x85, 0xC1, 0x8C, 0xC3: return .encrypted
        default: return nil
        }
    }
}
