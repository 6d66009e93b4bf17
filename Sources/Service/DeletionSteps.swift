// What has expired is deleted step by step, with room in between for those who write.

import Concurrency
import HTTP

/// Deletions of any number of rows, none of which others notice.
struct DeletionSteps {
    /// Where the steps block.
    let pool: BlockingPool

    /// Rows in one step.
    private static let rows = 1_000

    /// Runs `step` until there was nothing to delete, or the task is cancelled. Between two steps others write.
    /// - Parameter step: deletes some rows, some ten milliseconds' worth; how many, of whatever tables.
    func run(_ step: @escaping @Sendable () throws -> Int) async throws {
        try await PacedSteps.run { try await pool.run(step) }
    }

    /// Deletes `count` rows, as `run`.
    /// - Parameter step: deletes so many at most.
    func run(_ count: Int, _ step: @escaping @Sendable (Int) throws -> Int) async throws {
        try await PacedSteps.run(count, most: Self.rows) { limit in try await pool.run { try step(limit) } }
    }
}
