// The form of a text for a number: plural rules for whole numbers, as CLDR writes them (Unicode TS
// 35, part 3).

import Support

/// The rules of one language. A number that matches no rule uses `other`.
struct PluralRules: Sendable {
    static let categories = ["zero", "one", "two", "few", "many", "other"]

    /// The rules of English and many other languages: `one` for 1.
    static let standard = PluralRules(rules: [
        ("one", [[Relation(modulus: nil, isNegated: false, ranges: [1...1])]])
    ])

    /// `n % 10 = 2..4`, or without the remainder, or with `!=`.
    private struct Relation: Sendable {
        let modulus: Int?
        let isNegated: Bool
        let ranges: [ClosedRange<Int>]

        init(modulus: Int?, isNegated: Bool, ranges: [ClosedRange<Int>]) {
            self.modulus = modulus
            self.isNegated = isNegated
            self.ranges = ranges
        }

        init?(_ text: Substring) {
            let words = text.split(separator: " ")
            guard words.first == "n",
                let sign = words.firstIndex(where: { $0 == "=" || $0 == "!=" }),
                sign + 2 == words.count
            else {
                return nil
            }
            switch sign {
            case 1: modulus = nil
            case 3:
                guard words[1] == "%", let number = Int(words[2]), number > 0 else { return nil }
                modulus = number
            default: return nil
            }
            isNegated = words[sign] == "!="
            var ranges: [ClosedRange<Int>] = []
            for part in words[sign + 1].split(separator: ",", omittingEmptySubsequences: false) {
                let ends = part.split(
                    separator: ".", maxSplits: 2, omittingEmptySubsequences: false)
                guard let first = ends.first.flatMap({ Int($0) }),
                    let last = ends.last.flatMap({ Int($0) }), first <= last,
                    ends.count == 1 || ends.count == 3 && ends[1].isEmpty
                else { return nil }
                ranges.append(first...last)
            }
            self.ranges = ranges
        }

        func holds(_ number: Int) -> Bool {
            let value = modulus.map { number % $0 } ?? number
            return ranges.contains { $0.contains(value) } != isNegated
        }
    }

    /// A category holds if all relations of one alternative hold.
    private let rules: [(category: String, alternatives: [[Relation]])]

    private init(rules: [(category: String, alternatives: [[Relation]])]) { self.rules = rules }

    /// As in `{"one": "n % 10 = 1 and n % 100 != 11"}`; nil if a part of it is not such a rule.
    init?(_ object: JSONObject) {
        var rules: [(category: String, alternatives: [[Relation]])] = []
        for member in object.members {
            guard Self.categories.dropLast().contains(member.name), let text = member.value.string
            else { return nil }
            var alternatives: [[Relation]] = []
            for alternative in text.split(separator: " or ") {
                let parts = alternative.split(separator: " and ")
                let relations = parts.compactMap { Relation($0) }
                guard !relations.isEmpty, relations.count == parts.count else { return nil }
                alternatives.append(relations)
            }
            guard !alternatives.isEmpty else { return nil }
            rules.append((member.name, alternatives))
        }
        self.rules = rules
    }

    func category(of number: Int) -> String {
        rules.first { $0.alternatives.contains { $0.allSatisfy { $0.holds(number) } } }?.category
            ?? "other"
    }
}
