// The milter under the service group: starts with the group, ends gracefully with it.

import Milter
import Foundation
import ServiceLifecycle

/// Serves Postfix until shutdown; transactions under way are finished first.
package struct MilterService: Service {
    private let server: MilterServer
    private let deadline: Duration

    /// - Parameter deadline: how long open transactions may take after shutdown was asked for.
    package init(server: MilterServer, deadline: Duration) {
        self.server = server
        self.deadline = deadline
    }

    package func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await server.stopped()
        } onCancelOrGracefulShutdown: { [server, deadline] in
            // Blocks until the last transaction is over: not on a thread that tasks share.
            Thread.detachNewThread { server.stop(finishingWithin: deadline) }
        }
    }
}
