// Deletes expired rows step by step, with time in between for other writers.

import Concurrency
import Database
import HTTP

/// Deletes any number of rows without delaying other writers.
struct DeletionSteps {
    /// The pool in which the steps block.
    let pool: BlockingPool

    /// Rows in one step.
    private static let rows = 1_000

    /// Runs `step` until there is nothing to delete, or the task is cancelled. Other writers can
    /// write between two steps.
    /// - Parameter step: deletes rows of any tables for some ten milliseconds; returns how many.
    func run(_ step: @escaping @Sendable () throws -> Int) async throws {
        try await PacedSteps.run { try await pool.run(step) }
    }

    /// Deletes `count` rows, like `run`.
    /// - Parameter step: deletes at most this many rows.
    func run(_ count: Int, _ step: @escaping @Sendable (Int) throws -> Int) async throws {
        try await PacedSteps.run(count, most: Self.rows) { limit in
            try await pool.run { try step(limit) }
        }
    }
}
