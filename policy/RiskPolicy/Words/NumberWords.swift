// Numbers, durations and enumerations in the sentences of rules.

import CEL
import Support

package enum NumberWords {
    private static let small = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ]

    /// `three`, `12`, `12,345`, `-5`.
    package static func text(_ number: Int64) -> String {
        guard let number = Int(exactly: number) else { return String(number) }
        return small.indices.contains(number) ? small[number] : Count.text(number)
    }

    /// `five` for 5.0, `1.5`.
    package static func text(_ number: Double) -> String {
        if let whole = Int64(exactly: number), whole.magnitude < 1 << 53 { return text(whole) }
        return CELValue.double(number).text
    }

    /// `a, b and c`.
    package static func list(_ words: [String], _ last: String = "and") -> String {
        guard let end = words.last, words.count > 1 else { return words.first ?? "" }
        return "\(words.dropLast().joined(separator: ", ")) \(last) \(end)"
    }
}

package enum DurationWords {
    private static let units: [(seconds: Int64, one: String, many: String)] = [
        (86_400, "a day", "day"), (3_600, "an hour", "hour"), (60, "a minute", "minute"),
        (1, "a second", "second"),
    ]
    /// Spans with a name of their own.
    private static let named: [Int64: String] = [
        604_800: "a week", 1_209_600: "two weeks", 15_552_000: "half a year", 31_536_000: "a year",
    ]
    /// Above this number of a unit, larger units are used too: `90 minutes`, but
    /// `four days and four hours`.
    private static let mostOfUnit = 99

    /// `a day`, `three days`, `half a year` (180 days), `90 minutes`,
    /// `180 days and one hour`. Exact.
    /// - Parameter seconds: 0 or more; the sign of others is kept.
    package static func text(_ seconds: Int64) -> String {
        guard seconds > 0 else { return "\(NumberWords.text(seconds)) seconds" }
        if let name = named[seconds] { return name }
        if let unit = units.first(where: { seconds % $0.seconds == 0 }) {
            let count = seconds / unit.seconds
            if count == 1 { return unit.one }
            if count <= mostOfUnit || unit.seconds == units[0].seconds {
                return several(count, unit.many)
            }
        }
        var rest = seconds
        var parts: [String] = []
        for unit in units {
            let count = rest / unit.seconds
            rest %= unit.seconds
            if count > 0 { parts.append(several(count, unit.many)) }
        }
        return NumberWords.list(parts)
    }

    private static func several(_ count: Int64, _ unit: String) -> String {
        "\(NumberWords.text(count)) \(unit)\(count == 1 ? "" : "s")"
    }
}
