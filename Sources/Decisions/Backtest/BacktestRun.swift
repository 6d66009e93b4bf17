// Walks through the log for a backtest: whose decisions count, and what each policy of the past declared.

import Database
import Accounts
import RiskPolicy

/// A candidate before the log.
package struct BacktestRun {
    /// Decisions that were read, whether they counted or not.
    package private(set) var read = 0
    /// Decisions of teams and apps that the candidate would not decide for.
    package private(set) var leftOut = 0
    package private(set) var backtest: Backtest

    private let store: Store
    private let filter: DecisionFilter
    /// The name that the candidate would serve under; nil: everyone counts.
    private let name: String?
    private let teams: [Int64: String]
    private let apps: [String: String]
    private let standard: String?
    private var declared: [String: [PolicyEvent: Set<String>]?] = [:]

    /// The decisions that count are those of teams and apps that the candidate would serve: those bound to its name, and where it
    /// is or would become the default, the rest. With a team in the filter all of that team's count.
    package init(_ candidate: Policy, store: Store, filter: DecisionFilter, sliceSeconds: Int64, now: Int64) throws {
        self.store = store
        self.filter = filter
        backtest = Backtest(candidate, sliceSeconds: sliceSeconds, now: now)
        let arrangement = try store.policies.arrangement()
        let isKnown = arrangement.policies.contains { $0.name == candidate.name && !$0.isDefault }
        let isBound = arrangement.bindings.contains { $0.name == candidate.name }
        name = filter.team != nil ? nil : isKnown && isBound ? candidate.name : arrangement.standard?.name
        standard = arrangement.standard?.name
        var teams: [Int64: String] = [:]
        var apps: [String: String] = [:]
        for binding in arrangement.bindings {
            switch binding.target {
            case .team: teams[binding.teamNumber] = binding.name
            case .app(let clientID): apps[clientID] = binding.name
            }
        }
        (self.teams, self.apps) = (teams, apps)
    }

    /// Reads everything, the oldest first; `progress` gets how many rows were read, and the last of them.
    package mutating func run(progress: (_ read: Int, _ last: LoggedDecision) -> Void = { _, _ in }) throws {
        try store.decisions.walk(filter) { decisions in
            for decision in decisions { try add(decision) }
            if let last = decisions.last { progress(read, last) }
        }
    }

    private mutating func add(_ decision: LoggedDecision) throws {
        read += 1
        let record = decision.record
        if let name, apps[record.clientID] ?? teams[record.teamNumber] ?? standard != name {
            leftOut += 1
            return
        }
        if declared[record.policyHash] == nil { declared[record.policyHash] = .some(try signals(of: record.policyHash)) }
        let known = declared[record.policyHash] ?? nil
        backtest.add(decision, declared: PolicyEvent(rawValue: record.event).flatMap { known?[$0] })
    }

    /// What a policy of the past declared, and had counted, by event; nil where it is not kept or does not load any more.
    private func signals(of hash: String) throws -> [PolicyEvent: Set<String>]? {
        do {
            let policy = try LoadedPolicy(try store.policies.policy(hash: hash)).policy
            let used = SignalSource(policy).counters
            return Dictionary(
                uniqueKeysWithValues: PolicyEvent.allCases.map { event in
                    let unused = policy.counters.indices.filter { used[event]?.contains($0) == false }.map {
                        policy.counters[$0].signal
                    }
                    return (event, Set(policy.signals.map(\.name)).subtracting(unused))
                })
        } catch let failure as StoreFailure where failure.isRefusal {
            return nil
        } catch is PolicyLoadError {
            return nil
        }
    }
}
