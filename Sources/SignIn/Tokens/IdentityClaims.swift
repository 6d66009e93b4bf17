// The claims of an identity token (RFC 7519 section 4, OpenID Connect Core section 2, and Apple's
// claims).

import InternetMessage
import Support

/// How likely the user is a real person, according to the issuer.
package enum RealUserStatus: Int, Sendable, Hashable, CaseIterable {
    case unsupported = 0
    case unknown = 1
    case likelyReal = 2
}

/// The claims of a token, each with its type. Prints nothing: subject and
/// address belong to the user.
package struct IdentityClaims: Sendable {
    /// Longest subject and longest of the other identifiers, in octets (OpenID
    /// Connect Core section 2).
    package static let maximumIdentifierLength = 255

    /// `iss`.
    package let issuer: String
    /// `sub`: 1 to 255 octets without control characters.
    package let subject: String
    /// `aud`: one text, or the only element of a list; of several the one that `azp` names.
    package let audience: String
    /// `exp`, seconds since 1970; a fraction counts as the next second, as in all times here.
    package let expiresAt: Int64
    /// `iat`.
    package let issuedAt: Int64
    /// `nbf`.
    package let notBefore: Int64?
    package let nonce: String?
    package let nonceSupported: Bool?
    /// `email`, if it is an address.
    package let email: InboxAddress?
    package let emailVerified: Bool?
    package let isPrivateEmail: Bool?
    /// 0 to 2; anything else counts as absent.
    package let realUserStatus: RealUserStatus?
    package let orgID: String?
    package let transferSubject: String?
    /// `auth_time`.
    package let authenticatedAt: Int64?
    /// All claims as received.
    package let all: JSONObject

    /// Reads the claims. Throws `format` for a payload that is not a JSON object, otherwise the
    /// check of the missing or wrong claim.
    package init(payload: [UInt8]) throws(TokenRejection) {
        let all: JSONObject
        do {
            all = try StrictJSON.parseObject(payload, limit: CompactJWS.maximumLength)
        } catch {
            throw TokenRejection(.format, "the payload is not valid JSON: \(error)")
        }
        try self.init(all)
    }

    /// Reads the claims of an object.
    package init(_ all: JSONObject) throws(TokenRejection) {
        let reader = ClaimReader(all)
        issuer = try reader.identifier("iss", .issuer, maximum: 2048)
        audience = try reader.audience()
        subject = try reader.identifier("sub", .subject)
        expiresAt = try reader.requiredTime("exp", .expiry)
        issuedAt = try reader.requiredTime("iat", .issuedAt)
        notBefore = try reader.time("nbf", .notBefore)
        nonce = try reader.text("nonce", .nonce, maximum: ExpectedNonce.maximumLength)
        nonceSupported = try reader.flag("nonce_supported")
        email = try reader.text("email", maximum: 2048).flatMap { AddrSpec(envelope: $0) }.map(
            InboxAddress.init)
        emailVerified = try reader.flag("email_verified")
        isPrivateEmail = try reader.flag("is_private_email")
        realUserStatus = all["real_user_status"]?.number?.integer.flatMap { Int(exactly: $0) }
            .flatMap(RealUserStatus.init)
        orgID = try reader.text("org_id")
        transferSubject = try reader.text("transfer_sub")
        authenticatedAt = try reader.time("auth_time", .claims)
        self.all = all
    }
}

extension IdentityClaims {
    /// `amr` (RFC 8176): short words, at most ten; nil if the token has no such list.
    package var authenticationMethods: [String]? {
        guard let words = all["amr"]?.array?.compactMap(\.string), words.count <= 10 else {
            return nil
        }
        return words.allSatisfy { (1...32).contains($0.utf8.count) && $0.hasNoControls }
            ? words : nil
    }
}

extension IdentityClaims: CustomStringConvertible, CustomReflectable {
    package var description: String { "<claims>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Reads claims by type. `null` is a wrong type, not an absence.
struct ClaimReader {
    private let all: JSONObject

    init(_ all: JSONObject) { self.all = all }

    /// A required text of 1 to `maximum` octets without control characters.
    func identifier(
        _ name: String, _ check: TokenRejection.Check,
        maximum: Int = IdentityClaims.maximumIdentifierLength
    ) throws(TokenRejection) -> String {
        guard let text = try text(name, check, maximum: maximum) else {
            throw TokenRejection(check, "the claim is missing")
        }
        return text
    }

    /// The same, but optional.
    func text(
        _ name: String, _ check: TokenRejection.Check = .claims,
        maximum: Int = IdentityClaims.maximumIdentifierLength
    ) throws(TokenRejection) -> String? {
        guard let value = all[name] else { return nil }
        guard case .string(let text) = value, (1...maximum).contains(text.utf8.count),
            text.hasNoControls
        else {
            throw TokenRejection(
                check,
                "\(name) is not a string of 1 to \(maximum) octets without control characters")
        }
        return text
    }

    /// `aud`: a text, or a list of up to 20 texts (RFC 7519 section 4.1.3); never empty.
    func audiences() throws(TokenRejection) -> [String] {
        guard case .array(let elements)? = all["aud"] else {
            return [try identifier("aud", .audience)]
        }
        guard (1...20).contains(elements.count) else {
            throw TokenRejection(.audience, "aud has no items, or more than 20")
        }
        return try elements.map { element throws(TokenRejection) in
            try ClaimReader(["aud": element]).identifier("aud", .audience)
        }
    }

    /// The party that a token was issued to. A token for several parties must name it (OpenID
    /// Connect Core section 3.1.3.7). Otherwise each of them could use the token in the name of the
    /// others.
    func audience() throws(TokenRejection) -> String {
        let audiences = try audiences()
        guard audiences.count > 1 else { return audiences[0] }
        guard let party = try text("azp", .audience),
            audiences.contains(where: party.hasSameOctets(as:))
        else {
            throw TokenRejection(
                .audience, "the token has several audiences, and azp names none of them")
        }
        return party
    }

    /// A truth value, also as the text `true` or `false`, as Apple sends it.
    func flag(_ name: String) throws(TokenRejection) -> Bool? {
        switch all[name] {
        case nil: return nil
        case .bool(let value)?: return value
        case .string("true")?: return true
        case .string("false")?: return false
        default: throw TokenRejection(.claims, "\(name) is neither true nor false")
        }
    }

    /// A NumericDate, rounded up, within ±2^53.
    func time(_ name: String, _ check: TokenRejection.Check) throws(TokenRejection) -> Int64? {
        guard let value = all[name] else { return nil }
        guard let seconds = value.number?.ceiling, abs(seconds) <= 1 << 53 else {
            throw TokenRejection(check, "\(name) is not a number of seconds")
        }
        return seconds
    }

    func requiredTime(_ name: String, _ check: TokenRejection.Check) throws(TokenRejection) -> Int64
    {
        guard let time = try time(name, check) else {
            throw TokenRejection(check, "the claim is missing")
        }
        return time
    }
}
