// Vectors/plan/*: a declaration and the present state → the plan, compared octet by octet. If it
// differs, expected.txt.actual is written beside the file.

import Declaration
import Foundation
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct PlanTests {
    static let vectors = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "Vectors")

    @Test func plan_ofVectors_isAsExpected() throws {
        let folder = Self.vectors.appending(path: "plan")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names.count >= 7)
        for name in names {
            let (desired, present, prunes) = try Self.load(folder.appending(path: name))
            let plan = Plan(desired: desired, present: present, prunes: prunes)
            var lines = plan.faults.map { "fault: \($0.item): \($0.message)" }
            lines.append(plan.text(isApplied: false))
            lines.append("\nIn this order:")
            lines += plan.steps.map { "\($0.kind.rawValue) \($0.item)" }
            try Self.expect(
                lines.joined(separator: "\n") + "\n", folder.appending(path: "\(name)/expected.txt")
            )
        }
    }

    @Test func declaration_invalid_isRefusedWithPlaces() throws {
        let folder = Self.vectors.appending(path: "invalid")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasSuffix(".yaml")
        }.sorted()
        #expect(names.count >= 7)
        for name in names {
            var reader = DeclarationReader()
            reader.read(
                try String(contentsOf: folder.appending(path: name), encoding: .utf8), name: name)
            let refusal = #expect(throws: PolicyRefusal.self, "\(name) was taken") {
                try reader.finish()
            }
            try Self.expect(
                (refusal?.description ?? "") + "\n",
                folder.appending(path: name.replacing(".yaml", with: ".expected")))
        }
    }

    /// Everything about a team must be in one file; the error names both places.
    @Test func declaration_teamInTwoFiles_isRefused() throws {
        var reader = DeclarationReader()
        reader.read("teams:\n  juice: {name: Juice}\n", name: "a.yaml")
        reader.read("teams:\n  pear: {name: Pear}\n  juice: {sources: []}\n", name: "b.yaml")
        let refusal = #expect(throws: PolicyRefusal.self) { try reader.finish() }
        #expect(
            refusal?.description.hasPrefix(
                "b.yaml:3:3: error: team juice is declared twice; before at a.yaml:2") == true)
        #expect(reader.declaration.teams?.keys.sorted() == ["juice", "pear"])
    }

    static func load(_ folder: URL) throws -> (Declaration, Declaration, Bool) {
        func read(_ name: String) throws -> (Declaration, String) {
            let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            var reader = DeclarationReader()
            reader.read(text, name: name)
            try reader.finish()
            return (reader.declaration, text)
        }
        let (desired, text) = try read("desired.yaml")
        try #require(text.hasPrefix("# why: "), "\(folder.path)")
        return (desired, try read("present.yaml").0, text.contains("\n# prune: true\n"))
    }

    static func expect(_ actual: String, _ file: URL) throws {
        let expected = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        if actual != expected {
            try Data(actual.utf8).write(to: file.appendingPathExtension("actual"))
        }
        #expect(actual == expected, "\(file.path)")
    }
}
