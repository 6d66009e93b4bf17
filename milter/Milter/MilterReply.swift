// The answers of a session to events.

/// The answer to one event of a session.
package enum MilterReply: Sendable, Hashable {
    /// Go on with the dialogue; at the end of the message: accept it with all modifications sent.
    case `continue`
    /// Accept the message (before MAIL: everything on the connection) without further filtering.
    /// Modifications sent stay.
    case accept
    /// Report to the client that the message was accepted, and drop it.
    case discard
    /// Refuse permanently: at connect or HELO the connection, at RCPT that
    /// recipient, otherwise the message.
    case reject(PermanentFailure)
    /// Refuse temporarily, with the same scopes.
    case temporaryFailure(TemporaryFailure)
    /// No more body chunks are needed. Only an answer to `body`; elsewhere the same as `continue`.
    case skip
}

extension MilterReply: CustomStringConvertible {
    package var description: String {
        switch self {
        case .continue: "continue"
        case .accept: "accept"
        case .discard: "discard"
        case .reject(let failure): "reject \(failure)"
        case .temporaryFailure(let failure): "temporary failure \(failure)"
        case .skip: "skip"
        }
    }
}
