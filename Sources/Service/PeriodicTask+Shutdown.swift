// Repeats a task of a service until the service must end.

import Concurrency
import ServiceLifecycle

extension PeriodicTask {
    /// Like `run`, until graceful shutdown or cancellation; `body` gets both as cancellation.
    /// - Returns: the state at the end.
    @discardableResult
    static func untilShutdown<State: Sendable>(
        keeping state: State, _ body: @escaping @Sendable (inout State) async -> Duration
    ) async -> State {
        await cancelWhenGracefulShutdown { await run(keeping: state, body) }
    }

    /// With a fixed pause.
    @discardableResult
    static func untilShutdown<State: Sendable>(
        every pause: Duration, keeping state: State,
        _ body: @escaping @Sendable (inout State) async -> Void
    ) async -> State {
        await untilShutdown(keeping: state) { state in
            await body(&state)
            return pause
        }
    }

    /// Without state.
    static func untilShutdown(
        every pause: Duration, _ body: @escaping @Sendable () async -> Void
    ) async {
        await untilShutdown(every: pause, keeping: ()) { _ in await body() }
    }
}
