// Converts known facts to the signals that a policy declares, and to the JSON text in the log.

import Accounts
import CEL
import MailCrypto
import RiskPolicy
import Support

/// Signals of one policy, each with its slot: created once for each policy, used for every request.
package struct SignalSource: Sendable {
    /// All facts that a request's signals are made from.
    package struct Facts: Sendable {
        package var view: GrantView
        package var history: GrantHistory?
        package var token: TokenFacts?
        package var rates: AppRates?
        /// Nil if the request names no device.
        package var device: DeviceFacts?
        /// Already read by the policy's declarations.
        package var context: QuestionContext
        package var isHistoryAvailable: Bool
        /// Values of the policy's counters by their index; a counter without a key in the request
        /// is absent.
        package var velocity: [Int: Int64] = [:]
        /// Live lists for the requesting team; nil if they are unknown.
        package var lists: (any LiveLists)?
        /// When the request is answered, in whole seconds: a replay has no finer resolution.
        package var time: CELTimestamp

        package init(
            view: GrantView, history: GrantHistory?, token: TokenFacts?, rates: AppRates? = nil,
            device: DeviceFacts? = nil, context: QuestionContext = QuestionContext(),
            isHistoryAvailable: Bool = true, time: CELTimestamp
        ) {
            self.view = view
            self.history = history
            self.token = token
            self.rates = rates
            self.device = device
            self.context = context
            self.isHistoryAvailable = isHistoryAvailable
            self.time = time
        }
    }

    let policy: Policy
    private let slots: [(signal: StandardSignal, slot: Int, isHistory: Bool)]
    /// By the index of the counter.
    private let velocitySlots: [(name: String, slot: Int)]
    /// Whether it reads the class of the inbox's domain.
    package let readsDomainClass: Bool
    /// Whether it reads the rates of the app.
    package let readsRates: Bool
    /// By event, the indexes of the counters that count this event or are read at
    /// it; no others are needed.
    package let counters: [PolicyEvent: Set<Int>]

    package init(_ policy: Policy) {
        self.policy = policy
        slots = StandardSignal.ofDecisions.compactMap { signal in
            // The caller sets the event separately.
            signal == .event
                ? nil
                : policy.slot(named: signal.rawValue).map {
                    (signal, $0, signal.facts.origin != .question)
                }
        }
        velocitySlots = policy.counters.map { ($0.signal, policy.slot(named: $0.signal) ?? -1) }
        readsDomainClass = slots.contains { $0.signal == .inboxDomainClass }
        readsRates = slots.contains { $0.signal == .appSignUps || $0.signal == .appBaseline }
        counters = Dictionary(
            uniqueKeysWithValues: PolicyEvent.allCases.map { event in
                let slots = policy.slotsRead(at: event)
                return (
                    event,
                    Set(
                        policy.counters.indices.filter { index in
                            policy.counters[index].events.contains(event)
                                || policy.slot(named: policy.counters[index].signal).map(
                                    slots.contains) == true
                        })
                )
            })
    }

    /// The policy's input, and the signals in the form of the log: a JSON object, with context as
    /// keyed hashes.
    package func input(
        _ facts: Facts, marks: DecisionMarks
    ) -> (input: PolicyInput, signals: String) {
        let event = facts.view.event
        var input = policy.makeInput(event: event, now: facts.time)
        input.isHistoryUnavailable = !facts.isHistoryAvailable
        if facts.lists != nil { input.lists = facts.lists }
        if facts.isHistoryAvailable, let snoozes = facts.history?.snoozes, !snoozes.isEmpty {
            input.snoozed = policy.ruleSet(
                ids: snoozes.filter { $0.policy == policy.name }.map(\.rule))
        }
        var log = JSONWriter(capacity: 640)
        log.object { log in
            log.member("event", event.rawValue)
            for (signal, slot, isHistory) in slots where !isHistory || facts.isHistoryAvailable {
                let value = Self.value(signal, facts)
                if case .missing = value { continue }
                // A value outside the operator's bounds is missing.
                guard (try? policy.set(slot: slot, to: value, in: &input)) != nil else { continue }
                log.signal(signal.rawValue, value)
            }
            for (counter, count) in facts.velocity.sorted(by: { $0.key < $1.key })
            where velocitySlots.indices.contains(counter) {
                let (name, slot) = velocitySlots[counter]
                guard (try? policy.set(slot: slot, to: .int(count), in: &input)) != nil else {
                    continue
                }
                log.name(name)
                log.value(count)
            }
            for (slot, name, value) in facts.context.values
            where (try? policy.set(slot: slot, to: value, in: &input)) != nil {
                let mark = marks.context(name: name, value: value.text)
                log.member(
                    "context." + name, "#" + String(decoding: Base32.encode(mark), as: UTF8.self))
            }
            for (slot, name, fault) in facts.context.unusable {
                policy.mark(slot: slot, fault, in: &input)
                log.member("context." + name, ContextMark.text(fault))
            }
            for name in facts.context.ignored { log.member("context." + name, ContextMark.ignored) }
        }
        return (input, log.text)
    }

    private static func hours(since time: Int64?, _ now: Int64) -> CELValue {
        time.map { .int(max(0, now - $0) / 3_600) } ?? .missing
    }

    private static func int(_ value: Int64?) -> CELValue { value.map(CELValue.int) ?? .missing }
    private static func bool(_ value: Bool?) -> CELValue { value.map(CELValue.bool) ?? .missing }

    /// A new account with a verified token has an empty history; an account
    /// known only by name has none.
    private static func value(_ signal: StandardSignal, _ facts: Facts) -> CELValue {
        let (history, grant, now) = (facts.history, facts.history?.grant, facts.time.seconds)
        let isNewWithToken = history == nil && facts.token != nil
        func count(_ value: Int64?) -> CELValue { int(value ?? (isNewWithToken ? 0 : nil)) }
        switch signal {
        case .event: return .string(facts.view.event.rawValue)
        case .tokenAge: return facts.token.map { .int(max(0, now - $0.issuedAt)) } ?? .missing
        case .sinceSignIn:
            return facts.token?.authenticatedAt.map { .int(max(0, now - $0)) } ?? .missing
        case .signInMethods:
            return facts.token?.methods.map { .list($0.map(CELValue.string)) } ?? .missing
        case .realUserStatus: return int(facts.view.realUserStatus.map(Int64.init))
        case .priorStatus: return int(facts.view.priorStatus.map(Int64.init))
        case .rejoins: return int(facts.view.rejoins30d)
        case .riskEvents: return count(history?.riskEvents30d)
        case .lastRiskEvent:
            return history == nil && !isNewWithToken
                ? .missing : .string(history?.lastRiskEvent ?? "none")
        case .age:
            return grant.map { hours(since: $0.firstAuthorizedAt, now) }
                ?? (facts.token != nil ? .int(0) : .missing)
        case .state: return facts.view.state.map(CELValue.string) ?? .missing
        case .hasEmail:
            if let known = history?.hasEmail { return .bool(known) }
            return facts.token?.hasEmail == true ? .bool(true) : .missing
        case .forwardingOn: return bool(history?.isForwardingOn)
        case .managed: return bool(history?.isManaged)
        case .sinceSeen: return grant.map { hours(since: $0.seenBefore(now), now) } ?? .missing
        case .visit: return hours(since: grant?.visit(now), now)
        case .sinceTransfer: return hours(since: grant?.transferredAt, now)
        case .bounces: return count(history?.bounces7d)
        case .replies: return count(history?.userReplies30d)
        case .toggles: return count(history?.forwardingToggles7d)
        case .inboxSignUps:
            guard let inbox = history?.inbox else { return .missing }
            // A sign-up that this request stores already counts for this request.
            let isOwnToCome =
                facts.view.event == .signUp && facts.token != nil && !inbox.isOwnSignUpCounted
            return .int(inbox.signUps24h + (isOwnToCome ? 1 : 0))
        case .inboxDeletions: return int(history?.inbox?.deletions30d)
        case .inboxBounces: return int(history?.inbox?.bounces7d)
        case .inboxDomainClass: return history?.domainClass.map { .string($0.rawValue) } ?? .missing
        case .failedChecks:
            return grant == nil && !isNewWithToken ? .missing : count(history?.failedChecks24h)
        case .passedChecks:
            return grant == nil && !isNewWithToken ? .missing : count(history?.passedChecks90d)
        case .observedChecks:
            return grant == nil && !isNewWithToken ? .missing : count(history?.observedChecks90d)
        case .sinceObserved: return hours(since: history?.lastPasses.observed, now)
        case .sinceProofOfWork: return hours(since: history?.lastPasses.proofOfWork, now)
        case .sinceHumanCheck: return hours(since: history?.lastPasses.humanCheck, now)
        case .sinceEmailCode: return hours(since: history?.lastPasses.emailCode, now)
        case .sinceReauthenticate: return hours(since: history?.lastPasses.reauthenticate, now)
        case .deviceAttested: return bool(facts.device?.isAttested)
        case .deviceAssertions: return int(facts.device?.assertions)
        case .deviceAccounts: return int(facts.device?.accounts)
        case .appSignUps: return int(facts.rates?.signUps1h)
        case .appBaseline: return facts.rates?.baseline.map(CELValue.double) ?? .missing
        // Signals of the status policy only.
        case .inboxAge, .failedChecksOfMonth, .signInMethod, .signInVerified, .passkeyAge,
            .passkeySynced, .passkeyAttested,
            .userAge, .userManaged, .userTeams, .newTeams, .userReplies, .legitimateOutcomes,
            .fraudulentOutcomes:
            return .missing
        }
    }
}

extension JSONWriter {
    /// Writes a signal in the form of the log.
    mutating func signal(_ name: String, _ value: CELValue) {
        self.name(name)
        switch value {
        case .int(let int): self.value(int)
        case .double(let double): literal("\(double)")
        case .bool(let bool): self.value(bool)
        case .string(let text): self.value(text)
        case .list(let values):
            self.value(values.compactMap { if case .string(let text) = $0 { text } else { nil } })
        default: literal("null")
        }
    }
}
