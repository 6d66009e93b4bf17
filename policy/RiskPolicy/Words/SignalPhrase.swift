// The words for a signal in a sentence: the parts of the clauses about it.

/// The words for a signal.
package struct SignalPhrase: Sendable {
    /// A clause and its negation.
    package struct Pair: Sendable {
        package let yes: String
        package let no: String

        package init(_ yes: String, _ no: String) { (self.yes, self.no) = (yes, no) }

        package func text(_ isTrue: Bool) -> String { isTrue ? yes : no }
    }

    /// A value out of a few, with the word for it.
    package struct Code: Sendable {
        package let value: Int64
        package let word: String
    }

    package enum Kind: Sendable {
        /// A bool: the clauses for true and for false.
        case flag(Pair)
        /// How often something happened, 0 or more: `there were` NUMBER `sign-ups` `with the inbox
        /// within a day`. `isNow`: for the present, `there are`.
        case count(one: String, many: String, rest: String, isNow: Bool)
        /// Whole units of time since something happened, 0 or more:
        /// `the app moved to another team` … `ago`.
        /// - event: the same as a noun, for comparisons of two.
        /// - notFor: for a time of at least a duration, `the account was not seen for` may be the
        ///   better clause.
        case since(clause: String, event: String, unit: Int64, notFor: String?)
        /// The same as an age: `the account is younger than three days`.
        case age(subject: String, event: String, unit: Int64)
        /// A number that only `noun` names.
        case number
        /// A number that means one of a few words.
        case codes([Code])
        /// A text that is one of a few.
        case word([(value: String, clauses: Pair)])
        /// A list of texts: the words before an element that it has, or does not have; `labels` are
        /// the words for elements.
        case list(has: Pair, labels: [(value: String, word: String)])
    }

    /// The name of its value: `the number of sign-ups with the inbox within a day`.
    package let noun: String
    package let kind: Kind
    /// The clauses for `has()` and `!has()`.
    package let known: Pair

    package init(_ noun: String, _ kind: Kind, known: Pair? = nil) {
        self.noun = noun
        self.kind = kind
        self.known = known ?? Pair("\(noun) is known", "\(noun) is not known")
    }

    static func flag(_ noun: String, _ yes: String, _ no: String) -> SignalPhrase {
        SignalPhrase(noun, .flag(Pair(yes, no)))
    }

    static func count(
        _ one: String, _ rest: String, many: String? = nil, isNow: Bool = false
    ) -> SignalPhrase {
        let many = many ?? one + "s"
        return SignalPhrase(
            "the number of \(many) \(rest)", .count(one: one, many: many, rest: rest, isNow: isNow))
    }

    /// Hours since something happened.
    static func since(
        _ clause: String, event: String, unit: Int64 = 3_600, notFor: String? = nil,
        known: Pair? = nil
    ) -> SignalPhrase {
        SignalPhrase(
            "the time since \(event)",
            .since(clause: clause, event: event, unit: unit, notFor: notFor), known: known)
    }

    static func age(
        _ subject: String, event: String, unit: Int64 = 3_600, known: Pair? = nil
    ) -> SignalPhrase {
        SignalPhrase(
            "the age of \(subject)", .age(subject: subject, event: event, unit: unit), known: known)
    }
}
