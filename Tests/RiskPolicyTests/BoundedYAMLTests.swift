// YAML at a bounded cost: anchors and aliases under any name and in any place, keys of keys, and
// texts that only look like them.

import Foundation
import RiskPolicy
import TestSupport
import Testing
import Yams

@Suite(.blocking, .timeLimit(.minutes(5))) struct BoundedYAMLTests {
    private func refusal(_ yaml: String) -> String? {
        do throws(YAMLFault) {
            _ = try BoundedYAML.root(yaml)
            return nil
        } catch {
            return error.message
        }
    }

    @Test(arguments: [
        "a: &x 1", "a: [*x]", "&x a: 1", "- *x", "a:\n  *x", "? *x\n: 1", "a: {b: *x}",
        "a: 'x'\nb: *y", "a: \"it's\"\nb: &y 1",
        // Names of signs only.
        "a: &_ 1", "a: &- 1", "a: [&_ x, *_]", "a: &-- [1]\nb: *--",
        // A quote or a bar within plain text, and text within a sequence, must not hide an anchor.
        "x: b, 'c\na: &a [1]\nb: *a", "- x: b, |\n  a: &a [1]",
        "- a: |\n    text\n  b: &b [1]\n  c: *b", "a: &_\n  b: 1",
        "&_\n- x",
    ])
    func yaml_anchorOrAlias_isRefused(yaml: String) {
        #expect(
            refusal(yaml)?.hasPrefix("anchors and aliases") == true, "\(refusal(yaml) ?? "taken")")
    }

    /// A small text must not take exponential time.
    @Test(arguments: ["_", "-", "x"]) func yaml_aliasesOfAliasesAsKey_isRefused(name: String) {
        var bomb = "\(name)0: &\(name) [x, x, x, x, x, x, x, x, x]\n"
        for level in 1...12 {
            let (new, old) = (
                String(repeating: name, count: level + 1), String(repeating: name, count: level)
            )
            bomb +=
                "k\(level): &\(new) [\(Array(repeating: "*\(old)", count: 9).joined(separator: ", "))]\n"
        }
        bomb += "? *\(String(repeating: name, count: 13))\n: 1\n"
        #expect(refusal(bomb) != nil)
    }

    @Test func yaml_nestedKey_isRefused() {
        for yaml in ["? a\n: b", "? [a]\n: b", "[a]: b", "{a: 1}: b", "? ? ? a", "a: [? b]"] {
            #expect(refusal(yaml) != nil, "\(yaml)")
        }
        // Each level of a key is hashed again.
        let deep = String(repeating: "{", count: 200) + "a" + String(repeating: ": 1}", count: 200)
        #expect(refusal(String(repeating: deep + "\n", count: 200)) == "nested more than 16 deep")
    }

    @Test func yaml_textWithSigns_isReadAsWritten() throws {
        let yaml = """
            plain: a & b * c ?d && 2 *x
            type: int?
            ?x: 1
            single: '&a *b ? c'
            double: "&a *b ? \u{E000}c"
            literal: |
              &a *b
              ? c
            folded: >-
              *a and
              &b
            "*key": x   # *not* an &alias
            flow: [a*b, 'x&y', "?"]
            """
        let root = try #require(try BoundedYAML.root(yaml))
        func text(_ key: String) -> String? { root[key]?.string }
        #expect(text("plain") == "a & b * c ?d && 2 *x")
        #expect(text("type") == "int?")
        #expect(text("?x") == "1")
        #expect(text("single") == "&a *b ? c")
        #expect(text("double") == "&a *b ? \u{E000}c")
        #expect(text("literal") == "&a *b\n? c\n")
        #expect(text("folded") == "*a and &b")
        #expect(text("*key") == "x")
        #expect(root["flow"]?.array().map(\.string) == ["a*b", "x&y", "?"])
        #expect(root["flow"]?.mark?.description == "13:7")
        #expect(refusal("\"a*\": 1\n'a*': 2") == "duplicate key 'a*'")
        #expect(refusal("a: [1") == "not YAML: did not find expected ',' or ']'")
        #expect(try BoundedYAML.root("# nothing") == nil)
    }

    /// Texts made at random of the pieces of YAML: an accepted one reads as Yams alone reads it,
    /// and has no alias. `POSTERN_GENERATE=SEED:COUNT` makes others, and more.
    @Test func yaml_randomText_isReadAsByYams() throws {
        let pieces = [
            "a", "b: ", "- ", "? ", ": ", "&x ", "*x", "&_ ", "*_", "'", "\"", "[", "]", "{", "}",
            ", ", "|", ">", "\n", "\n  ",
            "\n    ",
            "# ", "it's", "a & b", "2 *x", "int?", "!t ", "---", "é", "\\", "\t", "&-", "*- ",
            "x: b, 'c",
        ]
        let (seed, count) = Generated.settings(
            seed: 21, count: 20_000, variable: "POSTERN_GENERATE")
        var random = SeededGenerator(seed: seed)
        var (taken, anchored) = (0, 0)
        for _ in 0..<count {
            var text = ""
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                text += pieces[Int.random(in: 0..<pieces.count, using: &random)]
            }
            // Texts of this size are harmless to Yams.
            let parser = try? Yams.Parser(yaml: text, resolver: .basic, encoding: .utf8)
            let reference = try? parser?.singleRoot()
            // Nodes hold their anchors weakly.
            let isAnchored = withExtendedLifetime(parser) { reference.map(Self.hasAnchor) ?? false }
            anchored += isAnchored ? 1 : 0
            let ours: Node?
            do throws(YAMLFault) {
                ours = try BoundedYAML.root(text)
            } catch {
                continue
            }
            guard let ours else { continue }
            taken += 1
            try #require(!isAnchored, "an anchor was taken: \(text)")
            // An alias beside its anchor counts as one; an anchor that replaced another is
            // forgotten by Yams, and the text is refused.
            try #require(ours == reference, "read otherwise: \(text)")
        }
        #expect(taken > count / 20 && anchored > count / 200)
        print("yaml: \(count) texts, \(taken) taken, \(anchored) with anchors")
    }

    private static func hasAnchor(_ node: Node) -> Bool {
        if node.anchor != nil { return true }
        switch node {
        case .scalar: return false
        case .alias: return true
        case .sequence(let sequence): return sequence.contains(where: hasAnchor)
        case .mapping(let mapping):
            return mapping.contains { hasAnchor($0.key) || hasAnchor($0.value) }
        }
    }
}
