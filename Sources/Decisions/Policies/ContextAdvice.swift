// Compares the apps' context of the last day with a policy, so that an operator notices if a new
// policy leaves out context that a backend sends.

import Accounts
import CEL
import Database
import RiskPolicy
import Support

/// The context of the newest requests of a day, and the rules that ended in an error.
package struct RecentQuestions: Sendable {
    /// Context of an app by the policy that decided.
    package struct Sent: Sendable, Hashable {
        package let clientID: String
        package let team: Int64
        package let policyHash: String
        /// The name after `context.`.
        package let name: String
        /// Why the value could not be used; nil if it was used or left out.
        package let fault: SignalFault?
    }

    /// A rule, or a kind of challenge, that ended in an error.
    package struct Failed: Sendable, Hashable {
        package let policyName: String
        package let policyHash: String
        package let name: String
    }

    package private(set) var sent: [Sent: Int] = [:]
    package private(set) var failed: [Failed: Int] = [:]

    /// Seconds back.
    package static let window: Int64 = 86_400
    /// The number of newest requests to examine: some 0.1 s of reading.
    package static let maximum = 20_000

    fileprivate mutating func add(_ record: DecisionRecord) {
        let unusable = record.contextTroubles.unusable
        for name in record.contextNames {
            let fault = unusable.first { $0.name.utf8.elementsEqual(name.utf8) }?.fault
            let key = Sent(
                clientID: record.clientID, team: record.teamNumber, policyHash: record.policyHash,
                name: name, fault: fault)
            sent[key, default: 0] += 1
        }
        for name in record.errors {
            let key = Failed(
                policyName: record.policyName, policyHash: record.policyHash, name: name)
            failed[key, default: 0] += 1
        }
    }
}

extension DecisionRepository {
    /// The context of the requests of the day before `now`, and the rules that were errors.
    package func recent(now: Int64) throws(StoreFailure) -> RecentQuestions {
        var recent = RecentQuestions()
        for record in try newestOdd(
            since: now - RecentQuestions.window, among: RecentQuestions.maximum)
        { recent.add(record) }
        return recent
    }
}

/// Sentences about apps and a policy.
package struct ContextAdvice {
    private let store: Store
    private let recent: RecentQuestions
    private let arrangement: PolicyArrangement

    package init(_ store: Store, now: Int64) throws(StoreFailure) {
        self.store = store
        recent = try store.decisions.recent(now: now)
        arrangement = try store.policies.arrangement()
    }

    /// The policy that decides for an app, by the arrangement.
    private func current(_ clientID: String, _ team: Int64) -> NamedPolicy? {
        let bindings = arrangement.bindings
        let own = bindings.first { binding in
            if case .app(let id) = binding.target {
                id.utf8.elementsEqual(clientID.utf8)
            } else {
                false
            }
        }
        let teams = bindings.first { binding in
            if case .team = binding.target { binding.teamNumber == team } else { false }
        }
        guard let name = (own ?? teams)?.name else { return arrangement.standard }
        return arrangement.policies.first { $0.name == name }
    }

    /// The context of apps for which a policy decides, or would decide, that it does not accept as
    /// sent.
    /// - Parameter replaced: the name of the policy in force whose apps the policy would decide
    ///   for.
    package func sentences(
        for policy: Policy, label: String, replacing replaced: String
    ) -> [String] {
        sentences(label, policy) { current($0.clientID, $0.team)?.name == replaced }
    }

    /// The name of the policy in force that a policy would replace.
    package func replaced(by policy: Policy) -> String {
        arrangement.policies.first { $0.name == policy.name }?.name ?? arrangement.standard?.name
            ?? ""
    }

    /// For all policies in force: the context of their apps that they do not accept.
    package func contextTroubles() throws(StoreFailure) -> [String] {
        var sentences: [String] = []
        for named in arrangement.policies
        where recent.sent.keys.contains(where: { current($0.clientID, $0.team) == named }) {
            guard let policy = try loaded(named.hash) else { continue }
            sentences += self.sentences("\(named.name) \(named.version)", policy) {
                current($0.clientID, $0.team) == named
            }
        }
        return sentences
    }

    /// The same, with the rules that end in errors.
    package func troubles() throws(StoreFailure) -> [Trouble] {
        var troubles = try contextTroubles().map {
            Trouble($0, "correct what the app sends, or what the policy declares")
        }
        let failed = recent.failed.filter { failed in
            arrangement.policies.contains { $0.hash == failed.key.policyHash }
        }
        for (failed, count) in failed.sorted(by: {
            ($1.value, $0.key.name) < ($0.value, $1.key.name)
        }) {
            troubles.append(
                Trouble(
                    "'\(failed.name)' of policy \(failed.policyName) ended in an error in \(Self.questions(count)) of the last day",
                    "\(.listDecisions, failed.name) finds them, and postern decision show gives the error"
                ))
        }
        return troubles
    }

    private func loaded(_ hash: String) throws(StoreFailure) -> Policy? {
        let stored = try store.policies.policy(hash: hash)
        return (try? LoadedPolicy(stored))?.policy
    }

    private func sentences(
        _ label: String, _ policy: Policy, _ isServed: (RecentQuestions.Sent) -> Bool
    ) -> [String] {
        var counts: [String: Int] = [:]
        var loaded: [String: Policy] = [:]
        // A backend may invent any number of names: they must not hide the other advice.
        var undeclared: [String: [String: Int]] = [:]
        for (sent, count) in recent.sent where isServed(sent) {
            let name = "context." + sent.name
            let app = "\(sent.clientID) sends \(name)"
            guard let slot = policy.slot(named: name) else {
                undeclared[sent.clientID, default: [:]][name, default: 0] += count
                continue
            }
            let now = policy.signals[slot]
            if loaded[sent.policyHash] == nil {
                loaded[sent.policyHash] = try? self.loaded(sent.policyHash)
            }
            let before = loaded[sent.policyHash].flatMap { old in
                old.slot(named: name).map { old.signals[$0] }
            }
            let isSame = before.map { $0.type == now.type && now.admitsAll(of: $0) } ?? true
            if !isSame {
                let sentence =
                    "\(app), which \(label) declares otherwise than the policy that decided: every rule that reads a value that does not fit asks"
                counts[sentence, default: 0] += count
            } else if let fault = sent.fault, before != nil {
                counts[
                    "\(app) with a value that \(fault.text): every rule that reads it asks",
                    default: 0] += count
            }
        }
        var more: [String] = []
        for (clientID, names) in undeclared.sorted(by: { $0.key < $1.key }) {
            for (name, count) in names.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) })
                .prefix(Self.mostNames)
            {
                counts[
                    "\(clientID) sends \(name), which \(label) does not declare: it is left out"] =
                    count
            }
            if names.count > Self.mostNames {
                more.append(
                    "\(clientID) sends \(names.count - Self.mostNames) more names that \(label) does not declare"
                )
            }
        }
        return counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
            "\($0.key) (\(Self.questions($0.value)) of the last day)"
        } + more
    }

    /// Most undeclared names of one app in the advice.
    private static let mostNames = 5

    private static func questions(_ count: Int) -> String { Count.text(count, "question") }
}

extension SignalDeclaration {
    /// Whether every value that another declaration of the same type admits is within the bounds of
    /// this one.
    fileprivate func admitsAll(of other: SignalDeclaration) -> Bool {
        let isAbove =
            minimum.map { minimum in other.minimum.map { $0 >= minimum } ?? false } ?? true
        let isBelow =
            maximum.map { maximum in other.maximum.map { $0 <= maximum } ?? false } ?? true
        return isAbove && isBelow && other.maximumLength <= maximumLength
    }
}
