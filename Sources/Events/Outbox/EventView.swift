// An event of the outbox in the form for HTTP and commands.

import Support

/// An event that was or will be sent to a team.
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
    /// Our own text, which contains nothing that the endpoint wrote.
    let lastError: String?

    /// From an event of the outbox.
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
