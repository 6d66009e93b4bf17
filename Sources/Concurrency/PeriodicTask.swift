// Work that repeats until its task is cancelled.

/// Work with pauses in between.
package enum PeriodicTask {
    /// Runs `body` at once, and again after each pause, until the task is cancelled. A cancellation
    /// ends a pause at once.
    /// - Parameters:
    ///   - state: the value that `body` keeps from one run to the next.
    ///   - body: returns the pause until its next run.
    /// - Returns: the state at the end.
    @discardableResult
    package static func run<State: Sendable>(
        keeping state: State, _ body: @Sendable (inout State) async -> Duration
    ) async -> State {
        var state = state
        while !Task.isCancelled {
            let pause = await body(&state)
            try? await Task.sleep(for: pause)
        }
        return state
    }

    /// Runs `body` with a fixed pause and without a state.
    package static func run(every pause: Duration, _ body: @Sendable () async -> Void) async {
        await run(keeping: ()) { _ in
            await body()
            return pause
        }
    }
}
