// The tests that a policy from a folder must pass before it replaces the active policy of the same
// name.

import Decisions
import RiskPolicy
import Support

enum PolicyGate {
    /// The number of inputs on which the guarantees must hold. It takes about a second, and finds
    /// almost every mistake.
    static let generatedInputs = 50_000
    /// The number of logged decisions, the newest, on which the guarantees must hold.
    static let loggedInputs = 10_000

    /// The policy in the store's form, after its tests passed and its guarantees held on the log.
    /// Throws `PolicyRefusal`.
    /// - Parameter candidate: loaded with `generatedInputs`.
    static func stored(
        _ candidate: PolicyCandidate, of files: PolicyFolder, _ log: DecisionRepository
    ) throws -> StoredPolicy {
        let policy = candidate.policy
        let tests = files.file(PolicyDocument.testsFile)
        if let text = candidate.document.files[PolicyDocument.testsFile] {
            try PolicyTestSuite.load(text, file: tests, policy: policy).hold(policy)
        } else {
            Failure.warn("\(tests): no such file, so only the guarantees were tested")
        }
        try holdGuarantees(policy, file: files.file(PolicyDocument.policyFile), log)
        return StoredPolicy(
            name: policy.name, version: policy.version, document: candidate.document.octets)
    }

    /// Refuses a policy whose rules break its guarantees in one of the last logged decisions.
    private static func holdGuarantees(
        _ policy: Policy, file: String, _ log: DecisionRepository
    ) throws {
        guard policy.kind == .verification, !policy.guarantees.isEmpty else { return }
        var backtest = Backtest(policy, now: PosternClock.now())
        for decision in try log.newest(DecisionFilter(), limit: loggedInputs) {
            backtest.add(decision, past: nil)
        }
        guard let broken = backtest.brokenGuarantees.first else { return }
        let count = Count.text(backtest.brokenGuaranteeCount)
        throw PolicyRefusal(
            brokenGuarantee: broken.condition, of: policy, file: file,
            where:
                "the logged decision \(broken.decision), \(count) of the last \(Count.text(backtest.comparison.total.questions + backtest.untold)) in all"
        )
    }
}
