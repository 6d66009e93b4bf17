// Security event tokens of other transmitters: verified, and their meaning for policies.

import Accounts
import InternetMessage
import SharedSignals
import Support

/// A SET from another transmitter, after all checks except its audience.
package struct IncomingSignal: Sendable {
    /// The kind, which policies read as `account.last_risk_event`.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case sessionRevoked = "session-revoked"
        case credentialCompromise = "credential-compromise"
        case credentialChange = "credential-change"
        case accountDisabled = "account-disabled"
        case deviceComplianceChange = "device-compliance-change"
    }

    package let issuer: String
    /// `jti`.
    package let id: String
    package let audience: [String]
    /// The subject by this issuer's name, otherwise by an address; nil if the token has
    /// neither. Identifiers that only the issuer understands (`opaque`, `account`,
    /// `phone_number` …) name no account here.
    package let subject: ExternalRiskEvent.Subject?
    /// Nil if the event is not about a risk.
    package let kind: Kind?
    /// Seconds since 1970.
    package let happenedAt: Int64

    /// A SET is refused: the code for its sender, and a sentence that repeats none of its content.
    package struct Refusal: Error, Sendable, Hashable, CustomStringConvertible {
        package let error: SETError
        package let description: String

        package init(_ error: SETError, _ description: String) {
            (self.error, self.description) = (error, description)
        }
    }

    private static let known: Set<String> = [
        SecurityEventURI.sessionRevoked, SecurityEventURI.sessionsRevoked,
        SecurityEventURI.credentialCompromise,
        SecurityEventURI.credentialChange, SecurityEventURI.accountDisabled,
        SecurityEventURI.deviceComplianceChange,
    ]

    /// Checks a SET: type, signature, issuer, age, and the claims that RFC
    /// 8417 and SSF 1.0 require.
    /// - Parameter now: seconds since 1970.
    package init(
        _ token: CompactJWS, issuer configured: IssuerConfiguration, keys: JWKSet, now: Int64
    ) throws(Refusal) {
        // Without this check an identity token could pass for an event (SSF 1.0 section 4.1.6).
        guard token.type?.lowercased() == SecurityEventToken.type else {
            throw Refusal(.invalidRequest, "typ is not \(SecurityEventToken.type)")
        }
        do throws(TokenRejection) {
            try TokenChecks.signature(token, algorithms: configured.algorithms, keys: keys)
        } catch {
            throw Refusal(.invalidKey, error.reason)
        }
        let read: SecurityEventToken
        do {
            let claims = try StrictJSON.parseObject(token.payload, limit: CompactJWS.maximumLength)
            read = try SecurityEventToken(claims: claims, known: Self.known)
        } catch let error as SharedSignalsError {
            throw Refusal(.invalidRequest, error.description)
        } catch {
            throw Refusal(.invalidRequest, "the claims are not valid JSON")
        }
        guard read.issuer.hasSameOctets(as: configured.issuer) else {
            throw Refusal(.invalidIssuer, "another issuer's")
        }
        guard read.issuedAt <= now &+ configured.leeway,
            read.issuedAt >= now &- IncomingEvent.maximumAge
        else {
            throw Refusal(.invalidRequest, "iat is in the future, or over 7 days ago")
        }
        (issuer, id, audience) = (read.issuer, read.id, read.audience)
        let user = read.event.subject.ofUser
        let named = user.lazy.compactMap { identifier -> String? in
            guard case .issuerSubject(let issuer, let subject) = identifier.subject,
                issuer.hasSameOctets(as: configured.issuer)
            else { return nil }
            return subject
        }.first
        let address = user.lazy.compactMap { identifier -> AddrSpec? in
            if case .email(let text) = identifier.subject { try? AddrSpec.typed(text) } else { nil }
        }.first
        if let named {
            subject = .named(named)
        } else {
            subject = address.map { ExternalRiskEvent.Subject.address(InboxAddress($0)) }
        }
        kind = Self.kind(read.event)
        let stated =
            read.event.payload["event_timestamp"]?.number?.floor ?? read.happenedAt ?? read.issuedAt
        // Transmitters of draft versions sent milliseconds.
        happenedAt = max(0, stated > 100_000_000_000 ? stated / 1_000 : stated)
    }

    private static func kind(_ event: SecurityEvent) -> Kind? {
        switch event.uri {
        case SecurityEventURI.sessionRevoked, SecurityEventURI.sessionsRevoked: .sessionRevoked
        case SecurityEventURI.credentialCompromise: .credentialCompromise
        case SecurityEventURI.credentialChange: isTakenAway(event.payload) ? .credentialChange : nil
        case SecurityEventURI.accountDisabled: .accountDisabled
        case SecurityEventURI.deviceComplianceChange:
            event.payload["current_status"] == "not-compliant" ? .deviceComplianceChange : nil
        default: nil
        }
    }
}

extension IncomingSignal {
    /// Whether someone took a credential from its user (CAEP 1.0 section 3.3): it was revoked, or
    /// someone else deleted it. Careful users also add, renew or delete their own credentials.
    private static func isTakenAway(_ payload: JSONObject) -> Bool {
        switch payload["change_type"]?.string {
        case "revoke": true
        case "delete":
            ["admin", "policy", "system"].contains(payload["initiating_entity"]?.string ?? "")
        default: false
        }
    }
}

extension IncomingSignal: CustomStringConvertible, CustomReflectable {
    package var description: String { "<signal>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
