// libmilter's state for the whole process: the handler, and the number of current
// sessions and messages.

import Concurrency

/// An event for the operator's log.
package enum MilterDiagnostic: Sendable, Hashable, CustomStringConvertible {
    /// The server is listening.
    case listening(String)
    /// An MTA was refused in the negotiation.
    case refusedMTA(reason: String)
    /// Connections of these local users to the socket were ended, as they are not Postfix.
    case otherPeersAtSocket([UInt32])
    /// `endOfMessage` threw; the client got `451 4.3.0`. `queueID` is the
    /// MTA's name for the message.
    case messageFailed(queueID: String?, error: String)
    /// The server has stopped. This many messages were still open at the deadline and were
    /// interrupted; the client keeps them.
    case stopped(cutOff: Int)

    package var description: String {
        switch self {
        case .listening(let socket): "milter: listening on \(socket)"
        case .refusedMTA(let reason): "milter: refused an MTA: \(reason)"
        case .otherPeersAtSocket(let users):
            "milter: ended connections of users \(users.map(String.init).joined(separator: ", ")) to the socket, which are not Postfix's (milter.peers)"
        case .messageFailed(let queueID, let error):
            "milter: message \(queueID ?? "without queue id") deferred: \(error)"
        case .stopped(let cutOff):
            cutOff == 0 ? "milter: stopped" : "milter: stopped, \(cutOff) messages interrupted"
        }
    }
}

/// The handler installed for the process.
struct FilterInstallation: Sendable {
    let handler: any MilterHandler
    let needs: MilterNeeds
    let log: @Sendable (MilterDiagnostic) -> Void
    /// Nil if everyone may connect.
    var peers: PeerGuard?
}

/// A copy of libmilter's global state.
struct ProcessState: Sendable {
    var installation: FilterInstallation?
    var sessions = 0
    var openMessages = 0
    /// No new message is accepted.
    var draining = false
    /// Result of smfi_main, after it has returned.
    var finished: Int32?
    var waiters: [CheckedContinuation<Void, Never>] = []
}

/// libmilter serves one filter per process, once; it cannot be started again.
let process = Monitor(ProcessState())
