// Which users of this machine are Postfix: who may connect to the milter's socket, and to whom copies of messages may be handed.

import Glibc
import Milter

/// `milter.peers` as this machine knows its users.
package struct MilterPeers: Sendable {
    /// Nil where everyone may: none is named, or none of those who are is on this machine.
    package let users: Set<uid_t>?
    /// Names of users who are not on this machine.
    package let unknown: [String]

    /// - Parameter names: of users, or their numbers.
    package init(_ names: [String]) {
        let found = names.compactMap(MilterServer.user)
        users = found.isEmpty ? nil : Set(found)
        unknown = names.filter { MilterServer.user($0) == nil }
    }

    /// What is wrong, and what to write, where Postfix runs as a user whose connections would be ended; nil where it may connect,
    /// or this machine does not know that user.
    /// - Parameter mailOwner: Postfix's `mail_owner`.
    package func trouble(mailOwner: String) -> (sentence: String, remedy: String)? {
        guard let users, let owner = MilterServer.user(mailOwner), owner != 0, !users.contains(owner) else { return nil }
        return (
            "Postfix runs as \(mailOwner) (mail_owner), which milter.peers does not name: its connections are closed, and all mail waits (451)",
            "write `milter: {peers: [\(mailOwner)]}` into postern.yaml, and restart postern serve"
        )
    }

    /// Why nothing may be handed over on a connection to Postfix; nil where it may. Asked once the other end has greeted.
    ///
    /// What the kernel does not tell of a loopback address is a stranger; another machine is trusted as it was named.
    package func objection(to descriptor: Int32) -> String? {
        guard let users else { return nil }
        guard let user = SocketDiagnosis.user(atOtherEndOf: descriptor) else {
            return SocketDiagnosis.isLoopback(descriptor)
                ? "the kernel does not say who listens there, so it may not be Postfix" : nil
        }
        guard user != 0, user != geteuid(), !users.contains(user) else { return nil }
        return user == SocketDiagnosis.gone
            ? "the process that listened there has ended"
            : "user \(user) listens there, which is not Postfix's user (milter.peers)"
    }
}
