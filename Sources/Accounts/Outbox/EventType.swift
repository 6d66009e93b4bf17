// The events for teams, each declared once; docs/EVENTS.md and docs/SHARED_SIGNALS.md show them as
// tables.

import Database
import SharedSignals

/// A signed event's type. The raw values are used in databases and in events for endpoints.
package enum EventType: String, SQLCodable, Sendable, Hashable, CaseIterable {
    case emailDisabled = "email-disabled"
    case emailEnabled = "email-enabled"
    case consentRevoked = "consent-revoked"
    case accountDelete = "account-delete"
    case checkObjected = "check-objected"
    case spamComplaint = "spam-complaint"
    case addressUsedByOthers = "address-used-by-others"
    case identifierChanged = "identifier-changed"
    case sessionRevoked = "session-revoked"
    case credentialChange = "credential-change"
    case assuranceLevelChange = "assurance-level-change"
    case inboxSuspended = "inbox-suspended"
    case inboxResumed = "inbox-resumed"
    case refusals
    case deliveryLimit = "delivery-limit"
    case verification
    case streamUpdated = "stream-updated"
    case sourceUnproved = "source-unproved"
    case sourceStopped = "source-stopped"
    case test

    /// The topic of an event, which decides which endpoints get it.
    package enum Topic: Sendable, Hashable { case account, team, source, stream, endpoint }

    /// The fixed facts of a type.
    package struct Facts: Sendable {
        package let topic: Topic
        /// In security event tokens: of the RISC Profile 1.0, CAEP 1.0 or SSF
        /// 1.0, and our own for all others.
        package let uri: String
        /// For a team with an endpoint: what happened and what to do, in Markdown; nil if the type
        /// goes only to streams.
        package let endpoint: Advice?
        /// For a team with a stream: what happened, in Markdown; nil if the type goes only to
        /// endpoints.
        package let stream: String?

        package struct Advice: Sendable {
            package let happened: String
            package let remedy: String
        }

        fileprivate init(
            _ topic: Topic, _ uri: String, endpoint: (String, String)? = nil, stream: String? = nil
        ) {
            self.topic = topic
            self.uri = uri
            self.endpoint = endpoint.map(Advice.init)
            self.stream = stream
        }
    }

    package var facts: Facts {
        switch self {
        case .emailDisabled:
            Facts(
                .account, "urn:postern:event:email-disabled",
                endpoint: (
                    "mail to the relay address reaches no one: forwarding is off, the address was retired, "
                        + "no verified inbox remains, or the operator froze the user",
                    "stop writing; mail is refused (`550 5.2.1`)"
                ),
                stream:
                    "mail no longer reaches the user; `email` is the relay address. An earlier `inbox-suspended` no longer holds"
            )
        case .emailEnabled:
            Facts(
                .account, "urn:postern:event:email-enabled",
                endpoint: (
                    "mail reaches the user again, or at another address: `email` is the address that is valid from now on",
                    "write to this address, and no longer to an earlier one"
                ),
                stream:
                    "mail reaches the user again; `email` is the relay address. Without an `inbox-suspended` after it no mail "
                    + "waits")
        case .consentRevoked:
            Facts(
                .account, SecurityEventURI.sessionRevoked,
                endpoint: (
                    "the user left the apps of this group",
                    "end sessions; if the user returns, it is a new sign-in under the same `sub`"
                ), stream: "the user left the app")
        case .accountDelete:
            Facts(
                .account, SecurityEventURI.accountPurged,
                endpoint: (
                    "the account was deleted permanently; also after an earlier `consent-revoked`",
                    "delete what you keep of this `sub`, which is never used again"
                ), stream: "the account was deleted permanently; `sub` is never used again")
        case .checkObjected:
            Facts(
                .account, "urn:postern:event:decision-objected",
                endpoint: (
                    "the user objects to a check that the app asked of them; `decision_id` names it (GDPR, Article 22)",
                    "have a person look at it"
                ), stream: "the user objects to a check; `decision_id`")
        case .spamComplaint:
            Facts(
                .account, "urn:postern:event:complaint",
                endpoint: (
                    "the user marked a message of yours as spam, and their mail provider reported it; at most one a day for each "
                        + "message, or for each of your senders if the report does not identify the message. "
                        + "`GET /v1/complaints` has the numbers by day", "send less, or ask first"
                ), stream: "the user marked a message as spam")
        case .addressUsedByOthers:
            Facts(
                .account, "urn:postern:event:address-used-by-others",
                endpoint: (
                    "others wrote to the relay address `email`, although only you were given it: on the day `day` (UTC), `proved` "
                        + "domains outside your sources (a signature proves each; 10 means 10 or more) and `unproved` messages "
                        + "without proof (100: 100 or more). All were refused. At most one a day for each address",
                    "find out who has your users' addresses. If the mail is yours, register its domain as a source"
                ),
                stream:
                    "others wrote to the relay address `email` on the day `day` (UTC): `proved` domains, `unproved` messages. All "
                    + "were refused")
        case .identifierChanged:
            Facts(
                .account, SecurityEventURI.identifierChanged,
                stream:
                    "the relay address changed: the subject is the old one (`email`), `new-value` the new one"
            )
        case .sessionRevoked:
            Facts(
                .account, SecurityEventURI.sessionRevoked,
                stream: "the user ended all sessions on /me")
        case .credentialChange:
            Facts(
                .account, SecurityEventURI.credentialChange,
                stream:
                    "a passkey or an authenticator app was added (`create`) or removed (`delete`). `credential_type` is "
                    + "`fido2-platform` for a passkey that is synced, `fido2-roaming` for one that is bound to a device, `app` "
                    + "for an authenticator app")
        case .assuranceLevelChange:
            Facts(
                .account, SecurityEventURI.assuranceLevelChange,
                stream:
                    "`namespace` is `postern`; `phr` with a passkey, `mfa` with an authenticator app, `mail` without either: as in `acr` of identity tokens"
            )
        case .inboxSuspended:
            Facts(
                .account, "urn:postern:event:inbox-suspended",
                stream: "the user's inbox refuses so much that mail waits (`451 4.2.1`)")
        case .inboxResumed:
            Facts(
                .account, "urn:postern:event:inbox-resumed",
                stream:
                    "mail waits no longer: the inbox was confirmed again, or mail goes to another one. It is not sent if "
                    + "`email-disabled` or `email-enabled` has already said this")
        case .refusals:
            Facts(
                .team, "urn:postern:event:refusals",
                stream:
                    "once an hour, if mail of the team was refused: `from`, `to` (seconds since 1970), `total`, and "
                    + "`refusals`, the 50 most frequent kinds with `answer`, `reason`, `source`, `count`. The subject is the stream"
            )
        case .deliveryLimit:
            Facts(
                .team, "urn:postern:event:delivery-limit",
                endpoint: (
                    "mail of the team to one provider is slowed or held (`451 4.7.1`), or is open again: `state` is `slowed`, `held` or "
                        + "`open`; `cause` is `complaints` or `refusals`, with `messages`, `events` and `users` of seven days. `sub` is the "
                        + "team",
                    "write less, and only to people who want it: `GET /v1/complaints` has the days. It ends by itself when the "
                        + "figures recover; ask the operator if it is held"
                ),
                stream:
                    "mail of the team to one provider is slowed or held (`451 4.7.1`), or is open again: `state` (`slowed`, `held`, "
                    + "`open`), `cause` (`complaints`, `refusals`), and `messages`, `events`, `users` of seven days. The subject is the "
                    + "stream")
        case .verification:
            Facts(
                .stream, SecurityEventURI.verification,
                stream:
                    "the receiver wants to see that its stream works; the subject is the stream (`opaque`)"
            )
        case .streamUpdated:
            Facts(
                .stream, SecurityEventURI.streamUpdated,
                stream:
                    "the operator changed the status of the stream, which is the subject (`opaque`)"
            )
        case .sourceUnproved:
            Facts(
                .source, "urn:postern:event:source-unproved",
                endpoint: (
                    "a domain that the team added itself is no longer proved; `sub` is the domain, not a user",
                    "put the TXT record back (`GET /v1/sources`): otherwise the domain stops serving in seven days, or in 30 if the "
                        + "DNS does not answer"
                ))
        case .sourceStopped:
            Facts(
                .source, "urn:postern:event:source-stopped",
                endpoint: (
                    "the domain stopped serving: mail from it is refused",
                    "the same; it serves again once the record is seen"
                ))
        case .test:
            Facts(
                .endpoint, SecurityEventURI.verification,
                endpoint: ("nothing: an administrator tries the endpoint", "answer 200"))
        }
    }

    /// The types that also exist as Apple's notifications. Streams have all types except those
    /// about sources.
    package static let notifications = Set(
        allCases.filter { $0.facts.endpoint != nil && $0.facts.topic != .source })
    /// The types about a stream itself. Receivers do not request them.
    package static let ofStreams: Set<EventType> = [.verification, .streamUpdated, .test]

    /// `events_supported`: the URIs of the events that a receiver may request.
    package static let supportedURIs = allCases.reduce(into: [String]()) { uris, type in
        let facts = type.facts
        guard facts.stream != nil, facts.topic != .stream, !uris.contains(facts.uri) else { return }
        uris.append(facts.uri)
    }
}
