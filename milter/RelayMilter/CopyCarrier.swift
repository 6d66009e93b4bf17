// The protocol through which copies of a message go back to Postfix (fan-out). The server provides the implementation.

import RelayCore

/// Opens connections for copies. Calls block.
package protocol CopyCarrier: Sendable {
    /// A connection that stands for the client; nil if copies cannot be handed over now.
    /// - Parameter login: identifies copies as ours when they come back; called again for each connection.
    func open(for client: CopyClient, login: @escaping () -> String) -> (any CopySession)?
}

/// The client whose message is copied.
package struct CopyClient: Sendable, Hashable {
    /// Nil if the client has none.
    package let address: String?
    /// Postfix's name for it: `unknown`, or in brackets, if it has no name.
    package let hostName: String
    package let helo: String
}

/// A connection for the copies of one message. For one thread at a time.
package protocol CopySession: AnyObject {
    /// Hands over one copy; returns once it was answered.
    /// - Parameters:
    ///   - parameters: of MAIL.
    ///   - paths: forward-paths with their angle brackets.
    func hand(over original: FanOutOriginal, parameters: [String], to paths: [String]) -> CopyOutcome
    func close()
}

package enum CopyOutcome: Sendable, Hashable {
    /// Postfix has accepted it.
    /// - Parameter queueID: under which it keeps the copy; nil if its reply does not say.
    case taken(queueID: String?)
    case refused(SMTPReply)
    /// The copy was not refused, but as far as is known it was not accepted either. For the log; holds no address.
    case failed(String)
}
