// Client data: the browser's report of a ceremony (WebAuthn Level 3 section 5.8.1).

import Support

/// The expected content of client data.
package struct ExpectedClient: Sendable, Hashable {
    /// Whether the page may be framed by a page of another origin, and by which.
    package enum Framing: Sendable, Hashable {
        /// Never: Postern's own pages forbid frames.
        case none
        /// In a page of one of these origins.
        case within([String])
        /// For diagnosis only.
        case anywhere
    }

    /// As the browser writes them: `https://id.example`, or `android:apk-key-hash:…`.
    package let origins: [String]
    package let framing: Framing

    package init(origins: [String], framing: Framing = .none) {
        self.origins = origins
        self.framing = framing
    }
}

/// The two ceremonies.
package enum Ceremony: String, Sendable {
    case create = "webauthn.create"
    case get = "webauthn.get"
}

enum ClientData {
    /// The most octets of client data: an origin and a challenge, with room
    /// for additions by browsers.
    private static let longest = 16_384

    /// Compares the octets, as received, with the expected values. Unknown members are ignored:
    /// browsers add some to discourage text comparison.
    static func check(
        _ octets: [UInt8], _ ceremony: Ceremony, challenge: [UInt8], _ expected: ExpectedClient
    ) throws(WebAuthnError) {
        // "UTF-8 decode" (section 7.1 step 5) removes a byte order mark.
        let text = octets.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(octets.dropFirst(3)) : octets
        let object: JSONObject
        do throws(JSONError) { object = try StrictJSON.parseObject(text, limit: longest) } catch {
            throw WebAuthnError(.clientData, "\(error)")
        }
        guard object["type"]?.string == ceremony.rawValue else {
            throw WebAuthnError(.type, "it is not \(ceremony.rawValue)")
        }
        guard let sent = object["challenge"]?.string else {
            throw WebAuthnError(.challenge, "there is none")
        }
        guard !challenge.isEmpty, sent == Base64URL.encode(challenge) else {
            throw WebAuthnError(.challenge, "it is not the one that was issued")
        }
        guard let origin = object["origin"]?.string,
            expected.origins.contains(where: { $0.hasSameOctets(as: origin) })
        else {
            throw WebAuthnError(.origin, "it is not an expected one")
        }
        try checkFrame(object, expected.framing)
    }

    private static func checkFrame(
        _ object: JSONObject, _ framing: ExpectedClient.Framing
    ) throws(WebAuthnError) {
        let top = object["topOrigin"]
        guard let crossOrigin = object["crossOrigin"] else {
            guard top == nil else {
                throw WebAuthnError(.crossOrigin, "a page outside without being inside one")
            }
            return
        }
        guard let isCrossOrigin = crossOrigin.bool, top == nil || top?.string != nil else {
            throw WebAuthnError(.crossOrigin, "a member has the wrong type")
        }
        switch framing {
        case .anywhere: return
        case .none where isCrossOrigin || top != nil:
            throw WebAuthnError(.crossOrigin, "inside a page of another origin")
        case .within(let origins) where isCrossOrigin || top != nil:
            guard let origin = top?.string,
                origins.contains(where: { $0.hasSameOctets(as: origin) })
            else {
                throw WebAuthnError(.crossOrigin, "inside a page of an origin that is not expected")
            }
        default: return
        }
    }
}
