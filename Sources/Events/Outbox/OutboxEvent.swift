// Events to be delivered, results of attempts, and endpoints.

import Accounts
import Database
import Support

/// An event to be delivered to an endpoint.
package struct OutboxEvent: Sendable, Hashable {
    package enum State: String, SQLCodable, Sendable, Hashable, CaseIterable {
        case pending, delivered, parked
    }

    /// The position in the outbox: events of one account to one endpoint are
    /// delivered in this order.
    package let number: Int64
    /// The same at every attempt.
    package let jti: String
    package let endpointNumber: Int64
    /// `aud` of the event.
    package let audience: String
    package let accountNumber: Int64
    package let type: EventType
    package let sub: String
    /// The relay address, in events about it.
    package let email: String?
    /// In events about a decision.
    package let decisionID: String?
    /// Further data by type. In `identifierChanged` it is the earlier address, in
    /// `credentialChange` and `assuranceLevelChange` words, in `addressUsedByOthers` and in events
    /// of streams JSON or the receiver's text.
    package let detail: String?
    /// The same in all events of one change of one account.
    package let transaction: String?
    /// Milliseconds since 1970.
    package let eventTime: Int64
    /// Seconds since 1970, as all other times here.
    package let createdAt: Int64
    package let state: State
    package let attempts: Int
    /// 0 before the first attempt.
    let lastAttemptAt: Int64
    /// For a new event, the time at which it was written.
    package let nextAttemptAt: Int64
    package let parkAt: Int64
    /// The reason why the last attempt failed; it contains nothing that the endpoint wrote.
    package let lastError: String?
    /// When it was delivered or given up.
    package let endedAt: Int64?
}

extension OutboxEvent {
    /// The members of `detail` in the types in which it is JSON; none otherwise.
    var detailMembers: JSONObject {
        detail.flatMap { try? StrictJSON.parseObject(Array($0.utf8), limit: $0.utf8.count) } ?? [:]
    }
}

/// The result of an attempt that failed.
package struct DeliveryFailure: Sendable, Hashable {
    /// Our own text, which contains nothing that the endpoint wrote.
    package let reason: String
    /// Whether the failure concerns the endpoint, and not only this event.
    package let isEndpoints: Bool
    /// Failures of the endpoint in a row, including this one. Events that fail at the same time
    /// count as one failure.
    package let endpointFailures: Int
    /// The earliest time of the event's next attempt, in seconds since 1970.
    package let retryEventAt: Int64
    /// The earliest time of the endpoint's next attempt, if the endpoint failed.
    package let retryEndpointAt: Int64

    package init(
        reason: String, isEndpoints: Bool, endpointFailures: Int, retryEventAt: Int64,
        retryEndpointAt: Int64
    ) {
        self.reason = reason
        self.isEndpoints = isEndpoints
        self.endpointFailures = endpointFailures
        self.retryEventAt = retryEventAt
        self.retryEndpointAt = retryEndpointAt
    }
}

/// The result of one attempt.
package struct DeliveryResult: Sendable {
    package let event: OutboxEvent
    /// Nil if the endpoint accepted the event.
    package let failure: DeliveryFailure?

    package init(_ event: OutboxEvent, failure: DeliveryFailure? = nil) {
        (self.event, self.failure) = (event, failure)
    }
}

/// The URL at which a group of apps receives changes.
package struct EventEndpoint: Sendable, Hashable {
    package let number: Int64
    /// Nil if the group was removed and only pending events remain.
    package let groupNumber: Int64?
    package let audience: String
    package let url: EndpointURL
    /// Whether Postern may connect to addresses that are not globally reachable.
    package let allowsPrivate: Bool
    /// Failures in a row; 0 while it works.
    package let failures: Int
    /// While it fails, no attempt is made before this time.
    package let retryAt: Int64
    package let lastError: String?
    package let lastSuccessAt: Int64?
    package let createdAt: Int64
    package let pending: Int
    package let parked: Int
    /// The form of its events.
    package let dialect: EventDialect
    /// The stream behind this endpoint; nil for notifications.
    package let stream: StreamState?
}

extension OutboxEvent {
    /// A test event that is not in the outbox.
    package init(test endpoint: EventEndpoint, jti: String, now: Int64) {
        self.init(
            number: 0, jti: jti, endpointNumber: endpoint.number, audience: endpoint.audience,
            accountNumber: 0, type: .test,
            sub: "test", email: nil, decisionID: nil, detail: nil, transaction: nil,
            eventTime: now * 1000, createdAt: now,
            state: .pending, attempts: 0,
            lastAttemptAt: 0,
            nextAttemptAt: now, parkAt: now, lastError: nil, endedAt: nil)
    }
}
