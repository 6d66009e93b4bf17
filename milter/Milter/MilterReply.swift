// What a session answers to an event.

/// The answer to one event of a session.
package enum MilterReply: Sendable, Hashable {
    /// Go on with the dialogue; at the end of the message: accept it with all modifications sent.
    case `continue`
    /// Take the message (before MAIL: everything on the connection) without asking the filter again. Modifications sent stay.
    case accept
    /// Tell the client that the message was accepted, and drop it.
    case discard
    /// Refuse permanently. At connect or HELO it refuses the connection, at RCPT that recipient, else the message.
    case reject(PermanentFailure)
    /// Refuse for now, with the same scopes.
    case temporaryFailure(TemporaryFailure)
    /// No more body chunks are wanted; only an answer to `body`, elsewhere the same as `continue`.
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
