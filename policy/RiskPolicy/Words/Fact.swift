// The meaning of conditions about signals, as facts of a few kinds that sentences can state.

import CEL

/// A value that a fact is about.
indirect enum Term: Sendable, Equatable {
    case signal(Int)
    /// `now`.
    case now
    /// The time since a timestamp.
    case since(Term)
    case size(Term, ofList: Bool)
    case times(Amount, Term)
    case sum(Term, Term)
    case difference(Term, Term)
}

/// A constant that can be compared by size.
enum Amount: Sendable, Equatable {
    case int(Int64)
    case double(Double)
    case duration(CELDuration)
    case timestamp(CELTimestamp)

    init?(_ value: CELValue) {
        switch value {
        case .int(let int): self = .int(int)
        case .uint(let uint):
            guard let int = Int64(exactly: uint) else { return nil }
            self = .int(int)
        case .double(let double) where double.isFinite: self = .double(double)
        case .duration(let duration): self = .duration(duration)
        case .timestamp(let time): self = .timestamp(time)
        default: return nil
        }
    }

    /// Whether it is below the other; false for different kinds.
    func isBelow(_ other: Amount) -> Bool {
        switch (self, other) {
        case (.int(let left), .int(let right)): left < right
        case (.double(let left), .double(let right)): left < right
        default: false
        }
    }
}

/// How two values compare.
enum Comparison: Sendable, Equatable {
    case less, atMost, equal, different, atLeast, more

    init?(_ operation: BinaryOperator) {
        switch operation {
        case .less: self = .less
        case .lessOrEqual: self = .atMost
        case .equal: self = .equal
        case .notEqual: self = .different
        case .greaterOrEqual: self = .atLeast
        case .greater: self = .more
        default: return nil
        }
    }

    /// The comparison with both sides exchanged.
    var flipped: Comparison {
        switch self {
        case .less: .more
        case .atMost: .atLeast
        case .atLeast: .atMost
        case .more: .less
        case .equal, .different: self
        }
    }

    /// The comparison that holds if this one does not.
    var negated: Comparison {
        switch self {
        case .less: .atLeast
        case .atMost: .more
        case .equal: .different
        case .different: .equal
        case .atLeast: .less
        case .more: .atMost
        }
    }

    var isLowerBound: Bool { self == .atLeast || self == .more }
    var isUpperBound: Bool { self == .atMost || self == .less }
}

/// A bound of an interval, or a single comparison.
struct Bound: Sendable, Equatable {
    let comparison: Comparison
    let amount: Amount
}

/// A list in which `in` looks up a text.
enum NamedList: Sendable, Equatable {
    /// As named in the policy.
    case fixed(String)
    case live(LiveListName)
}

enum TextTest: Sendable, Equatable {
    case contains, startsWith, endsWith
}

/// A fact: true, false, or not known because a signal is missing.
enum Fact: Sendable, Equatable {
    case flag(slot: Int, Bool)
    case known(slot: Int, Bool)
    /// A number within one bound, or between a lower and an upper one.
    case within(Term, [Bound])
    case compares(Term, Comparison, Term)
    /// A number or text that is one of some values, or none of them.
    case isOne(Term, of: [CELValueKey], Bool)
    case isIn(Term, NamedList, Bool)
    /// A list signal that has one of some elements, or none of them.
    case has(slot: Int, anyOf: [CELValueKey], Bool)
    case text(Term, TextTest, String, Bool)
    case isInRange(Term, String, Bool)
    case isAddress(Term, Bool)
    /// An expression without words, by its text.
    case holds(String, Bool)
}

/// A constant by its text in expressions: equal constants of one type have equal texts.
struct CELValueKey: Sendable, Equatable {
    let value: CELValue

    init(_ value: CELValue) { self.value = value }

    static func == (left: CELValueKey, right: CELValueKey) -> Bool {
        switch (left.value, right.value) {
        case (.string(let one), .string(let other)): sameCodePoints(one, other)
        default: sameCodePoints(left.value.text, right.value.text)
        }
    }
}
