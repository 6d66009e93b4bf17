// Reads the sentences of rules back with its own grammar, so that their meaning can be compared
// with that of the condition.

import CEL
import RiskPolicy

/// Whether a statement holds for values of signals; nil: unknown.
typealias Meaning = ([String: CELValue]) -> Bool?

/// A reader of one sentence's clauses.
struct WordsReader {
    struct Unreadable: Error, CustomStringConvertible {
        let description: String
    }

    private var rest: Substring
    private let text: String
    private let phrases: [(name: String, phrase: SignalPhrase)]

    static func read(
        _ text: String, _ phrases: [(name: String, phrase: SignalPhrase)]
    ) throws -> Meaning {
        var reader = WordsReader(rest: text[...], text: text, phrases: phrases)
        let meaning = try reader.statement()
        guard reader.rest.isEmpty else { throw reader.unreadable() }
        return meaning
    }

    private func unreadable() -> Unreadable {
        Unreadable(description: "cannot read '\(rest)' of '\(text)'")
    }

    private func next(_ words: String) -> Bool { rest.hasPrefix(words) }

    private mutating func take(_ words: String) -> Bool {
        guard next(words) else { return false }
        rest = rest.dropFirst(words.count)
        return true
    }

    private mutating func expect(_ words: String) throws { if !take(words) { throw unreadable() } }

    // MARK: Joined clauses

    private static func all(_ parts: [Meaning]) -> Meaning {
        { input in
            let values = parts.map { $0(input) }
            return values.contains(false) ? false : values.contains(nil) ? nil : true
        }
    }

    private static func any(_ parts: [Meaning]) -> Meaning {
        { input in
            let values = parts.map { $0(input) }
            return values.contains(true) ? true : values.contains(nil) ? nil : false
        }
    }

    private mutating func statement() throws -> Meaning {
        var parts = [try group()]
        let word = next(", and ") ? ", and " : ", or "
        while take(word) { parts.append(try group()) }
        return parts.count == 1 ? parts[0] : word == ", and " ? Self.all(parts) : Self.any(parts)
    }

    private mutating func group() throws -> Meaning {
        let isEither = take("either ")
        var parts = [try operand()]
        while next(", "), !next(", and "), !next(", or "), !next(", if ") {
            try expect(", ")
            parts.append(try operand())
        }
        let isAnd = next(" and ")
        if take(" and ") || take(" or ") {
            parts.append(try operand())
        } else if parts.count > 1 {
            throw unreadable()
        }
        guard !isEither || !isAnd && parts.count > 1 else { throw unreadable() }
        return parts.count == 1 ? parts[0] : isAnd ? Self.all(parts) : Self.any(parts)
    }

    private mutating func operand() throws -> Meaning {
        guard take("(") else { return try fact() }
        let meaning = take("if ") ? try choice() : try statement()
        try expect(")")
        return meaning
    }

    private mutating func choice() throws -> Meaning {
        let condition = try statement()
        try expect(": ")
        let yes = try statement()
        try expect("; otherwise")
        let no: Meaning
        if take(", if ") {
            no = try choice()
        } else {
            try expect(": ")
            no = try statement()
        }
        return { input in condition(input).flatMap { $0 ? yes(input) : no(input) } }
    }

    // MARK: Facts

    private mutating func fact() throws -> Meaning {
        if take("in every case") { return { _ in true } }
        if take("in no case") { return { _ in false } }
        for (name, phrase) in phrases {
            if take(phrase.known.no) { return { $0[name] == nil } }
            if take(phrase.known.yes) { return { $0[name] != nil } }
            let start = rest
            if let meaning = try fact(name, phrase) { return meaning }
            rest = start
        }
        throw unreadable()
    }

    private mutating func fact(_ name: String, _ phrase: SignalPhrase) throws -> Meaning? {
        switch phrase.kind {
        case .flag(let pair):
            for (clause, wanted) in [(pair.no, false), (pair.yes, true)] where take(clause) {
                return { input in
                    input[name].map { if case .bool(wanted) = $0 { true } else { false } }
                }
            }
        case .word(let words):
            for (value, pair) in words {
                for (clause, wanted) in [(pair.no, false), (pair.yes, true)] where take(clause) {
                    return { input in
                        input[name].map { ($0.text == CELValue.string(value).text) == wanted }
                    }
                }
            }
            if take(phrase.noun + " is ") {
                return try oneOf(name) { $0.text }
            }
        case .codes(let codes):
            if take(phrase.noun + " is ") {
                return try oneOf(name) { value in
                    codes.first { CELValue.int($0.value).text == value.text }?.word ?? "?"
                }
            }
        case .count(let one, let many, let rest, _):
            if take("the number of \(many) \(rest) is not ") {
                let number = try number()
                return ints(name) { $0 != number }
            }
            guard
                ["there was ", "there were ", "there is ", "there are "].contains(where: {
                    take($0)
                })
            else { return nil }
            guard let holds = try quantity() else { return nil }
            return take(" \(many) \(rest)") || take(" \(one) \(rest)") ? ints(name, holds) : nil
        case .since(let clause, _, let unit, let notFor):
            if let notFor, take(notFor + " ") {
                let isMore = take("more than ")
                let least = try duration() / unit
                return ints(name) { isMore ? $0 > least : $0 >= least }
            }
            guard take(clause + " ") else { return nil }
            let holds = try span(unit)
            try expect(" ago")
            return ints(name, holds)
        case .age(let subject, _, let unit):
            if take("\(subject) is younger than ") {
                let end = try duration() / unit
                return ints(name) { $0 < end }
            }
            if take("\(subject) is older than ") {
                let end = try duration() / unit
                return ints(name) { $0 > end }
            }
            guard take("\(subject) is "), ["at ", "less ", "more "].contains(where: { next($0) })
            else { return nil }
            let holds = try span(unit)
            try expect(" old")
            return ints(name, holds)
        case .number:
            guard take(phrase.noun + " is ") else { return nil }
            if let first = try bound({ try $0.number() }) {
                guard take(" but ") else { return ints(name, first) }
                guard let second = try bound({ try $0.number() }) else { throw unreadable() }
                return ints(name) { first($0) && second($0) }
            }
            let isNot = take("not ")
            let number = try number()
            return ints(name) { ($0 == number) != isNot }
        case .list: return nil
        }
        return nil
    }

    private func ints(_ name: String, _ holds: @escaping (Int64) -> Bool) -> Meaning {
        { input in input[name].flatMap { if case .int(let int) = $0 { holds(int) } else { nil } } }
    }

    private mutating func oneOf(
        _ name: String, _ word: @escaping (CELValue) -> String
    ) throws -> Meaning {
        let isNot = take("not ") || take("neither ")
        var words: [String] = []
        repeat {
            guard take("\"") else { throw unreadable() }
            let end = rest.prefix { $0 != "\"" }
            rest = rest.dropFirst(end.count + 1)
            words.append("\"\(end)\"")
        } while next(", \"") && take(", ") || take(" nor ") || next(" or \"") && take(" or ")
        return { input in input[name].map { words.contains(word($0)) != isNot } }
    }

    // MARK: Numbers

    private mutating func quantity() throws -> ((Int64) -> Bool)? {
        if take("no") { return { $0 == 0 } }
        if take("exactly ") {
            let number = try number()
            return { $0 == number }
        }
        if take("fewer than ") {
            let number = try number()
            return { $0 < number }
        }
        if let holds = try bound({ try $0.number() }) { return holds }
        guard let least = try? number() else { return nil }
        if take(" or more") { return { $0 >= least } }
        try expect(" to ")
        let most = try number()
        return { (least...most).contains($0) }
    }

    private mutating func bound(
        _ value: (inout WordsReader) throws -> Int64
    ) throws -> ((Int64) -> Bool)? {
        for (words, holds) in [
            ("at least ", { $0 >= $1 }), ("at most ", { $0 <= $1 }), ("less than ", { $0 < $1 }),
            ("more than ", { $0 > $1 }),
        ] as [(String, (Int64, Int64) -> Bool)] where take(words) {
            let number = try value(&self)
            return { holds($0, number) }
        }
        return nil
    }

    private mutating func span(_ unit: Int64) throws -> (Int64) -> Bool {
        guard let first = try bound({ try $0.duration() / unit }) else { throw unreadable() }
        guard take(" but ") else { return first }
        guard let second = try bound({ try $0.duration() / unit }) else { throw unreadable() }
        return { first($0) && second($0) }
    }

    private static let small = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ]

    private mutating func number() throws -> Int64 {
        if let word = Self.small.firstIndex(where: { next($0) }) {
            rest = rest.dropFirst(Self.small[word].count)
            return Int64(word)
        }
        // A comma between digits belongs to the number.
        let isNegative = take("-")
        var digits = ""
        while let first = rest.first,
            first.isNumber || first == "," && rest.dropFirst().first?.isNumber == true
        {
            if first != "," { digits.append(first) }
            rest = rest.dropFirst()
        }
        guard let number = Int64((isNegative ? "-" : "") + digits) else { throw unreadable() }
        return number
    }

    private mutating func duration() throws -> Int64 {
        for (words, seconds) in [
            ("half a year", 15_552_000), ("two weeks", 1_209_600), ("a week", 604_800),
            ("a year", 31_536_000), ("a day", 86_400),
            ("an hour", 3_600), ("a minute", 60), ("a second", 1),
        ] as [(String, Int64)] where take(words) { return seconds }
        var total: Int64 = 0
        while true {
            total += try several()
            let start = rest
            if take(", ") || take(" and "), (try? several()) != nil {
                rest = start
                _ = take(", ") || take(" and ")
                continue
            }
            rest = start
            return total
        }
    }

    private mutating func several() throws -> Int64 {
        let count = try number()
        try expect(" ")
        for (unit, seconds) in [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)]
            as [(String, Int64)]
        where take(unit) {
            _ = take("s")
            return count * seconds
        }
        throw unreadable()
    }
}
