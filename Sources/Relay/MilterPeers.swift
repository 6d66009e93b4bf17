// The users of this machine that are Postfix. They may connect to the milter's socket, and copies
// of messages may be handed to them.

import Glibc
import Milter
import Support

/// `milter.peers`, resolved to the users of this machine.
package struct MilterPeers: Sendable {
    /// Nil if everyone may connect: no user is configured, or none of the configured users exists
    /// on this machine.
    package let users: Set<uid_t>?
    /// Names of users who do not exist on this machine.
    package let unknown: [String]

    /// - Parameter names: of users, or their numbers.
    package init(_ names: [String]) {
        let found = names.compactMap(MilterServer.user)
        users = found.isEmpty ? nil : Set(found)
        unknown = names.filter { MilterServer.user($0) == nil }
    }

    /// The problem and the remedy if Postfix runs as a user whose connections would be ended. Nil
    /// if it may connect, or if this machine does not know that user.
    /// - Parameter mailOwner: Postfix's `mail_owner`.
    package func trouble(mailOwner: String) -> Trouble? {
        guard let users, let owner = MilterServer.user(mailOwner), owner != 0,
            !users.contains(owner)
        else { return nil }
        return Trouble(
            "Postfix runs as \(mailOwner) (mail_owner), which milter.peers does not name: its connections are closed, and all mail waits (451)",
            "write `milter: {peers: [\(mailOwner)]}` into postern.yaml, and restart postern serve"
        )
    }

    /// The reason why nothing may be handed over on a connection to Postfix; nil if it may. Call it
    /// after the greeting of the other end.
    ///
    /// If the kernel reports no user for a loopback address, the peer is not trusted. Another
    /// machine is trusted as configured.
    package func objection(to descriptor: Int32) -> String? {
        guard let users else { return nil }
        guard let user = SocketDiagnosis.user(atOtherEndOf: descriptor) else {
            return SocketDiagnosis.isLoopback(descriptor)
                ? "the kernel does not report which user listens there, so it may not be Postfix"
                : nil
        }
        guard user != 0, user != geteuid(), !users.contains(user) else { return nil }
        return user == SocketDiagnosis.gone
            ? "the process that listened there has ended"
            : "user \(user) listens there, which is not Postfix's user (milter.peers)"
    }
}
