// Connections that were accepted when the listener ends.

import HTTP
import NIOCore
import NIOPosix
import TestSupport
import Testing

struct AcceptedConnectionTests {
    typealias Accepted = AcceptedConnection<ByteBuffer, ByteBuffer>

    @Test(.timeLimit(.minutes(1)), arguments: [1, 20])
    func listener_endsWhileConnectionsWait_closesThem(connections: Int) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0) {
            channel in
            channel.eventLoop.makeCompletedFuture {
                try Accepted(Accepted.Connection(wrappingChannelSynchronously: channel))
            }
        }
        let address = try #require(listener.channel.localAddress)
        let clients = try await listener.executeThenClose { accepted in
            var clients: [any Channel] = []
            for _ in 0..<connections {
                clients.append(try await ClientBootstrap(group: group).connect(to: address).get())
            }
            // The first is dropped here, and the others with the sequence.
            for try await _ in accepted { break }
            return clients
        }
        // It would end the process where one were dropped, and never end where one stayed open.
        for client in clients { try await client.closeFuture.get() }
        #expect(clients.allSatisfy { !$0.isActive })
    }

    @Test(.timeLimit(.minutes(1)))
    func connection_served_isClosedByItsServerOnly() async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let listener = try await ServerBootstrap(group: group).bind(host: "127.0.0.1", port: 0) {
            channel in
            channel.eventLoop.makeCompletedFuture {
                try Accepted(Accepted.Connection(wrappingChannelSynchronously: channel))
            }
        }
        let address = try #require(listener.channel.localAddress)
        let greeting = try await listener.executeThenClose { accepted in
            let client = try await ClientBootstrap(group: group).connect(to: address) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Accepted.Connection(wrappingChannelSynchronously: channel)
                }
            }
            return try await client.executeThenClose { inbound, _ in
                var waiting = accepted.makeAsyncIterator()
                // The box is dropped here, before a word is said.
                let served = try #require(try await waiting.next()).take()
                try await served.executeThenClose { _, outbound in
                    try await outbound.write(ByteBuffer(string: "220 ready"))
                }
                var heard = ByteBuffer()
                for try await part in inbound { heard.writeImmutableBuffer(part) }
                return String(buffer: heard)
            }
        }
        #expect(greeting == "220 ready")
    }
}
