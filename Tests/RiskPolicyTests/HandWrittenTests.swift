// The policy of `PolicyBench` that is written by hand decides like the default policy.

import CEL
import TestSupport
import Testing

@testable import RiskPolicy

@Suite(.blocking) struct HandWrittenTests {
    /// If the default policy changes, the one by hand must change too.
    @Test func handWrittenPolicy_generatedInputs_decidesAsDefault() throws {
        let policy = try DefaultPolicy.load()
        let now = try #require(CELTimestamp(seconds: 1_790_000_000))
        var generator = InputGenerator(policy: policy, seed: 42, now: now)
        var asked = 0
        for number in 0..<4_000 {
            var input = generator.next(event: PolicyEvent.allCases[number % 4])
            input.isHistoryUnavailable = false
            let verdict = policy.answer(policy.decide(input))
            let byHand = decideByHand(HandWrittenSignals(policy, input))
            #expect(byHand.difference(from: verdict, of: policy) == nil)
            asked += byHand.isAsked ? 1 : 0
        }
        #expect((1_000..<3_900).contains(asked), "\(asked) of 4,000 asked")
    }
}
