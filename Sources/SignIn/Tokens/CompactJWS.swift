// JWS in compact serialization (RFC 7515 section 7.1), read so strictly that each
// signature fits only one text.

import Support

/// A parsed signed text. Nothing in it is trusted yet.
package struct CompactJWS: Sendable {
    /// Longest accepted text, in octets: the tokens of known issuers are below 2 KiB.
    package static let maximumLength = 16_384

    /// The protected header; no name occurs twice.
    package let header: JSONObject
    /// `alg`, as written.
    package let algorithm: String
    /// `kid`, up to 256 octets.
    package let keyID: String?
    /// `typ`, as written.
    package let type: String?
    /// The decoded payload; at least one octet.
    package let payload: [UInt8]
    /// The decoded signature; may be empty.
    package let signature: [UInt8]
    /// The signed octets: header and payload unchanged, with the dot between.
    package let signingInput: [UInt8]

    /// Header parameters that contain keys, change what is signed, or belong to encryption. None of
    /// them is allowed in a token whose keys and algorithms are configured (RFC 8725 sections 3.1,
    /// 3.10; RFC 7797; RFC 7516).
    private static let refusedParameters = [
        "jwk", "jku", "x5c", "x5u", "crit", "b64", "zip", "enc", "epk", "apu", "apv", "iv", "tag",
        "p2s", "p2c",
    ]

    /// Parses a token. Throws `format`, and `alg` or `kid` if these are missing or not strings.
    package init(_ token: String) throws(TokenRejection) {
        try self.init(octets: Array(token.utf8))
    }

    /// Parses a token.
    package init(octets: [UInt8]) throws(TokenRejection) {
        guard octets.count <= Self.maximumLength else {
            throw TokenRejection(.format, "it is longer than \(Self.maximumLength) octets")
        }
        let segments = octets.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard segments.count == 3 else {
            throw TokenRejection(
                .format,
                segments.count == 5
                    ? "it has five segments, like an encrypted token: only signed tokens are accepted"
                    : "it has \(segments.count) segments instead of three")
        }
        guard let header = Base64URL.decode(segments[0]),
            let payload = Base64URL.decode(segments[1]),
            let signature = Base64URL.decode(segments[2])
        else {
            throw TokenRejection(.format, "a segment is not canonical base64url without padding")
        }
        do {
            self.header = try StrictJSON.parseObject(header, limit: Self.maximumLength)
        } catch {
            throw TokenRejection(.format, "the header is not valid JSON: \(error)")
        }
        guard !payload.isEmpty else { throw TokenRejection(.format, "there is no payload") }
        for name in Self.refusedParameters where self.header[name] != nil {
            throw TokenRejection(.format, "the header parameter \(name) is not allowed")
        }
        guard case .string(let algorithm)? = self.header["alg"] else {
            throw TokenRejection(.algorithm, "the header names no algorithm")
        }
        self.algorithm = algorithm
        keyID = try Self.text(self.header, "kid", .key)
        type = try Self.text(self.header, "typ", .type)
        _ = try Self.text(self.header, "cty", .format)
        self.payload = payload
        self.signature = signature
        signingInput = Array(octets[..<segments[1].endIndex])
    }

    private static func text(
        _ header: JSONObject, _ name: String, _ check: TokenRejection.Check
    ) throws(TokenRejection) -> String? {
        guard let value = header[name] else { return nil }
        guard case .string(let text) = value, (1...256).contains(text.utf8.count) else {
            throw TokenRejection(check, "\(name) is not a string of 1 to 256 octets")
        }
        return text
    }
}

extension CompactJWS: CustomStringConvertible, CustomReflectable {
    package var description: String { "<token>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
