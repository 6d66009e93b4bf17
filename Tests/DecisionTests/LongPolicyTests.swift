// Policies that take long are not evaluated on Swift's few threads, which answer HTTP.

import Decisions
import RiskPolicy
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct LongPolicyTests {
    /// Runs here, and counts its calls.
    private final class Counter: BlockingExecutor {
        private let counted = Mutex(0)
        var count: Int { counted.withLock { $0 } }

        func run<Value: Sendable>(
            _ body: @escaping @Sendable () throws -> Value
        ) async throws -> Value {
            counted.withLock { $0 += 1 }
            return try body()
        }
    }

    private func runs(_ condition: String) async throws -> Int {
        let text = """
            policy: p
            version: "1"
            challenges: [{kind: human_check}]
            defaults: {challenge: human_check}
            signals: {event: string, account.real_user_status: int?}
            rules:
            - {id: r, effect: always, events: [sign_in], challenge: human_check, reason: R, condition: '\(condition)'}

            """
        let counter = Counter()
        let stored = StoredPolicy(
            name: "p", version: "1", document: PolicyDocument(files: ["policy.yaml": text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored), interpreting: counter)
        let sub = try bench.user("u1")
        #expect(try await bench.ask(.signIn, sub: sub).decision == "allow")
        let before = counter.count
        // Without the store, too.
        try bench.storeIsAway(true)
        #expect(try await bench.ask(.signIn, sub: sub).decision == "allow")
        #expect(counter.count == 2 * before)
        return before
    }

    /// Such policies must not delay health requests.
    @Test func policy_mayTakeLong_decidesOnItsOwnThreads() async throws {
        #expect(try await runs("[1, 2].exists(x, x == account.real_user_status)") == 1)
        #expect(try await runs("account.real_user_status == 2") == 0)
    }
}
