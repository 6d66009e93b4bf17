// Long work in short steps, with room in between for those who wait for the same thing.

/// Runs steps one after the other, each followed by a pause as long as it took: of those who wait for their turn, each would else
/// have every second one at the most.
package enum PacedSteps {
    /// Runs `step` until there was nothing to do, or the task is cancelled.
    /// - Parameter step: does a little, some ten milliseconds' worth; how much it did.
    package static func run(_ step: () async throws -> Int) async throws {
        while true {
            let start = ContinuousClock.now
            guard try await step() > 0 else { return }
            try await Task.sleep(for: ContinuousClock.now - start)
        }
    }

    /// The same until `count` is done.
    /// - Parameters:
    ///   - most: what a step may do.
    ///   - step: does so much at most.
    package static func run(_ count: Int, most: Int, _ step: (Int) async throws -> Int) async throws {
        var left = count
        try await run {
            guard left > 0 else { return 0 }
            let done = try await step(min(left, most))
            left -= done
            return done
        }
    }
}
