// The milter in the service group: starts with the group, and stops gracefully with it.

import Concurrency
import Milter
import ServiceLifecycle

/// Serves Postfix until shutdown. Open transactions are finished first.
package struct MilterService: Service {
    /// Already listens.
    let server: MilterServer
    /// Maximum duration of open transactions after a shutdown request.
    let deadline: Duration
    /// Called when the group runs and handles signals. A reader of the output may then send SIGTERM
    /// at once.
    let announce: @Sendable () -> Void

    package func run() async throws {
        announce()
        await withTaskCancellationOrGracefulShutdownHandler {
            await server.stopped()
        } onCancelOrGracefulShutdown: { [server, deadline] in
            // Blocks until the last transaction has ended, so it must not
            // run on a thread that tasks share.
            SystemThread.detach { server.stop(finishingWithin: deadline) }
        }
    }
}
