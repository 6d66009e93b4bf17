// The automatic deletions of the service.

import Accounts
import Database
import HTTP
import Logging
import PosternConfiguration
import TestSupport
import Testing

@testable import Service

@Suite(.blocking) struct HousekeepingTests {
    private static let now: Int64 = 1_795_000_000

    /// If one deletion fails, the others must not wait for the next hour, or for ever.
    @Test(.timeLimit(.minutes(2))) func housekeeping_oneDeletionFails_runsTheOthers() async throws {
        let runner = try CommandRunner.initialised()
        let installation = try Installation.open(
            flag: runner.configuration, environment: [:], now: Self.now)
        defer { try? installation.close() }
        let store = installation.store
        let old = Change(actor: "test", now: Self.now - 2_000 * 86_400)
        let team = try store.teams.add(id: "juice", name: "Juice", old).number
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                """
                INSERT INTO rejections (team_id, source, hour, answer, reason, first_at, last_at, count, reference)
                VALUES (\(team), 'juice.example', 1, '550 5.7.1', 'r', \(old.now), \(old.now), 1, 'f')
                """)
            // The first deletion, and one between the audit and refusals of teams' mail.
            try connection.runScript(
                "ALTER TABLE stored_tokens RENAME TO away; ALTER TABLE checks RENAME TO away_too")
        }
        #expect(try store.audit.entries().contains { $0.at == old.now })
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let service = HousekeepingService(
            store: store, counters: CounterBuffer(store.counters),
            rejections: RejectionBuffer { _ in },
            lastMail: store.persons.lastMailBuffer(),
            tellUsers: { end.yield() }, reviewSuspensions: { [] },
            pool: BlockingPool(.service, threads: 4),
            now: { Self.now },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            deletionInterval: .seconds(3600))
        let running = Task { try await service.run() }
        for await _ in ends { break }
        running.cancel()
        _ = await running.result
        #expect(try store.audit.entries().allSatisfy { $0.at != old.now })
        #expect(try store.rejections.rejections(team: team, limit: 1).isEmpty)
    }
}
