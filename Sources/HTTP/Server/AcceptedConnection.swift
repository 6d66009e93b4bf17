// A connection between its accepting and its serving.

import HummingbirdCore
import NIOCore
import Synchronization

/// A connection that was accepted, and that is closed where it is never served: a listener that
/// ends drops the connections that wait in its sequence, and NIO ends the process when an
/// `NIOAsyncChannel` is dropped that no one executed.
package final class AcceptedConnection<Inbound: Sendable, Outbound: Sendable>:
    ServerChildChannelValue
{
    package typealias Connection = NIOAsyncChannel<Inbound, Outbound>

    private let connection: Connection
    private let isTaken = Atomic(false)

    package var channel: any Channel { connection.channel }

    package init(_ connection: Connection) { self.connection = connection }

    /// The connection, for him who serves it: he must call `executeThenClose`. To be called once.
    package func take() -> Connection {
        let wasTaken = isTaken.exchange(true, ordering: .relaxed)
        precondition(!wasTaken, "a connection is served once")
        return connection
    }

    deinit {
        guard !isTaken.load(ordering: .relaxed) else { return }
        Task { [connection] in try? await connection.executeThenClose { _, _ in } }
    }
}
