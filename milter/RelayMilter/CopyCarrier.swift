// The protocol through which copies of a message go back to Postfix (fan-out). Who hands them over is the server's business.

import RelayCore

/// Opens connections for copies. Calls block.
package protocol CopyCarrier: Sendable {
    /// A connection that stands for the client; nil where no one takes copies just now.
    /// - Parameter login: by which copies are known to be ours when they come back; asked again for each connection.
    func open(for client: CopyClient, login: @escaping () -> String) -> (any CopySession)?
}

/// The client whose message is copied.
package struct CopyClient: Sendable, Hashable {
    /// Nil where it has none.
    package let address: String?
    /// As Postfix names it: `unknown` or in brackets where it has no name.
    package let hostName: String
    package let helo: String
}

/// A connection for the copies of one message. For one thread at a time.
package protocol CopySession: AnyObject {
    /// Hands over one copy; returns once it was answered for.
    /// - Parameters:
    ///   - parameters: of MAIL.
    ///   - paths: forward-paths with their angle brackets.
    func hand(over original: FanOutOriginal, parameters: [String], to paths: [String]) -> CopyOutcome
    func close()
}

package enum CopyOutcome: Sendable, Hashable {
    /// In Postfix's custody.
    case taken
    case refused(SMTPReply)
    /// No one said no, but the copy is not in custody as far as is known. For the log; holds no address.
    case failed(String)
}
