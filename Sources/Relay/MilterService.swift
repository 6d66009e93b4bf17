// The milter under the service group: starts with the group, ends gracefully with it.

import Concurrency
import Milter
import ServiceLifecycle

/// Serves Postfix until shutdown; transactions under way are finished first.
package struct MilterService: Service {
    /// Already listening.
    let server: MilterServer
    /// How long open transactions may take after shutdown was asked for.
    let deadline: Duration
    /// Called when the group runs, and with it its signal handling: anyone who reads it may send SIGTERM at once.
    let announce: @Sendable () -> Void

    package func run() async throws {
        announce()
        await withTaskCancellationOrGracefulShutdownHandler {
            await server.stopped()
        } onCancelOrGracefulShutdown: { [server, deadline] in
            // Blocks until the last transaction is over: not on a thread that tasks share.
            SystemThread.detach { server.stop(finishingWithin: deadline) }
        }
    }
}
