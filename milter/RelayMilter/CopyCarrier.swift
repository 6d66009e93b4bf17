// The protocol that returns copies of a message to Postfix (fan-out). The server provides the
// implementation.

import RelayCore

/// Opens connections for copies. Calls block.
package protocol CopyCarrier: Sendable {
    /// A connection for the client's mail; nil if copies cannot be handed over now.
    /// - Parameter login: identifies copies as ours when they return; called again for each
    ///   connection.
    func open(for client: CopyClient, login: @escaping () -> String) -> (any CopySession)?
}

/// The client that sent the original of a copied message.
package struct CopyClient: Sendable, Hashable {
    /// Nil if the client has none.
    package let address: String?
    /// Postfix's name for it; if it has no name, `unknown`, or its address in brackets.
    package let hostName: String
    package let helo: String
}

/// A connection for the copies of one message. For one thread at a time.
package protocol CopySession: AnyObject {
    /// Hands over one copy. Returns when Postfix has answered.
    /// - Parameters:
    ///   - parameters: of MAIL.
    ///   - paths: forward-paths with their angle brackets.
    func hand(
        over original: FanOutOriginal, parameters: [String], to paths: [String]
    ) -> CopyOutcome
    func close()
}

package enum CopyOutcome: Sendable, Hashable {
    /// Postfix has accepted it.
    /// - Parameter queueID: Postfix's id of the copy; nil if its reply does not contain one.
    case taken(queueID: String?)
    case refused(SMTPReply)
    /// The copy was not refused, but it is not known to be accepted either. For the log; contains
    /// no address.
    case failed(String)
}
