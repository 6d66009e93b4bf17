// A written declaration reads back unchanged, and PyYAML and jsonschema confirm that it matches the
// schema.

import Declaration
import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct WriterTests {
    /// Names that YAML would read as another type, and every field.
    @Test func declarationWriter_anyDeclaration_isReadBackUnchanged() throws {
        var random = SeededGenerator(seed: 7)
        var made = 0
        for _ in 0..<500 {
            let declaration = Self.declaration(&random)
            let text = DeclarationWriter.text(declaration)
            var reader = DeclarationReader()
            reader.read(text, name: "export.yaml")
            try reader.finish()
            let plan = Plan(desired: reader.declaration, present: declaration, prunes: true)
            try #require(
                plan.changes.isEmpty && plan.faults.isEmpty,
                "\(plan.text(isApplied: false))\n\(text)")
            #expect(reader.declaration.teams?.keys == declaration.teams?.keys)
            #expect(DeclarationWriter.text(reader.declaration) == text)
            made += declaration.teams?.count ?? 0
        }
        #expect(made > 500)
    }

    private static func declaration(_ random: inout SeededGenerator) -> Declaration {
        let words = [
            "yes", "null", "~", "true", "1.5", "0x1F", "a: b", "# no", "it's", "\"q\"", "\\", "é ü",
            "- x", "*a", "&b", "[x",
            "{y",
            "a", "Name Surname", "trailing ", " leading", "a:", "?", "100%", "@x", "2026-01-01",
            "=", "<<", "\u{200D}", "日本",
        ]
        func word() -> String { words[Int.random(in: 0..<words.count, using: &random)] }
        func some<T: Hashable & Sendable>(_ value: T) -> Declared<T> {
            Bool.random(using: &random) ? .some(value) : .none
        }
        func endpoint() -> Declared<DeclaredEndpoint> {
            let isSecure = Bool.random(using: &random)
            return some(
                DeclaredEndpoint(
                    url:
                        "\(isSecure ? "https" : "http")://juice.example/?a=\(Int.random(in: 0..<9, using: &random))&b=%20",
                    allowsHTTP: !isSecure, allowsPrivate: Bool.random(using: &random)))
        }
        var teams: [String: DeclaredTeam] = [:]
        for number in 0..<Int.random(in: 0...4, using: &random) {
            var apps: [String: DeclaredApp] = [:]
            for id in ["null", "1", "com.example.x", "a:b"].prefix(
                Int.random(in: 0...4, using: &random))
            {
                let group = id == "null" || Bool.random(using: &random) ? nil : "null"
                apps["\(id)\(number)"] = DeclaredApp(
                    name: some(word()), group: group.map { "\($0)\(number)" },
                    isPublic: Bool.random(using: &random),
                    algorithm: ["ES256", "RS256"].randomElement(using: &random),
                    nonceForm: ["raw", "sha256_hex"].randomElement(using: &random),
                    isNonceRequired: Bool.random(using: &random),
                    redirectURIs: ["https://a.example/?x=\(number)", "com.example.app:/x"],
                    logoutURIs: [],
                    endpoint: group == nil ? endpoint() : .none, policy: some("strict"))
            }
            teams["yes\(number)"] = DeclaredTeam(
                name: word(),
                sources: Bool.random(using: &random)
                    ? []
                    : [
                        DeclaredSource("a.example"),
                        DeclaredSource("a@b.example", envelope: "c.example"),
                    ],
                apps: apps, lists: ["on": DeclaredList(kind: "text")],
                endpoint: apps.isEmpty ? endpoint() : .none,
                policy: some("strict"))
        }
        return Declaration(
            teams: teams,
            lists: Bool.random(using: &random) ? [:] : ["no": DeclaredList(kind: "range")],
            policies: [
                "strict": DeclaredPolicy(
                    hash: "sha256:" + String(repeating: "a1", count: 32), isDefault: true)
            ])
    }
}

enum Tools {
    static let python: String? = {
        let path = Folders.package.appending(path: ".build/test-tools/bin/python3").path
        return FileManager.default.isExecutableFile(atPath: path) ? path : nil
    }()
}

/// The schema of `postern apply --schema`, with a validator from another project.
@Suite(
    .blocking,
    .enabled(
        if: Tools.python != nil,
        "skipped: no Python with jsonschema-rs and PyYAML; see make test-tools"))
struct SchemaTests {
    /// The schema allows everything that the reader accepts, and refuses everything with a wrong
    /// form.
    @Test func schema_vectors_agreesWithReader() throws {
        let vectors = PlanTests.vectors
        let plans = try FileManager.default.contentsOfDirectory(
            atPath: vectors.appending(path: "plan").path
        ).sorted()
        let examples = try FileManager.default.contentsOfDirectory(
            atPath: vectors.appending(path: "examples").path
        ).sorted()
        let good =
            plans.flatMap { ["plan/\($0)/present.yaml", "plan/\($0)/desired.yaml"] }
            + examples.map { "examples/\($0)" }
        let bad = try FileManager.default.contentsOfDirectory(
            atPath: vectors.appending(path: "invalid").path
        )
        .filter { $0.hasSuffix(".yaml") && $0 != "twice.yaml" && $0 != "alias.yaml" }.sorted().map {
            "invalid/\($0)"
        }
        let answers = try validate(good + bad)
        #expect(answers.count == good.count + bad.count && good.count >= 14 && bad.count >= 5)
        for (name, answer) in zip(good, answers) { #expect(answer == "valid", "\(name)") }
        for (name, answer) in zip(bad, answers.dropFirst(good.count)) {
            #expect(answer != "valid", "\(name)")
        }
    }

    /// Both have the same keys in every place.
    @Test func schema_keys_areThoseOfReader() throws {
        let schema = try #require(
            try JSONSerialization.jsonObject(with: Data(DeclarationSchema.text.utf8))
                as? [String: Any])
        func keys(_ path: [String]) throws -> Set<String> {
            var node = schema
            for part in path { node = try #require(node[part] as? [String: Any], "\(path)") }
            return Set(try #require(node["properties"] as? [String: Any]).keys)
        }
        func second(_ name: String, of index: Int) throws -> Set<String> {
            let definitions = try #require(schema["$defs"] as? [String: Any])
            let choices = try #require(
                (definitions[name] as? [String: Any])?["oneOf"] as? [[String: Any]])
            return Set(try #require(choices[index]["properties"] as? [String: Any]).keys)
        }
        #expect(try keys([]) == Set(DeclarationKeys.root))
        #expect(try keys(["$defs", "team"]) == Set(DeclarationKeys.team))
        #expect(try keys(["$defs", "app"]) == Set(DeclarationKeys.app))
        #expect(try keys(["$defs", "app", "properties", "nonce"]) == Set(DeclarationKeys.nonce))
        #expect(try keys(["$defs", "policy"]) == Set(DeclarationKeys.policy))
        #expect(try keys(["$defs", "lists", "additionalProperties"]) == Set(DeclarationKeys.list))
        #expect(try second("source", of: 1) == Set(DeclarationKeys.source))
        #expect(try second("endpoint", of: 2) == Set(DeclarationKeys.endpoint))
    }

    private func validate(_ names: [String]) throws -> [String] {
        let schema = FileManager.default.temporaryDirectory.appending(
            path: "postern-schema-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: schema) }
        try Data(DeclarationSchema.text.utf8).write(to: schema)
        let tool = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "Tools/validate.py"
        ).path
        let vectors = names.map { PlanTests.vectors.appending(path: $0).path }
        let run = try ProgramRun.succeed([try #require(Tools.python), tool, schema.path] + vectors)
        return run.output.split(separator: "\n").map(String.init)
    }
}
