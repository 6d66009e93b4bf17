// Events about accounts, in the form of Apple's server-to-server notifications:
// {"payload": "<JWS>"}.

import InternetMessage
import Support

/// The kind of event.
package enum AccountEventKind: String, Sendable, Hashable, CaseIterable {
    case emailDisabled = "email-disabled"
    case emailEnabled = "email-enabled"
    case consentRevoked = "consent-revoked"
    /// Sent as `account-delete`; `account-deleted` is accepted too.
    case accountDelete = "account-delete"

    /// The newer name of `account-delete`.
    package static let accountDeleted = "account-deleted"

    /// From a `type` member; nil if unknown.
    package init?(type: String) {
        if type == Self.accountDeleted {
            self = .accountDelete
        } else if let kind = Self(rawValue: type) {
            self = kind
        } else {
            return nil
        }
    }
}

/// An event that Postern sends. The same values give the same payload, so that a retry
/// sends the same content.
package struct OutgoingEvent: Sendable, Hashable {
    /// The provider's `iss`.
    package var issuer: String
    /// `aud`: the `client_id` of the grant's primary app.
    package var audience: String
    /// `jti`: the same at every retry.
    package var id: String
    /// `iat`, seconds since 1970.
    package var issuedAt: Int64
    package var kind: AccountEventKind
    /// `type`, which may differ from the kind.
    package var typeName: String
    /// `exp`, seconds since 1970; nil for none.
    package var expiresAt: Int64?
    /// `sub`, as this team knows it.
    package var subject: String
    /// The relay address, for `email-*`.
    package var relayAddress: AddrSpec?
    /// When it happened, in milliseconds since 1970.
    package var happenedAt: Int64

    /// Seconds from `iat` to `exp`: the lifetime of Apple's identity tokens.
    package static let lifetime: Int64 = 86_400

    package init(
        issuer: String, audience: String, id: String, issuedAt: Int64, expiresAt: Int64? = nil,
        kind: AccountEventKind,
        typeName: String? = nil, subject: String, relayAddress: AddrSpec?, happenedAt: Int64
    ) {
        self.issuer = issuer
        self.audience = audience
        self.id = id
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.kind = kind
        self.typeName = typeName ?? kind.rawValue
        self.subject = subject
        self.relayAddress = relayAddress
        self.happenedAt = happenedAt
    }

    /// The claims: `events` is JSON inside a string.
    package var claims: JSONObject {
        var event: JSONObject = ["type": .string(typeName), "sub": .string(subject)]
        if let relayAddress {
            event["email"] = .string(relayAddress.wireForm)
            event["is_private_email"] = "true"
        }
        event["event_time"] = .integer(happenedAt)
        var claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(audience), "iat": .integer(issuedAt),
            "jti": .string(id),
        ]
        claims["exp"] = expiresAt.map(JSONValue.integer)
        claims["events"] = .string(JSONValue.object(event).text)
        return claims
    }

    /// The body to send: `{"payload": "<JWS>"}`.
    package func body(signedWith key: IdentitySigningKey) throws -> [UInt8] {
        JSONValue.object(["payload": .string(try key.sign(claims))]).octets
    }
}

/// An event from another issuer, after all checks.
package struct IncomingEvent: Sendable {
    /// The oldest accepted `iat`, in seconds: events have neither `exp` nor nonce, and
    /// senders repeat them for days.
    package static let maximumAge: Int64 = 7 * 86_400
    /// Longest body, in octets: the JWS and its wrapping.
    package static let maximumBodyLength = CompactJWS.maximumLength + 1024

    /// `iss`.
    package let issuer: String
    /// `aud`: the `client_id` of the app that the event concerns.
    package let audience: String
    /// `jti`: an event is accepted once.
    package let id: String
    /// `iat`, seconds since 1970.
    package let issuedAt: Int64
    /// Nil if the kind is unknown: acknowledged and ignored.
    package let kind: AccountEventKind?
    /// `sub`.
    package let subject: String
    package let email: InboxAddress?
    package let isPrivateEmail: Bool?
    /// When it happened, in milliseconds since 1970: `event_time`, or `iat` if that is missing.
    /// Never after `now`, even though clocks may differ by the issuer's leeway.
    package let happenedAt: Int64

    /// The signed text of a notification. Throws `format` for a body that
    /// is not `{"payload": "…"}`.
    package static func payload(of body: [UInt8]) throws(TokenRejection) -> CompactJWS {
        let object: JSONObject
        do {
            object = try StrictJSON.parseObject(body, limit: maximumBodyLength)
        } catch {
            throw TokenRejection(.format, "the body is not valid JSON: \(error)")
        }
        guard case .string(let payload)? = object["payload"] else {
            throw TokenRejection(.format, "the body has no payload")
        }
        return try CompactJWS(payload)
    }

    /// Checks an event: signature, issuer, audience, age, and the event itself.
    /// - Parameters:
    ///   - isAudience: whether this `aud` is a client that the receiver serves.
    ///   - now: seconds since 1970.
    package static func verify(
        _ token: CompactJWS, issuer: IssuerConfiguration, keys: JWKSet, now: Int64,
        isAudience: (String) throws -> Bool
    ) throws -> IncomingEvent {
        if let type = token.type, !["jwt", "secevent+jwt"].contains(type.lowercased()) {
            throw TokenRejection(.type, "it says that this is not an event")
        }
        try TokenChecks.signature(token, algorithms: issuer.algorithms, keys: keys)
        let event = try IncomingEvent(payload: token.payload, issuer: issuer, now: now)
        guard try isAudience(event.audience) else {
            throw TokenRejection(.audience, "the event is for another audience")
        }
        return event
    }

    private init(
        payload: [UInt8], issuer configured: IssuerConfiguration, now: Int64
    ) throws(TokenRejection) {
        let all: JSONObject
        do {
            all = try StrictJSON.parseObject(payload, limit: CompactJWS.maximumLength)
        } catch {
            throw TokenRejection(.format, "the payload is not valid JSON: \(error)")
        }
        let claims = ClaimReader(all)
        issuer = try claims.identifier("iss", .issuer, maximum: 2048)
        guard issuer.hasSameOctets(as: configured.issuer) else {
            throw TokenRejection(.issuer, "the event is from another issuer")
        }
        audience = try claims.audience()
        issuedAt = try claims.requiredTime("iat", .issuedAt)
        guard issuedAt <= now &+ configured.leeway else {
            throw TokenRejection(.issuedAt, "the event is issued in the future")
        }
        guard issuedAt >= now &- Self.maximumAge else {
            throw TokenRejection(.issuedAt, "the event is over 7 days old")
        }
        if let expiry = try claims.time("exp", .expiry), expiry <= now &- configured.leeway {
            throw TokenRejection(.expiry, "the event is expired")
        }
        id = try claims.identifier("jti", .claims)
        let event: JSONObject
        switch all["events"] {
        // Form in Apple's documentation.
        case .object(let object)?: event = object
        // Form that Apple sends.
        case .string(let text)?:
            do {
                event = try StrictJSON.parseObject(
                    Array(text.utf8), limit: CompactJWS.maximumLength)
            } catch {
                throw TokenRejection(.claims, "events is not valid JSON: \(error)")
            }
        default: throw TokenRejection(.claims, "events is neither a string nor an object")
        }
        let members = ClaimReader(event)
        kind = AccountEventKind(type: try members.identifier("type", .claims))
        subject = try members.identifier("sub", .subject)
        email = try members.text("email", maximum: 2048).flatMap { AddrSpec(envelope: $0) }.map(
            InboxAddress.init)
        isPrivateEmail = try members.flag("is_private_email")
        let time = try Self.milliseconds(event) ?? issuedAt &* 1000
        // An event from the future would block all later ones.
        guard
            (Self.earliest...max(Self.earliest, (now &+ configured.leeway) &* 1000 &+ 999))
                .contains(time)
        else {
            throw TokenRejection(.claims, "event_time is in the future, or before 2000")
        }
        happenedAt = min(time, now &* 1000)
    }

    /// 2000-01-01T00:00:00Z in milliseconds: no account events can be older.
    private static let earliest: Int64 = 946_684_800_000

    /// `event_time`. Apple sends milliseconds, but documents an example in seconds: a value that is
    /// before March 1973 in milliseconds counts as seconds.
    private static func milliseconds(_ event: JSONObject) throws(TokenRejection) -> Int64? {
        guard let value = event["event_time"] else { return nil }
        guard let time = value.number?.integer, (0...(1 << 53)).contains(time) else {
            throw TokenRejection(.claims, "event_time is not a number of milliseconds")
        }
        return time < 100_000_000_000 ? time * 1000 : time
    }
}

extension IncomingEvent: CustomStringConvertible, CustomReflectable {
    package var description: String { "<event>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
