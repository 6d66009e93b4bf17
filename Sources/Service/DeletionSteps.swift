// What has expired is deleted step by step, with room in between for those who write.

import HTTP

/// Deletions of any number of rows, none of which others notice.
struct DeletionSteps {
    /// Where the steps block.
    let pool: BlockingPool

    /// Runs `step` until there was nothing to delete, or the task is cancelled. Between two steps others write for as long as one
    /// took, since those who wait for their turn would else have every second one at the most.
    /// - Parameter step: deletes some rows, some ten milliseconds' worth; how many, of whatever tables.
    func run(_ step: @escaping @Sendable () throws -> Int) async throws {
        while true {
            let start = ContinuousClock.now
            guard try await pool.run(step) > 0 else { return }
            try await Task.sleep(for: ContinuousClock.now - start)
        }
    }
}
