// Events, and the URIs that transmitters and receivers use for them.

import Support

/// URIs of events of the RISC Profile 1.0, CAEP 1.0 and SSF 1.0.
package enum SecurityEventURI {
    private static let openID = "https://schemas.openid.net/secevent/"

    // MARK: RISC

    package static let accountPurged = openID + "risc/event-type/account-purged"
    package static let accountDisabled = openID + "risc/event-type/account-disabled"
    package static let identifierChanged = openID + "risc/event-type/identifier-changed"
    package static let credentialCompromise = openID + "risc/event-type/credential-compromise"
    /// Deprecated in favour of `sessionRevoked`; receivers still see it.
    package static let sessionsRevoked = openID + "risc/event-type/sessions-revoked"

    // MARK: CAEP

    package static let sessionRevoked = openID + "caep/event-type/session-revoked"
    package static let credentialChange = openID + "caep/event-type/credential-change"
    package static let assuranceLevelChange = openID + "caep/event-type/assurance-level-change"
    package static let deviceComplianceChange = openID + "caep/event-type/device-compliance-change"

    // MARK: Streams

    package static let verification = openID + "ssf/event-type/verification"
    package static let streamUpdated = openID + "ssf/event-type/stream-updated"
}

/// One event of a security event token.
package struct SecurityEvent: Sendable, Hashable {
    package let uri: String
    package let subject: SubjectIdentifier
    package let payload: JSONObject

    package init(_ uri: String, of subject: SubjectIdentifier, _ payload: JSONObject = [:]) {
        (self.uri, self.subject, self.payload) = (uri, subject, payload)
    }

    /// The party that made a change (CAEP 1.0 section 2).
    package enum Initiator: String, Sendable { case admin, user, policy, system }

    /// A CAEP event, with the claims that every CAEP event may have.
    /// - Parameters:
    ///   - at: seconds since 1970.
    ///   - reason: for administrators, in English; never empty, because the interoperability
    ///     profile requires one.
    package static func caep(
        _ uri: String, of subject: SubjectIdentifier, at time: Int64, by initiator: Initiator,
        reason: String,
        _ claims: JSONObject = [:]
    ) -> SecurityEvent {
        var payload = claims
        payload["event_timestamp"] = .integer(time)
        payload["initiating_entity"] = .string(initiator.rawValue)
        payload["reason_admin"] = .object(["en": .string(reason)])
        return SecurityEvent(uri, of: subject, payload)
    }
}
