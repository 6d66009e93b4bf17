// The parts of both mails of a pair and of their answers that the team can see, and the differences
// besides the guess.

/// All of these for one side.
package struct Seen {
    /// The outcome of the team's own mail, with the text that its server gets.
    package var forwardCode = ""
    /// The reads and writes of the store, in order.
    package var forwardRecords: [String] = []
    package var forwardReasons: [String] = []
    package var replyCode = ""
    package var envelope: [String] = []
    package var records: [String] = []
    package var reasons: [String] = []
    /// Units of work, for each rewritten body.
    package var work: [Int] = []
    /// The answer as the program sends it.
    package var sent: [UInt8] = []
    /// The message that the team gets.
    package var octets: [UInt8]?

    package init() {}

    /// Each id has a different hidden id, so its letters do not count as a difference.
    private static func withoutHidden(_ octets: [UInt8]) -> [UInt8] {
        var octets = octets
        let domain = Array("@relay.example".utf8)
        var from = 0
        while let at = Octets.find(domain, in: octets, from: from) {
            from = at + 1
            var start = at
            while start > 0, isLetter(octets[start - 1]) { start -= 1 }
            guard at - start > 30, octets[start] == UInt8(ascii: "a"),
                octets[start + 1] == UInt8(ascii: "i") || octets[start + 1] == UInt8(ascii: "j")
            else { continue }
            for index in start..<at { octets[index] = UInt8(ascii: "*") }
        }
        return octets
    }

    private static func isLetter(_ octet: UInt8) -> Bool {
        octet >= 0x61 && octet <= 0x7A || octet >= 0x32 && octet <= 0x37
    }

    /// The first difference of each kind between the answers to a right and a wrong guess.
    package static func differences(
        _ right: Seen, _ wrong: Seen, _ substitutions: Substitutions
    ) -> [Difference] {
        func differ(_ kind: Difference.Kind, _ one: [String], _ other: [String]) -> Difference? {
            let index =
                zip(one, other).enumerated().first {
                    !substitutions.areSame($0.element.0, $0.element.1)
                }?.offset
                ?? (one.count == other.count ? nil : min(one.count, other.count))
            guard let index else { return nil }
            return Difference(
                kind: kind, place: "", right: index < one.count ? one[index] : "",
                wrong: index < other.count ? other[index] : "")
        }
        var found = [
            differ(.forwardCode, [right.forwardCode], [wrong.forwardCode]),
            differ(.forwardRecords, right.forwardRecords, wrong.forwardRecords),
            differ(.forwardReasons, right.forwardReasons, wrong.forwardReasons),
            differ(.replyCode, [right.replyCode], [wrong.replyCode]),
            differ(.envelope, right.envelope, wrong.envelope),
        ]
        if let one = right.octets, let other = wrong.octets {
            found.append(octets(one, other, substitutions))
        }
        found += [
            differ(.records, right.records, wrong.records),
            differ(.reasons, right.reasons, wrong.reasons),
            differ(.work, right.work.map(String.init), wrong.work.map(String.init)),
        ]
        return found.compactMap { $0 }
    }

    private static func octets(
        _ right: [UInt8], _ wrong: [UInt8], _ substitutions: Substitutions
    ) -> Difference? {
        let (one, other) = (
            ReadPart(withoutHidden(right)).items(), ReadPart(withoutHidden(wrong)).items()
        )
        for (one, other) in zip(one, other) {
            if !one.place.utf8.elementsEqual(other.place.utf8) {
                return Difference(
                    kind: .octets, place: "parts", right: one.place, wrong: other.place)
            }
            // Boundaries are not part of a text, and are made again by form.
            guard let index = substitutions.difference(one.octets, other.octets) else { continue }
            return Difference(
                kind: .octets, place: one.place, right: excerpt(one.octets, index),
                wrong: excerpt(other.octets, index))
        }
        if one.count != other.count {
            return Difference(
                kind: .octets, place: "parts", right: "\(one.count) items",
                wrong: "\(other.count) items")
        }
        // The encoding and the folds must also be equal.
        let (lines, others) = (Octets.lines(right), Octets.lines(wrong))
        for (line, other) in zip(lines, others) where line.count != other.count {
            return Difference(
                kind: .shape, place: "", right: excerpt(line, 0), wrong: excerpt(other, 0))
        }
        guard lines.count != others.count else { return nil }
        return Difference(
            kind: .shape, place: "lines", right: "\(lines.count)", wrong: "\(others.count)")
    }

    private static func excerpt(_ octets: [UInt8], _ index: Int) -> String {
        let start = max(0, index - 24)
        return octets[min(start, octets.count)..<min(octets.count, index + 60)].map { octet in
            octet >= 0x20 && octet < 0x7F
                ? String(UnicodeScalar(octet)) : octet == 10 ? "⏎" : octet == 13 ? "" : "·"
        }.joined()
    }
}

/// A difference between the answers to a right and a wrong guess.
package struct Difference: Sendable, CustomStringConvertible {
    package enum Kind: String, CaseIterable, Sendable {
        case forwardCode, forwardRecords, forwardReasons, replyCode, envelope, octets, shape,
            records,
            reasons, work
    }

    package let kind: Kind
    /// Whether it is in the results of the team's own mail, before any answer.
    package var isOfForward: Bool {
        [.forwardCode, .forwardRecords, .forwardReasons].contains(kind)
    }
    /// The part or field.
    package let place: String
    package let right: String
    package let wrong: String

    package var description: String { "\(kind) \(place): right «\(right)», wrong «\(wrong)»" }
}
