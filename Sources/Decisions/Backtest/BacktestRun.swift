// Reads the log for a backtest: selects the decisions that count, and finds the signals that each
// past policy declared.

import Accounts
import Database
import RiskPolicy

/// Runs a candidate on the log.
package struct BacktestRun {
    /// Number of decisions read, including those that did not count.
    package private(set) var read = 0
    /// Number of decisions of teams and apps that the candidate would not decide for.
    package private(set) var leftOut = 0
    package private(set) var backtest: Backtest

    private let listings: ListingStore
    private let filter: DecisionFilter
    /// The name under which the candidate would serve; if nil, all decisions count.
    private let name: String?
    private let teams: [Int64: String]
    private let apps: [String: String]
    private let standard: String?
    private var past: [String: [PolicyEvent: PastPolicy]?] = [:]

    /// Decisions count if the candidate would serve their team or app. These are the decisions
    /// bound to its name, and the unbound ones if it is or would become the default. With a team in
    /// the filter, all decisions of that team count.
    package init(
        _ candidate: Policy, listings: ListingStore, filter: DecisionFilter, sliceSeconds: Int64,
        now: Int64
    ) throws {
        self.listings = listings
        self.filter = filter
        backtest = Backtest(candidate, sliceSeconds: sliceSeconds, now: now)
        let arrangement = try listings.policies.arrangement()
        let isKnown = arrangement.policies.contains { $0.name == candidate.name && !$0.isDefault }
        let isBound = arrangement.bindings.contains { $0.name == candidate.name }
        name =
            filter.team != nil
            ? nil : isKnown && isBound ? candidate.name : arrangement.standard?.name
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

    /// Reads all decisions, the oldest first; `progress` gets the number of rows read
    /// so far and the last row.
    package mutating func run(
        progress: (_ read: Int, _ last: LoggedDecision) -> Void = { _, _ in }
    ) throws {
        try listings.decisions.walk(filter) { decisions in
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
        if past[record.policyHash] == nil {
            past[record.policyHash] = .some(try policy(of: record.policyHash))
        }
        let known = past[record.policyHash] ?? nil
        backtest.add(decision, past: PolicyEvent(rawValue: record.event).flatMap { known?[$0] })
    }

    /// A past policy by event; nil if it is deleted or no longer loads.
    private func policy(of hash: String) throws -> [PolicyEvent: PastPolicy]? {
        do {
            let policy = try LoadedPolicy(try listings.policies.policy(hash: hash)).policy
            let used = SignalSource(policy).counters
            return Dictionary(
                uniqueKeysWithValues: PolicyEvent.allCases.map { event in
                    let unused = policy.counters.indices.filter {
                        used[event]?.contains($0) == false
                    }.map {
                        policy.counters[$0].signal
                    }
                    let signals = Set(policy.signals.map(\.name)).subtracting(unused)
                    return (
                        event,
                        PastPolicy(policy, at: event, signals: signals, for: backtest.candidate)
                    )
                })
        } catch let failure as StoreFailure where failure.isRefusal {
            return nil
        } catch is PolicyLoadError {
            return nil
        }
    }
}
