// The milter in the service group: starts with the group, and stops gracefully with it.

import Concurrency
import Milter
import ServiceLifecycle

/// Serves Postfix until shutdown; open transactions are finished first.
package struct MilterService: Service {
    /// Already listening.
    let server: MilterServer
    /// How long open transactions may take after shutdown was requested.
    let deadline: Duration
    /// Called when the group runs, with its signal handling: a reader of the output may then send SIGTERM at once.
    let announce: @Sendable () -> Void

    package func run() async throws {
        announce()
        await withTaskCancellationOrGracefulShutdownHandler {
            await server.stopped()
        } onCancelOrGracefulShutdown: { [server, deadline] in
            // Blocks until the last transaction has ended, so it must not run on a thread that tasks share.
            SystemThread.detach { server.stop(finishingWithin: deadline) }
        }
    }
}
