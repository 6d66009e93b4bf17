// Long work in short steps, with pauses for others that wait for the same resource.

/// Runs steps one after the other, each followed by a pause as long as the step. Without the
/// pauses, a waiting caller would get every second turn at most.
package enum PacedSteps {
    /// Runs `step` until there was nothing to do, or the task is cancelled.
    /// - Parameter step: works for some ten milliseconds, and returns the amount that it did.
    package static func run(_ step: () async throws -> Int) async throws {
        while true {
            let start = ContinuousClock.now
            guard try await step() > 0 else { return }
            try await Task.sleep(for: ContinuousClock.now - start)
        }
    }

    /// Runs `step` until `count` is done.
    /// - Parameters:
    ///   - most: the maximum amount of one step.
    ///   - step: does at most the given amount, and returns the amount that it did.
    package static func run(_ count: Int, most: Int, _ step: (Int) async throws -> Int) async throws
    {
        var left = count
        try await run {
            guard left > 0 else { return 0 }
            let done = try await step(min(left, most))
            left -= done
            return done
        }
    }
}
