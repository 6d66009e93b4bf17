// The default policy written by hand: the code of a Swift programmer for a policy that never
// changes. It is the measure for the evaluator, and must give the same answers.

import CEL
import RiskPolicy

/// The signals as plain optionals.
struct HandWrittenSignals {
    var event: PolicyEvent
    var tokenAge: Int64?
    var amr: [String]?
    var sessionAge: Int64?
    var realUserStatus: Int64?
    var rejoins: Int64?
    var ageHours: Int64?
    var state: HandWrittenState?
    var hasEmail: Bool?
    var forwardingOn: Bool?
    var hoursSinceSeen: Int64?
    var visitHours: Int64?
    var hoursSinceTransfer: Int64?
    var accountBounces: Int64?
    var userReplies: Int64?
    var toggles: Int64?
    var signups: Int64?
    var deletions: Int64?
    var inboxBounces: Int64?
    var domainClass: String?
    var failed: Int64?
    var passed: Int64?
    var observed: Int64?
    var sinceObserved: Int64?
    var sinceEmailCode: Int64?
    var sinceReauthenticate: Int64?
    var appSignups: Int64?
    var baseline: Double?
    var domainSignUps: Int64?
    var networkSignUps: Int64?

    init(_ policy: Policy, _ input: PolicyInput) {
        func value(_ name: String) -> CELValue {
            policy.slot(named: name).map { policy.value(slot: $0, of: input) } ?? .missing
        }
        func int(_ name: String) -> Int64? {
            if case .int(let int) = value(name) { int } else { nil }
        }
        func bool(_ name: String) -> Bool? {
            if case .bool(let bool) = value(name) { bool } else { nil }
        }
        event = input.event
        tokenAge = int("token.age_s")
        if case .list(let list) = value("session.amr") {
            amr = list.compactMap { if case .string(let text) = $0 { text } else { nil } }
        }
        sessionAge = int("session.age_s")
        realUserStatus = int("account.real_user_status")
        rejoins = int("account.rejoins_30d")
        ageHours = int("account.age_hours")
        if case .string(let text) = value("account.state") {
            state = HandWrittenState(rawValue: text) ?? .other
        }
        hasEmail = bool("account.has_email")
        forwardingOn = bool("account.forwarding_on")
        hoursSinceSeen = int("account.hours_since_seen")
        visitHours = int("account.visit_hours")
        hoursSinceTransfer = int("account.hours_since_transfer")
        accountBounces = int("account.bounces_7d")
        userReplies = int("account.user_replies_30d")
        toggles = int("account.forwarding_toggles_7d")
        signups = int("inbox.signups_24h")
        deletions = int("inbox.deletions_30d")
        inboxBounces = int("inbox.bounces_7d")
        if case .string(let text) = value("inbox.domain_class") { domainClass = text }
        failed = int("checks.failed_24h")
        passed = int("checks.passed_90d")
        observed = int("checks.observed_90d")
        sinceObserved = int("checks.hours_since_observed")
        sinceEmailCode = int("checks.hours_since_email_code")
        sinceReauthenticate = int("checks.hours_since_reauthenticate")
        appSignups = int("app.signups_1h")
        if case .double(let double) = value("app.signups_1h_baseline") { baseline = double }
        domainSignUps = int("velocity.domain_sign_ups")
        networkSignUps = int("velocity.network_sign_ups")
    }
}

enum HandWrittenState: String {
    case new, pending, active
    case consentRevoked = "consent_revoked"
    case other
}

struct HandWrittenVerdict {
    struct Reasons: OptionSet {
        let rawValue: UInt32
    }
    /// In the order of the policy's codes.
    static let codes = [
        "CONSENT_REVOKED", "SIGNUP_UNVERIFIED", "REPEATED_FAILED_CHECKS", "RECENT_TRANSFER",
        "INBOX_SIGNUP_BURST", "LIKELY_REAL",
        "RECENTLY_VERIFIED", "ESTABLISHED_ACCOUNT", "ENGAGED_INBOX", "REAL_USER_UNKNOWN",
        "INBOX_SIGNUP_VELOCITY",
        "INBOX_RECYCLED", "APP_SIGNUP_SPIKE", "DORMANT_ACCOUNT", "YOUNG_UNPROVEN_ACCOUNT",
        "INBOX_UNRELIABLE", "STALE_TOKEN",
        "INBOX_DISPOSABLE", "INBOX_DOMAIN_VELOCITY", "NETWORK_VELOCITY",
    ]
    var isAsked = false
    /// Bits: human_check, email_code, reauthenticate.
    var challenges: UInt8 = 0
    var reasons: Reasons = []
    /// Bits in the order of the policy's rules.
    var waived: UInt32 = 0
    var missing: UInt32 = 0
}

extension HandWrittenVerdict {
    /// The difference from the policy's own verdict; nil if there is none.
    func difference(from verdict: PolicyVerdict, of policy: Policy) -> String? {
        let codes = Self.codes.indices.filter { reasons.rawValue >> UInt32($0) & 1 == 1 }.map {
            Self.codes[$0]
        }
        let kinds = policy.challenges.indices.filter { challenges >> UInt8($0) & 1 == 1 }.map {
            policy.challenges[$0].kind
        }
        let without = policy.rules.indices.filter { missing >> UInt32($0) & 1 == 1 }.map {
            policy.rules[$0].id
        }
        let isSame =
            Set(verdict.reasons) == Set(codes) && verdict.challenges == kinds
            && verdict.missing == without
            && (verdict.decision == .requireVerification) == isAsked
        return isSame ? nil : "\(verdict); by hand: \(isAsked) \(codes) \(kinds) \(without)"
    }
}

/// Collects the results of rules.
private struct Collector {
    var strongest = -1
    var upTo = -1
    var asking: UInt32 = 0
    var waiving: UInt32 = 0
    var required: (UInt32, UInt32, UInt32) = (0, 0, 0)
    var requiredRules: (UInt32, UInt32, UInt32) = (0, 0, 0)
    var missing: UInt32 = 0

    mutating func note(_ truth: Bool?, _ rule: UInt32) -> Bool {
        guard let truth else {
            missing |= 1 << rule
            return false
        }
        return truth
    }

    mutating func always(_ truth: Bool?, _ rule: UInt32, _ challenge: Int, _ code: UInt32) {
        if note(truth, rule) {
            strongest = max(strongest, challenge)
            asking |= 1 << code
        }
    }

    mutating func skip(_ truth: Bool?, _ rule: UInt32, _ challenge: Int, _ code: UInt32) {
        if note(truth, rule) {
            upTo = max(upTo, challenge)
            waiving |= 1 << code
        }
    }

    mutating func require(
        _ truth: Bool?, _ rule: UInt32, _ challenge: Int, _ code: UInt32, whenMissing: Bool = false
    ) {
        guard note(truth, rule) || (whenMissing && truth == nil) else { return }
        switch challenge {
        case 0:
            (required.0, requiredRules.0) = (required.0 | 1 << code, requiredRules.0 | 1 << rule)
        case 1:
            (required.1, requiredRules.1) = (required.1 | 1 << code, requiredRules.1 | 1 << rule)
        default:
            (required.2, requiredRules.2) = (required.2 | 1 << code, requiredRules.2 | 1 << rule)
        }
    }
}

private func both(_ left: Bool?, _ right: Bool?) -> Bool? {
    if left == false || right == false { return false }
    return left == nil || right == nil ? nil : true
}

private func either(_ left: Bool?, _ right: Bool?) -> Bool? {
    if left == true || right == true { return true }
    return left == nil || right == nil ? nil : false
}

@inline(never)
func decideByHand(_ signals: HandWrittenSignals) -> HandWrittenVerdict {
    var rules = Collector()
    let event = signals.event
    let isLikelyReal = signals.realUserStatus.map { $0 == 2 }
    if event == .signUp {
        rules.always(both(isLikelyReal, signals.signups.map { $0 >= 10 }), 4, 1, 4)
        rules.skip(isLikelyReal, 5, 2, 5)
        rules.require(signals.realUserStatus.map { $0 == 1 }, 11, 1, 9)
        rules.require(signals.signups.map { $0 >= 3 }, 12, 1, 10)
        rules.require(signals.domainClass.map { $0 == "disposable" }, 13, 1, 17)
        rules.require(signals.domainSignUps.map { $0 >= 8 }, 14, 1, 18)
        rules.require(signals.networkSignUps.map { $0 >= 5 }, 15, 0, 19)
        rules.require(
            both(signals.networkSignUps.map { $0 >= 3 }, signals.domainClass.map { $0 == "relay" }),
            16, 0, 19)
        rules.require(
            either(signals.deletions.map { $0 >= 3 }, signals.rejoins.map { $0 >= 3 }), 17, 1, 11)
        var isSpike: Bool?
        if let signups = signals.appSignups, let baseline = signals.baseline {
            isSpike = Double(signups) > 5 * baseline
        }
        rules.require(both(signals.appSignups.map { $0 >= 20 }, isSpike), 18, 0, 12)
    } else {
        rules.always(signals.state.map { $0 == .consentRevoked }, 0, 2, 0)
        rules.always(signals.state.map { $0 == .pending }, 1, 1, 1)
        rules.always(signals.failed.map { $0 >= 3 }, 2, 2, 2)
        if event != .signIn {
            var isOlder: Bool?
            if let check = signals.sinceReauthenticate, let transfer = signals.hoursSinceTransfer {
                isOlder = !(check <= transfer)
            }
            rules.always(both(signals.hoursSinceTransfer.map { $0 < 48 }, isOlder), 3, 2, 3)
        }
        let limit: Int64 = event == .sensitiveAction ? 1 : 24
        rules.skip(signals.sinceReauthenticate.map { $0 < limit }, 6, 2, 6)
        if event != .sensitiveAction {
            rules.skip(
                either(
                    signals.sinceEmailCode.map { $0 < 24 },
                    signals.sinceObserved.map { $0 < 168 }),
                7, 1, 6)
            let isLong = both(signals.ageHours.map { $0 >= 720 }, signals.passed.map { $0 >= 1 })
            let isSeen = both(signals.ageHours.map { $0 >= 168 }, signals.observed.map { $0 >= 1 })
            rules.skip(
                both(either(isLong, isSeen), signals.accountBounces.map { $0 == 0 }),
                8, 1, 7)
            rules.skip(
                both(signals.userReplies.map { $0 >= 2 }, signals.toggles.map { $0 <= 2 }), 9, 1, 8)
        }
        if event == .signIn {
            rules.skip(
                both(
                    signals.sessionAge.map { $0 < 900 },
                    either(
                        signals.amr.map { $0.contains("otp") },
                        signals.amr.map { $0.contains("mfa") })),
                10, 1, 6)
            rules.require(signals.hoursSinceSeen.map { $0 >= 4320 }, 19, 1, 13)
        } else {
            rules.require(signals.hoursSinceSeen.map { $0 >= 2160 }, 20, 2, 13)
            rules.require(
                both(
                    both(isLikelyReal.map { !$0 }, signals.ageHours.map { $0 < 72 }),
                    signals.observed.map { !($0 >= 1) }),
                21, 1, 14,
                whenMissing: true)
            rules.require(
                either(signals.inboxBounces.map { $0 >= 2 }, signals.toggles.map { $0 >= 5 }), 22,
                2, 15)
        }
        if event == .sensitiveAction {
            rules.require(
                signals.tokenAge.map { $0 > 900 } ?? (signals.visitHours == nil), 23, 2, 16)
        }
    }
    var answer = HandWrittenVerdict()
    answer.missing = rules.missing
    var strongest = rules.strongest
    var asking = rules.asking
    func take(_ challenge: Int, _ codes: UInt32, _ ids: UInt32) {
        guard codes != 0 else { return }
        if challenge <= rules.upTo {
            answer.waived |= ids
        } else {
            asking |= codes
            strongest = max(strongest, challenge)
        }
    }
    take(0, rules.required.0, rules.requiredRules.0)
    take(1, rules.required.1, rules.requiredRules.1)
    take(2, rules.required.2, rules.requiredRules.2)
    guard strongest >= 0 else {
        answer.reasons = .init(rawValue: rules.waiving)
        return answer
    }
    answer.isAsked = true
    answer.reasons = .init(rawValue: asking)
    var available: UInt8 = event == .signUp ? 0b011 : 0b111
    let isUnavailable = either(
        either(signals.hasEmail.map { !$0 }, signals.forwardingOn.map { !$0 }),
        signals.accountBounces.map { $0 >= 2 })
    if isUnavailable == true { available &= ~0b010 }
    let weaker: UInt8 = (1 << UInt8(strongest)) - 1
    if available & ~weaker != 0 {
        answer.challenges = available & ~weaker
    } else {
        answer.challenges = 1 << UInt8(7 - (available & weaker).leadingZeroBitCount)
    }
    return answer
}
