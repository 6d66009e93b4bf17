// What libmilter keeps once per process: the handler, and how many sessions and messages are under way.

import Concurrency

/// Something that the operator should read in the log.
package enum MilterDiagnostic: Sendable, Hashable, CustomStringConvertible {
    /// The server listens.
    case listening(String)
    /// An MTA was refused in the negotiation.
    case refusedMTA(reason: String)
    /// Connections of these users of the machine to the socket were ended: they are not Postfix.
    case otherPeersAtSocket([UInt32])
    /// `endOfMessage` threw; the client got `451 4.3.0`. `queueID` is the MTA's name for the message.
    case messageFailed(queueID: String?, error: String)
    /// The server ends; this many messages were under way when its time was over, and were cut off (the client keeps them).
    case stopped(cutOff: Int)

    package var description: String {
        switch self {
        case .listening(let socket): "milter: listening on \(socket)"
        case .refusedMTA(let reason): "milter: refused an MTA: \(reason)"
        case .otherPeersAtSocket(let users):
            "milter: ended connections of users \(users.map(String.init).joined(separator: ", ")) to the socket, which are not Postfix's (milter.peers)"
        case .messageFailed(let queueID, let error): "milter: message \(queueID ?? "without queue id") deferred: \(error)"
        case .stopped(let cutOff): cutOff == 0 ? "milter: stopped" : "milter: stopped, \(cutOff) messages interrupted"
        }
    }
}

/// A handler that has been installed for the process.
struct FilterInstallation: Sendable {
    let handler: any MilterHandler
    let needs: MilterNeeds
    let log: @Sendable (MilterDiagnostic) -> Void
    /// Nil where everyone may connect.
    var peers: PeerGuard?
}

/// libmilter's global state, mirrored.
struct ProcessState: Sendable {
    var installation: FilterInstallation?
    var sessions = 0
    var openMessages = 0
    /// No new message is taken.
    var draining = false
    /// Result of smfi_main, once it has returned.
    var finished: Int32?
    var waiters: [CheckedContinuation<Void, Never>] = []
}

/// libmilter serves one filter per process, once: it cannot be started again.
let process = Monitor(ProcessState())
