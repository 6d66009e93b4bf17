// MilterTesting's rules for header modifications, checked against Postfix itself.

import Foundation
import MilterTesting
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct HeaderModificationTests {
    private static let fields = [
        "From: a@out.test", "X-A: 1", "X-B: b", "X-A: 2", "x-a: 3", "X-Fold: one\r\n\ttwo",
        "X-a: 4", "SUBJECT: hi",
        "Date: Fri, 21 Nov 1997 09:55:06 -0600", "MESSAGE-ID: <x@y.test>", "X-Empty:", "X-Tab:\tt",
        "X-Two:  two",
        "received: by foo", "Received: by bar",
    ]

    private static var original: MessageState {
        let fields = fields.map { field in
            let parts = field.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return MessageState.Field(String(parts[0]), Array(parts[1].utf8))
        }
        return MessageState(
            mailFrom: "<sender@out.test>", recipients: ["<user@relay.test>"], fields: fields,
            body: [])
    }

    /// The script line that makes the filter request this modification.
    private static func line(_ modification: RecordedModification) -> String {
        func escaped(_ value: [UInt8]) -> String {
            value.map { "\\x" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        switch modification {
        case .changeHeader(let name, let index, let value?):
            return "change \(name) \(index) \(escaped(value))"
        case .changeHeader(let name, let index, nil): return "delete \(name) \(index)"
        case .insertHeader(let index, let name, let value):
            return "insert \(index) \(name) \(escaped(value))"
        case .addHeader(let name, let value): return "add \(name) \(escaped(value))"
        default: return "# \(modification)"
        }
    }

    /// The result in Postfix: all fields except its own Received, and the number of fields above
    /// that.
    private func onPostfix(
        _ fixture: PostfixFixture, _ modifications: [RecordedModification]
    ) throws -> (fields: [String], above: Int) {
        try fixture.script(modifications.map(Self.line).joined(separator: "\n") + "\n")
        let message = try fixture.relay(mail(Self.fields))
        var fields = message.fields
        let own = try #require(
            fields.firstIndex { $0.hasPrefix("Received: by mx.relay.test (Postfix) with ") })
        fields.remove(at: own)
        return (fields, own)
    }

    private func check(_ fixture: PostfixFixture, _ modifications: [RecordedModification]) throws {
        let expected = Self.original.applying(modifications)
        let actual = try onPostfix(fixture, modifications)
        let list = modifications.map(\.description).joined(separator: "; ")
        #expect(actual.fields == expected.fields.map(\.description), "\(list)")
        #expect(actual.above == expected.aboveReceived, "\(list)")
    }

    @Test func modifications_chosenCases_matchPostfix() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let cases: [[RecordedModification]] = [
            [],
            // A deletion moves the later fields of that name up.
            [.delete("X-A", 1), .change("X-A", 2, " was three")],
            [.delete("X-A", 1), .delete("X-A", 1)],
            [.delete("X-A", 4), .delete("X-A", 3), .delete("X-A", 2), .delete("X-A", 1)],
            // Beyond the last field: appended, or no effect.
            [.change("X-A", 9, " nine"), .change("X-A", 1, " one")],
            [.delete("X-A", 7), .delete("Nowhere", 1), .change("Nowhere", 1, " here")],
            // Inserted and added fields count.
            [.insert(1, "X-A", " inserted"), .change("X-A", 1, " changed")],
            [.add("X-A", " added"), .change("X-A", 5, " changed")],
            // Positions include the MTA's own Received.
            [
                .insert(2, "X-I", " a"), .insert(2, "X-I", " b"), .insert(99, "X-I", " c"),
                .insert(5, "X-I", "d"),
            ],
            [
                .insert(0, "Y", " y"), .insert(1, "Z", " z"), .delete("X-A", 1),
                .insert(3, "W", " w"), .insert(0, "V", " v"),
            ],
            [.delete("X-A", 1), .insert(4, "X-I", " after a deletion")],
            [.insert(7, "X-I", " below a folded field")],
            [
                .insert(8, "X-I", " further below"), .delete("X-Fold", 1),
                .insert(6, "X-J", " there"),
            ],
            // Values: folds, leading white space, empty.
            [
                .change("X-A", 2, " folded\r\n\tmore\r\n  and more"), .change("X-B", 1, " "),
                .change("From", 1, "nospace"),
            ],
            [
                .change("Subject", 1, " named anew"), .change("X-Empty", 1, " filled"),
                .add("X-C", " "), .add("X-D", "\tc"),
            ],
            // The MTA's own Received does not count among the fields of that name.
            [.delete("Received", 1), .change("Received", 2, " x")],
            [.delete("Received", 2), .delete("Received", 1)],
            [.insert(1, "Received", " ours"), .delete("Received", 1)],
            [.insert(1, "Received", " ours"), .change("Received", 2, " x")],
            [.insert(0, "Received", " ours"), .delete("Received", 1)],
            [.insert(0, "Received", " ours"), .change("Received", 2, " x")],
        ]
        for modifications in cases { try check(fixture, modifications) }
    }

    @Test func modifications_randomSequences_matchPostfix() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        var random = SeededGenerator(seed: 20_261_121)
        let names = ["X-A", "x-a", "X-B", "From", "X-New", "X-Empty"]
        for _ in 0..<25 {
            let modifications: [RecordedModification] = (0..<Int.random(in: 1...8, using: &random))
                .map { number in
                    let name = names.randomElement(using: &random) ?? "X-A"
                    switch Int.random(in: 0..<5, using: &random) {
                    case 0: return .delete(name, Int.random(in: 1...5, using: &random))
                    case 1:
                        return .insert(Int.random(in: 0...20, using: &random), name, " i\(number)")
                    case 2: return .add(name, " a\(number)")
                    default:
                        return .change(name, Int.random(in: 1...6, using: &random), " c\(number)")
                    }
                }
            try check(fixture, modifications)
        }
    }
}
