// What a service does again and again, until it is asked to end.

import ServiceLifecycle

enum PeriodicTask {
    /// Runs `body` at once and then again after each pause, until graceful shutdown or cancellation. Either ends a pause at once;
    /// `body` sees them as cancellation.
    /// - Parameter state: what `body` keeps from one run to the next.
    static func run<State: Sendable>(
        every pause: Duration, keeping state: State, _ body: @escaping @Sendable (inout State) async -> Void
    ) async {
        await cancelWhenGracefulShutdown {
            var state = state
            while !Task.isCancelled {
                await body(&state)
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// The same where nothing is kept.
    static func run(every pause: Duration, _ body: @escaping @Sendable () async -> Void) async {
        await run(every: pause, keeping: ()) { _ in await body() }
    }
}
