// Maps changes to security events: the only place where our types become payloads.

import Accounts
import SharedSignals
import Support

package enum StreamEvents {
    /// `events_delivered` for the events that a receiver requested, nil for all; unknown URIs are
    /// left out.
    static func delivered(_ requested: [String]?) -> [String] {
        EventType.supportedURIs.filter { requested?.contains($0) ?? true }
    }

    /// The types that a receiver requested, in the form of `event_streams.types`.
    static func types(_ requested: [String]?) -> String? {
        guard let requested else { return nil }
        return EventType.allCases.filter { requested.contains($0.facts.uri) }.map(\.rawValue)
            .joined(separator: " ")
    }

    /// The levels of assurance are those of `acr` in identity tokens, with `mail`
    /// for a link or a code by mail.
    static let assuranceNamespace = "postern"

    /// The SET of an event. The same values give the same claims, so that repetitions are equal.
    /// - Parameters:
    ///   - stream: `stream_id`.
    ///   - issuer: our own `iss`.
    package static func token(
        _ event: OutboxEvent, stream: String, issuer: String
    ) -> SecurityEventToken {
        SecurityEventToken(
            issuer: issuer, audience: event.audience, id: event.jti, issuedAt: event.createdAt,
            transaction: event.transaction ?? event.jti, happenedAt: event.eventTime / 1_000,
            event: self.event(event, stream, issuer))
    }

    private static func event(
        _ event: OutboxEvent, _ stream: String, _ issuer: String
    ) -> SecurityEvent {
        let uri = event.type.facts.uri
        let user = SubjectIdentifier.issuerSubject(issuer: issuer, subject: event.sub)
        let time = event.eventTime / 1_000
        func caep(
            _ initiator: SecurityEvent.Initiator, _ reason: String, _ claims: JSONObject = [:]
        ) -> SecurityEvent {
            .caep(uri, of: user, at: time, by: initiator, reason: reason, claims)
        }
        let words = (event.detail ?? "").split(separator: " ").map { JSONValue.string(String($0)) }
        switch event.type {
        case .emailDisabled, .emailEnabled:
            var payload: JSONObject = ["event_timestamp": .integer(time)]
            payload["email"] = event.email.map(JSONValue.string)
            return SecurityEvent(uri, of: user, payload)
        case .accountDelete, .sourceUnproved, .sourceStopped: return SecurityEvent(uri, of: user)
        case .identifierChanged:
            // The subject is the earlier address (RISC 1.0 section 2.5). If that was deleted, the
            // subject is the account.
            var payload: JSONObject = [:]
            payload["new-value"] = event.email.map(JSONValue.string)
            return SecurityEvent(
                uri, of: event.detail.map(SubjectIdentifier.email) ?? user, payload)
        case .consentRevoked: return caep(.user, "The user no longer uses the app.")
        case .sessionRevoked: return caep(.user, "The user ended all sessions.")
        case .credentialChange:
            guard words.count == 2 else { return caep(.user, "A passkey changed.") }
            let what = words[1] == "app" ? "an authenticator app" : "a passkey"
            return caep(
                .user, "The user \(words[0] == "create" ? "added" : "removed") \(what).",
                ["change_type": words[0], "credential_type": words[1]])
        case .assuranceLevelChange:
            guard words.count == 3 else { return caep(.user, "How the user can sign in changed.") }
            return caep(
                .user, "How the user can sign in changed.",
                [
                    "namespace": .string(assuranceNamespace), "previous_level": words[0],
                    "current_level": words[1],
                    "change_direction": words[2],
                ])
        case .checkObjected:
            var payload: JSONObject = ["event_timestamp": .integer(time)]
            payload["decision_id"] = event.decisionID.map(JSONValue.string)
            return SecurityEvent(uri, of: user, payload)
        case .inboxSuspended, .inboxResumed, .spamComplaint:
            return SecurityEvent(uri, of: user, ["event_timestamp": .integer(time)])
        case .addressUsedByOthers:
            var payload = event.detailMembers
            payload["event_timestamp"] = .integer(time)
            payload["email"] = event.email.map(JSONValue.string)
            return SecurityEvent(uri, of: user, payload)
        case .refusals, .deliveryLimit, .streamUpdated:
            return SecurityEvent(uri, of: .opaque(stream), event.detailMembers)
        case .verification, .test:
            var payload: JSONObject = [:]
            payload["state"] = event.detail.map(JSONValue.string)
            return SecurityEvent(uri, of: .opaque(stream), payload)
        }
    }
}
