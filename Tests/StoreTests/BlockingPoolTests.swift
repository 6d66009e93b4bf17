// The threads of each kind of blocking work: no kind waits for another.

import Concurrency
import Database
import TestSupport
import Testing

@Suite(.blocking) struct BlockingPoolTests {
    /// Blocks every thread of one kind, with one more call that waits for them.
    @Test(.timeLimit(.minutes(1)), arguments: BlockingWork.allCases)
    func run_everyThreadOfOneKindIsHeld_theOthersAnswer(_ held: BlockingWork) async throws {
        let pools = BlockingWork.allCases.map { (work: $0, pool: BlockingPool($0)) }
        let filled = try #require(pools.first { $0.work == held }).pool
        let (begun, gate) = (SystemSemaphore(), SystemSemaphore())
        let isReached = Monitor(false)
        try await withThrowingTaskGroup { group in
            for _ in 0..<held.facts.threads {
                group.addTask { @Sendable in
                    try await filled.run {
                        begun.signal()
                        gate.wait()
                    }
                }
            }
            for _ in 0..<held.facts.threads { begun.wait() }
            group.addTask { @Sendable in try await filled.run { isReached.with { $0 = true } } }
            for (work, pool) in pools where work != held {
                #expect(try await pool.run { work } == work)
            }
            #expect(!isReached.with { $0 })
            for _ in 0..<held.facts.threads { gate.signal() }
            try await group.waitForAll()
        }
        #expect(isReached.with { $0 })
        for (_, pool) in pools { await pool.stop() }
    }

    @Test func run_afterItsEnd_isCancelled() async {
        let pool = BlockingPool(.lease)
        await pool.stop()
        await #expect(throws: CancellationError.self) { try await pool.run {} }
    }

    @Test func decisionDocument_pools_areThoseDeclared() throws {
        let rows = BlockingWork.allCases.map(\.facts).map {
            "| \($0.name) | \($0.threads) | \($0.reason) |\n"
        }
        let table =
            "| work | threads | what it is, and why it is apart |\n|---|---|---|\n" + rows.joined()
        #expect(
            try DocumentSection(
                "pools", by: "BlockingPoolTests", in: "decisions/005-threads-for-what-blocks.md"
            ).holds(table))
    }
}
