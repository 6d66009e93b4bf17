// Deletions continue while there are rows to delete.

import Database
import HTTP
import Synchronization
import TestSupport
import Testing

@testable import Service

@Suite(.blocking) struct DeletionStepsTests {
    private final class Steps: Sendable {
        let left: Mutex<[Int]>
        init(_ counts: [Int]) { left = Mutex(counts) }
        func next() -> Int { left.withLock { $0.removeFirst() } }
    }

    /// A step that deletes a thousand rows of one table and three of another is not the last one.
    @Test func deletionSteps_partialStep_continueUntilNoneIsLeft() async throws {
        let pool = BlockingPool(.requests, threads: 1)
        let steps = Steps([1_003, 2_000, 1, 0, 7])
        try await DeletionSteps(pool: pool).run { steps.next() }
        #expect(steps.left.withLock { $0 } == [7])
        await pool.stop()
    }

    /// Many rows of a table must not be deleted in one transaction.
    @Test func deletionSteps_rowCount_askForAtMostThousand() async throws {
        let pool = BlockingPool(.requests, threads: 1)
        let asked = Mutex<[Int]>([])
        try await DeletionSteps(pool: pool).run(2_300) { limit in
            asked.withLock { $0.append(limit) }
            return limit
        }
        #expect(asked.withLock { $0 } == [1_000, 1_000, 300])
        // Another process deleted rows in the meantime: none are left.
        let counts = Steps([1_000, 0, 7])
        try await DeletionSteps(pool: pool).run(5_000) { _ in counts.next() }
        #expect(counts.left.withLock { $0 } == [7])
        try await DeletionSteps(pool: pool).run(0) { _ in counts.next() }
        #expect(counts.left.withLock { $0 } == [7], "nothing is too much")
        await pool.stop()
    }

    @Test func deletionSteps_stepFails_throwItsError() async {
        struct Failure: Error {}
        let pool = BlockingPool(.requests, threads: 1)
        await #expect(throws: Failure.self) {
            try await DeletionSteps(pool: pool).run { throw Failure() }
        }
        await pool.stop()
    }

    /// The end of the service must not wait until all is deleted, which may take hours.
    @Test func deletionSteps_taskCancelled_end() async {
        let pool = BlockingPool(.requests, threads: 1)
        let began = AsyncStream.makeStream(of: Void.self)
        let deletion = Task {
            try await DeletionSteps(pool: pool).run {
                began.continuation.yield()
                return 1
            }
        }
        for await _ in began.stream { break }
        deletion.cancel()
        await #expect(throws: CancellationError.self) { try await deletion.value }
        await pool.stop()
    }
}
