// Facts as clauses of English sentences.

import CEL
import Support

/// Writes the clause of a fact. A fact has no clause if its clause would be wrong or hard to read.
struct FactWords {
    let policy: Policy

    func text(_ fact: Fact) -> String? {
        switch fact {
        case .flag(let slot, let isTrue):
            guard case .flag(let pair)? = policy.phrase(slot: slot)?.kind else { return nil }
            return pair.text(isTrue)
        case .known(let slot, let isKnown): return policy.phrase(slot: slot)?.known.text(isKnown)
        case .within(let term, let bounds): return within(term, bounds)
        case .compares(let one, let comparison, let other): return compares(one, comparison, other)
        case .isOne(let term, let values, let isAffirmed): return isOne(term, values, isAffirmed)
        case .isIn(let term, let list, let isAffirmed):
            return noun(term).map { "\($0) is \(isAffirmed ? "" : "not ")in \(Self.name(list))" }
        case .has(let slot, let values, let isAffirmed): return has(slot, values, isAffirmed)
        case .text(let term, let test, let text, let isAffirmed):
            let verb =
                switch test {
                case .contains: isAffirmed ? "contains" : "does not contain"
                case .startsWith: isAffirmed ? "begins with" : "does not begin with"
                case .endsWith: isAffirmed ? "ends with" : "does not end with"
                }
            return noun(term).map { "\($0) \(verb) \(CELValue.string(text).text)" }
        case .isInRange(let term, let range, let isAffirmed):
            return noun(term).map { "\($0) is \(isAffirmed ? "" : "not ")in the range \(range)" }
        case .isAddress(let term, let isAffirmed):
            return noun(term).map { "\($0) is \(isAffirmed ? "an" : "not an") IP address" }
        case .holds(let text, let isAffirmed):
            return "`\(text)` is \(isAffirmed ? "true" : "false")"
        }
    }

    /// Whether the clause contains an "or".
    func isCompound(_ fact: Fact) -> Bool {
        switch fact {
        case .isOne(_, let values, let isAffirmed), .has(_, let values, let isAffirmed):
            isAffirmed && values.count > 1
        default: false
        }
    }

    // MARK: Names

    /// A text, a list, or a number without a unit; nil for others.
    private func noun(_ term: Term) -> String? {
        guard case .signal(let slot) = term else { return nil }
        return policy.phrase(slot: slot)?.noun
    }

    private static func name(_ list: NamedList) -> String {
        switch list {
        case .fixed(let name): "the list \(name)"
        case .live(let list):
            list.isTeams ? "the team's list \(list.name)" : "the list \(list.name)"
        }
    }

    /// A number with its unit, in a form that can be compared with any other number.
    private func number(_ term: Term) -> String? {
        switch term {
        case .signal(let slot):
            guard let phrase = policy.phrase(slot: slot) else { return nil }
            switch phrase.kind {
            case .count, .number: return phrase.noun
            case .since(_, let event, let unit, _):
                return "the number of \(Self.units(unit)) since \(event)"
            case .age(let subject, _, let unit):
                return "the age of \(subject) in \(Self.units(unit))"
            default: return nil
            }
        case .size(let inner, let isList):
            return noun(inner).map { "the \(isList ? "number of entries in" : "length of") \($0)" }
        case .times(let amount, let inner):
            guard let factor = Self.plain(amount), let name = number(inner) else { return nil }
            return amount == .int(2) || amount == .double(2)
                ? "twice \(name)" : "\(factor) times \(name)"
        case .sum(let one, let other): return pair(one, other).map { "the sum of \($0) and \($1)" }
        case .difference(let one, let other): return pair(one, other).map { "\($0) minus \($1)" }
        case .now, .since: return nil
        }
    }

    private func pair(_ one: Term, _ other: Term) -> (String, String)? {
        guard let one = number(one), let other = number(other) else { return nil }
        return (one, other)
    }

    private static func units(_ unit: Int64) -> String { unit == 3_600 ? "hours" : "seconds" }

    private static func plain(_ amount: Amount) -> String? {
        switch amount {
        case .int(let int): NumberWords.text(int)
        case .double(let double): NumberWords.text(double)
        case .duration, .timestamp: nil
        }
    }

    // MARK: Bounds

    private func within(_ term: Term, _ bounds: [Bound]) -> String? {
        switch term {
        case .now: return bounds.count == 1 ? Self.time(of: "it", bounds[0]) : nil
        case .since(let inner): return noun(inner).flatMap { Self.since("\($0) is", bounds) }
        case .signal(let slot):
            guard let phrase = policy.phrase(slot: slot) else { return nil }
            if bounds.count == 1, case .timestamp = bounds[0].amount {
                return Self.time(of: phrase.noun, bounds[0])
            }
            if case .duration = bounds.first?.amount { return Self.duration(phrase.noun, bounds) }
            let ints = bounds.compactMap {
                if case .int(let int) = $0.amount {
                    (comparison: $0.comparison, int: int)
                } else {
                    nil
                }
            }
            guard ints.count == bounds.count else { return generic(term, bounds) }
            switch phrase.kind {
            case .count(let one, let many, let rest, let isNow):
                return Self.count(ints, one, many, rest, isNow)
            case .since(let clause, _, let unit, let notFor):
                return Self.span(ints, unit).map { span in
                    if let notFor, span.upper == nil, let lower = span.lower {
                        return "\(notFor) \(lower.isMore ? "more than " : "")\(lower.text)"
                    }
                    return
                        "\(clause) \(span.text(less: "less than", most: "at most", least: "at least", more: "more than")) ago"
                }
            case .age(let subject, _, let unit):
                return Self.span(ints, unit).map { span in
                    if span.lower == nil, let upper = span.upper, !upper.isIncluded {
                        return "\(subject) is younger than \(upper.text)"
                    }
                    if span.upper == nil, let lower = span.lower, lower.isMore {
                        return "\(subject) is older than \(lower.text)"
                    }
                    return
                        "\(subject) is \(span.text(less: "less than", most: "at most", least: "at least", more: "more than")) old"
                }
            default: return generic(term, bounds)
            }
        default: return generic(term, bounds)
        }
    }

    private func generic(_ term: Term, _ bounds: [Bound]) -> String? {
        guard let name = number(term) else { return nil }
        let words = bounds.compactMap { bound in
            Self.plain(bound.amount).map { "\(Self.words(bound.comparison))\($0)" }
        }
        return words.count == bounds.count ? "\(name) is \(words.joined(separator: " but "))" : nil
    }

    private static func words(_ comparison: Comparison) -> String {
        switch comparison {
        case .less: "less than "
        case .atMost: "at most "
        case .equal: ""
        case .different: "not "
        case .atLeast: "at least "
        case .more: "more than "
        }
    }

    /// A count of whole things, never below zero.
    private static func count(
        _ bounds: [(comparison: Comparison, int: Int64)], _ one: String, _ many: String,
        _ rest: String, _ isNow: Bool
    ) -> String? {
        var (least, most): (Int64, Int64?) = (0, nil)
        for (comparison, int) in bounds {
            let (next, isOver) = int.addingReportingOverflow(1)
            switch comparison {
            case .atLeast: least = max(least, int)
            case .more where !isOver: least = max(least, next)
            case .atMost: most = int
            case .less where int > Int64.min: most = int - 1
            case .equal: (least, most) = (int, int)
            case .different where int == 0: least = 1
            case .different where int > 0:
                return "the number of \(many) \(rest) is not \(NumberWords.text(int))"
            default: return nil
            }
            if int < 0 { return nil }
        }
        func said(_ number: Int64, _ words: String) -> String {
            let isOne = number == 1
            return
                "there \(isNow ? isOne ? "is" : "are" : isOne ? "was" : "were") \(words) \(isOne ? one : many) \(rest)"
        }
        guard let most else {
            // As written: "more than two", or "three or more".
            if bounds.count == 1, bounds[0].comparison == .more, bounds[0].int > 0 {
                return said(bounds[0].int, "more than \(NumberWords.text(bounds[0].int))")
            }
            guard least > 0 else { return nil }
            return said(least, least == 1 ? "at least one" : "\(NumberWords.text(least)) or more")
        }
        guard most >= least else { return nil }
        if most == 0 { return said(0, "no") }
        if least == most { return said(most, "exactly \(NumberWords.text(most))") }
        if least == 0 {
            if bounds.count == 1, bounds[0].comparison == .less {
                return said(bounds[0].int, "fewer than \(NumberWords.text(bounds[0].int))")
            }
            return bounds.count == 1 ? said(most, "at most \(NumberWords.text(most))") : nil
        }
        return said(most, "\(NumberWords.text(least)) to \(NumberWords.text(most))")
    }

    /// A span of time between two bounds.
    private struct Span {
        var lower: (text: String, isMore: Bool)?
        var upper: (text: String, isIncluded: Bool)?

        func text(less: String, most: String, least: String, more: String) -> String {
            let low = lower.map { "\($0.isMore ? more : least) \($0.text)" }
            let high = upper.map { "\($0.isIncluded ? most : less) \($0.text)" }
            return [low, high].compactMap { $0 }.joined(separator: " but ")
        }
    }

    /// Hours are whole numbers: "more than 24" begins at 25, and "at most 24" ends before 25.
    private static func span(
        _ bounds: [(comparison: Comparison, int: Int64)], _ unit: Int64
    ) -> Span? {
        var span = Span()
        func text(_ count: Int64) -> String? {
            let (seconds, isOver) = count.multipliedReportingOverflow(by: unit)
            return isOver || count <= 0 ? nil : DurationWords.text(seconds)
        }
        let isFine = unit == 1
        for (comparison, int) in bounds {
            let (next, isOver) = int.addingReportingOverflow(1)
            guard int >= 0, !isOver else { return nil }
            switch comparison {
            case .atLeast:
                guard let text = text(int) else { return nil }
                span.lower = (text, false)
            case .more:
                guard let text = text(isFine && int > 0 ? int : next) else { return nil }
                span.lower = (text, isFine && int > 0)
            case .less:
                guard let text = text(int) else { return nil }
                span.upper = (text, false)
            case .atMost:
                guard let text = text(isFine && int > 0 ? int : next) else { return nil }
                span.upper = (text, isFine && int > 0)
            case .equal:
                guard let end = text(next) else { return nil }
                span.lower = text(int).map { ($0, false) }
                span.upper = (end, false)
            case .different:
                // Only for "not zero": a gap in the middle would need two clauses.
                guard int == 0, let text = text(1) else { return nil }
                span.lower = (text, false)
            }
        }
        return span
    }

    private static func since(_ subject: String, _ bounds: [Bound]) -> String? {
        guard let span = durations(bounds) else { return nil }
        return
            "\(subject) \(span.text(less: "less than", most: "at most", least: "at least", more: "more than")) ago"
    }

    private static func duration(_ subject: String, _ bounds: [Bound]) -> String? {
        guard let span = durations(bounds) else { return nil }
        return
            "\(subject) is \(span.text(less: "shorter than", most: "at most", least: "at least", more: "longer than"))"
    }

    /// Only whole positive seconds.
    private static func durations(_ bounds: [Bound]) -> Span? {
        var span = Span()
        for bound in bounds {
            guard case .duration(let duration) = bound.amount, duration.nanoseconds == 0,
                duration.seconds > 0
            else { return nil }
            let text = DurationWords.text(duration.seconds)
            switch bound.comparison {
            case .less: span.upper = (text, false)
            case .atMost: span.upper = (text, true)
            case .atLeast: span.lower = (text, false)
            case .more: span.lower = (text, true)
            case .equal, .different: return nil
            }
        }
        return span
    }

    private static func time(of subject: String, _ bound: Bound) -> String? {
        guard case .timestamp(let time) = bound.amount else { return nil }
        let words =
            switch bound.comparison {
            case .less: "before \(time.text)"
            case .atMost: "\(time.text) or before"
            case .atLeast: "\(time.text) or later"
            case .more: "after \(time.text)"
            case .equal: time.text
            case .different: "not \(time.text)"
            }
        return "\(subject) is \(words)"
    }

    // MARK: Two values

    private func compares(_ one: Term, _ comparison: Comparison, _ other: Term) -> String? {
        if one.isText(policy), other.isText(policy), let first = noun(one), let second = noun(other)
        {
            return "\(first) is \(comparison == .equal ? "" : "not ")the same as \(second)"
        }
        if let first = event(one), let second = event(other), first.unit == second.unit {
            let words =
                switch comparison {
                case .less: "was after"
                case .atMost: "was not before"
                case .equal: "was as long ago as"
                case .different: "was not as long ago as"
                case .atLeast: "was not after"
                case .more: "was before"
                }
            return "\(first.name) \(words) \(second.name)"
        }
        guard let first = number(one), let second = number(other) else { return nil }
        return "\(first) is \(Self.words(comparison))\(second)"
    }

    /// The event, and the unit of the time since it.
    private func event(_ term: Term) -> (name: String, unit: Int64)? {
        guard case .signal(let slot) = term else { return nil }
        switch policy.phrase(slot: slot)?.kind {
        case .since(_, let event, let unit, _), .age(_, let event, let unit): return (event, unit)
        default: return nil
        }
    }

    // MARK: Values out of a few

    private func isOne(_ term: Term, _ values: [CELValueKey], _ isAffirmed: Bool) -> String? {
        if values.count == 1, let pair = policy.clauses(of: term, values[0]) {
            return pair.text(isAffirmed)
        }
        let words: [String]
        let name: String?
        if let codes = policy.codes(of: term) {
            words = values.compactMap { value in
                codes.first { CELValueKey(.int($0.value)) == value }?.word
            }
            name = noun(term)
        } else {
            words = values.map {
                if case .int(let int) = $0.value { NumberWords.text(int) } else { $0.value.text }
            }
            name = noun(term) == nil || term.isNumber(policy) ? number(term) : noun(term)
        }
        guard let name, words.count == values.count else { return nil }
        if words.count == 1 { return "\(name) is \(isAffirmed ? "" : "not ")\(words[0])" }
        return isAffirmed
            ? "\(name) is \(NumberWords.list(words, "or"))"
            : "\(name) is neither \(NumberWords.list(words, "nor"))"
    }

    private func has(_ slot: Int, _ values: [CELValueKey], _ isAffirmed: Bool) -> String? {
        guard case .list(let pair, let labels)? = policy.phrase(slot: slot)?.kind else {
            return nil
        }
        let words = values.map { value -> String in
            guard case .string(let text) = value.value else { return value.value.text }
            return labels.first { sameCodePoints($0.value, text) }?.word ?? value.value.text
        }
        return "\(pair.text(isAffirmed)) \(NumberWords.list(words, "or"))"
    }
}
