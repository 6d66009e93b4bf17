// Work that repeats until its task is cancelled.

/// Work with pauses in between.
package enum PeriodicTask {
    /// Runs `body` at once, and again after each pause, until the task is cancelled; cancelling ends a pause at once.
    /// - Parameters:
    ///   - state: what `body` keeps from one run to the next.
    ///   - body: returns the pause until it runs again.
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

    /// The same with one pause and nothing kept.
    package static func run(every pause: Duration, _ body: @Sendable () async -> Void) async {
        await run(keeping: ()) { _ in
            await body()
            return pause
        }
    }
}
