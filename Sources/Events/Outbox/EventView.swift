// An event of the outbox as HTTP and commands show it.

import Support

/// An event that a team was sent, or will be.
package struct EventView: Encodable, Sendable {
    let jti: String
    let type: String
    let audience: String
    let sub: String
    let state: String
    let attempts: Int
    let eventTime: Timestamp
    let nextAttemptAt: Timestamp?
    let endedAt: Timestamp?
    /// In words of ours: nothing that the endpoint wrote.
    let lastError: String?

    /// As the outbox has it.
    package init(_ event: OutboxEvent) {
        jti = event.jti
        type = event.type.rawValue
        audience = event.audience
        sub = event.sub
        state = event.state.rawValue
        attempts = event.attempts
        eventTime = Timestamp(milliseconds: event.eventTime)
        nextAttemptAt = event.state == .pending ? Timestamp(event.nextAttemptAt) : nil
        endedAt = Timestamp(event.endedAt)
        lastError = event.lastError
    }
}
