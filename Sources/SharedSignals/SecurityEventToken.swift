// Security event tokens (RFC 8417) as profiled by the Shared Signals Framework: our
// own and those of others.

import Support

/// The claims of a SET. `sub` and `exp` are never among them (SSF 1.0 sections 4.1.2, 4.1.4),
/// and `sub_id` always is.
package struct SecurityEventToken: Sendable, Hashable {
    /// `typ` of the header (RFC 8417 section 2.3).
    package static let type = "secevent+jwt"
    /// Media type of a body that is one SET (section 7.1).
    package static let mediaType = "application/secevent+jwt"

    /// `iss`.
    package let issuer: String
    /// `aud`; empty if there is none.
    package let audience: [String]
    /// `jti`: the same in every repetition.
    package let id: String
    /// `iat`, seconds since 1970.
    package let issuedAt: Int64
    /// `txn`: the same in all SETs of one change.
    package let transaction: String?
    /// `toe`: the time of the event, seconds since 1970.
    package let happenedAt: Int64?
    /// We send exactly one. If others send several, the first known one counts, otherwise the
    /// first.
    package let event: SecurityEvent

    package init(
        issuer: String, audience: String, id: String, issuedAt: Int64, transaction: String?,
        happenedAt: Int64?,
        event: SecurityEvent
    ) {
        self.issuer = issuer
        self.audience = [audience]
        self.id = id
        self.issuedAt = issuedAt
        self.transaction = transaction
        self.happenedAt = happenedAt
        self.event = event
    }

    /// The claims in a fixed order.
    package var claims: JSONObject {
        var claims: JSONObject = [
            "iss": .string(issuer),
            "aud": audience.count == 1
                ? .string(audience[0]) : .array(audience.map(JSONValue.string)),
            "iat": .integer(issuedAt), "jti": .string(id),
        ]
        claims["txn"] = transaction.map(JSONValue.string)
        claims["toe"] = happenedAt.map(JSONValue.integer)
        claims["sub_id"] = .object(event.subject.json)
        claims["events"] = .object([event.uri: .object(event.payload)])
        return claims
    }

    /// Maximum octets of an identifier.
    private static let maximumText = 2_048
    /// Maximum events in one token: several are alternative names of one thing
    /// (SSF 1.0 section 4.1.7).
    private static let maximumEvents = 8

    /// Parses claims whose signature was checked. The subject is `sub_id` or, with older
    /// transmitters, `subject` of the event. Unknown claims are ignored.
    /// - Parameter known: URIs that the receiver knows.
    /// - Throws: for a missing claim that RFC 8417 section 2.2 requires, for `sub` and `exp`, for
    ///   an event without a subject.
    package init(claims: JSONObject, known: Set<String> = []) throws(SharedSignalsError) {
        func text(_ name: String) throws(SharedSignalsError) -> String? {
            guard let value = claims[name] else { return nil }
            guard case .string(let text) = value, (1...Self.maximumText).contains(text.utf8.count)
            else {
                throw SharedSignalsError("\(name) is not text")
            }
            return text
        }
        func required<Value>(_ name: String, _ value: Value?) throws(SharedSignalsError) -> Value {
            guard let value else { throw SharedSignalsError("\(name) is missing") }
            return value
        }
        func time(_ name: String) throws(SharedSignalsError) -> Int64? {
            guard let value = claims[name] else { return nil }
            guard let time = value.number?.floor, (0...(1 << 40)).contains(time) else {
                throw SharedSignalsError("\(name) is not a time")
            }
            return time
        }
        for name in ["sub", "exp"] where claims[name] != nil {
            throw SharedSignalsError("a SET has no \(name)")
        }
        issuer = try required("iss", try text("iss"))
        id = try required("jti", try text("jti"))
        issuedAt = try required("iat", try time("iat"))
        transaction = try text("txn")
        happenedAt = try time("toe")
        switch claims["aud"] {
        case nil: audience = []
        case .string(let one): audience = [one]
        case .array(let items):
            audience = items.compactMap(\.string)
            guard audience.count == items.count, items.count <= 64 else {
                throw SharedSignalsError("aud is not a list of text")
            }
        default: throw SharedSignalsError("aud is neither text nor a list")
        }
        guard case .object(let events)? = claims["events"],
            (1...Self.maximumEvents).contains(events.members.count)
        else {
            throw SharedSignalsError("events is not an object of one event")
        }
        guard
            let chosen = events.members.first(where: { known.contains($0.name) })
                ?? events.members.first
        else {
            throw SharedSignalsError("events is empty")
        }
        for event in events.members where event.value.object == nil {
            throw SharedSignalsError("an event is not an object")
        }
        let payload = chosen.value.object ?? [:]
        guard let subject = (claims["sub_id"] ?? payload["subject"])?.object else {
            throw SharedSignalsError("sub_id is missing")
        }
        event = SecurityEvent(chosen.name, of: try SubjectIdentifier(subject), payload)
    }
}

extension SecurityEventToken: CustomStringConvertible, CustomReflectable {
    package var description: String { "<security event token>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
