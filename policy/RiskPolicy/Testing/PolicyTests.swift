// tests.yaml → test cases (docs/POLICY.md, "Tests"), with every name and value
// checked against the policy.

import CEL
import Yams

/// A test case: a request and the expected answer.
package struct PolicyTest: Sendable {
    /// The name of its section.
    package let section: String
    /// Its name, distinct within the section.
    package let name: String
    /// The request: `given`, overridden by its own `input`.
    package let input: PolicyInput
    /// Only the keys under `output`.
    package let expected: [PolicyTestExpectation]
    /// Its position in the tests file.
    package let position: SourcePosition

    /// `section/name`.
    package var path: String { section + "/" + name }
}

/// One key under `output`.
package struct PolicyTestExpectation: Sendable, Equatable {
    /// decision, challenges, reasons, waived, missing, errors, shadow, degraded, event.
    package let key: String
    /// The expected values; one element if the key has one value.
    package let values: [String]
    /// Whether the order counts: only for challenges.
    package var isOrdered: Bool { key == "challenges" }
}

/// The tests of a policy.
package struct PolicyTestSuite: Sendable {
    /// The file's own description; empty if there is none.
    package let description: String
    /// In the order of the file; may be empty.
    package let tests: [PolicyTest]
    /// The file's name in messages.
    package let file: String

    /// The time of tests without `now`: 2026-01-01T00:00:00Z.
    package static let defaultNow: Int64 = 1_767_225_600

    /// Parses a tests file. A test without `output` is a fault; a file without
    /// tests is an empty suite.
    package static func load(
        _ text: String, file: String = "tests.yaml", policy: Policy
    ) throws(PolicyRefusal) -> PolicyTestSuite {
        let yaml = try YAMLFile(name: file, text: text)
        let faults = DiagnosticCollector()
        let reader = PolicyTestReader(
            reader: YAMLReader(file: yaml, faults: faults), policy: policy)
        let suite = reader.read(yaml.root)
        try faults.throwIfAny()
        return suite
    }

    /// A suite of given tests.
    package init(description: String, tests: [PolicyTest], file: String) {
        self.description = description
        self.tests = tests
        self.file = file
    }
}

struct PolicyTestReader {
    let reader: YAMLReader
    let policy: Policy

    func read(_ root: Node) -> PolicyTestSuite {
        var tests: [PolicyTest] = []
        let fields =
            reader.fields(
                root, "a tests file", required: ["section"],
                optional: ["description", "given", "lists"]) ?? [:]
        let lists = lists(fields["lists"])
        let given = fields["given"].map { values($0) } ?? []
        var paths: Set<String> = []
        for section in reader.list(fields["section"], "section") ?? [] {
            guard
                let fields = reader.fields(
                    section, "a section", required: ["name", "tests"], optional: ["description"])
            else {
                continue
            }
            let name = reader.text(fields["name"], "name") ?? ""
            for node in reader.list(fields["tests"], "tests") ?? [] {
                guard let test = read(test: node, section: name, given: given, lists: lists) else {
                    continue
                }
                if !paths.insert(test.path).inserted {
                    reader.report(node, "two tests named '\(test.path)'")
                }
                tests.append(test)
            }
        }
        return PolicyTestSuite(
            description: fields["description"].flatMap { reader.text($0, "description") } ?? "",
            tests: tests,
            file: reader.file.source.name)
    }

    /// A value for a signal, or for `event`, `history`, `now`.
    private typealias Assignment = (name: String, value: CELValue, node: Node)

    private func read(
        test node: Node, section: String, given: [Assignment], lists: FixedLiveLists
    ) -> PolicyTest? {
        guard
            let fields = reader.fields(
                node, "a test", required: ["name", "input", "output"], optional: ["description"]),
            let name = reader.text(fields["name"], "name"), let inputNode = fields["input"],
            let outputNode = fields["output"]
        else { return nil }
        guard var input = input(given: given, own: values(inputNode), node: inputNode) else {
            return nil
        }
        input.lists = lists
        let expected = expectations(outputNode)
        if expected.isEmpty {
            reader.report(outputNode, "a test without expectations under 'output' tests nothing")
        }
        return PolicyTest(
            section: section, name: name, input: input, expected: expected,
            position: reader.file.position(of: node))
    }

    // MARK: Input

    /// A separate request.
    func readInput(_ node: Node) -> PolicyInput? {
        input(given: [], own: values(node), node: node)
    }

    /// Flattens nested and dotted names; null removes a name and everything under it.
    private func values(_ node: Node, prefix: String = "") -> [Assignment] {
        var result: [Assignment] = []
        for entry in reader.entries(node, "an input") ?? [] {
            let name = prefix + entry.key
            if case .mapping = entry.value {
                result += values(entry.value, prefix: name + ".")
            } else if case .sequence(let sequence) = entry.value {
                let elements = sequence.compactMap { reader.scalar($0, "an element") }.map(
                    YAMLReader.value)
                result.append((name, .list(elements), entry.value))
            } else if let scalar = reader.scalar(entry.value, "a value") {
                result.append((name, YAMLReader.value(scalar), entry.keyNode))
            }
        }
        return result
    }

    private func input(given: [Assignment], own: [Assignment], node: Node) -> PolicyInput? {
        var values: [String: Assignment] = [:]
        for assignment in given + own {
            let group = assignment.name + "."
            if case .null = assignment.value {
                let isKnown =
                    policy.slot(named: assignment.name) != nil
                    || policy.signals.contains { $0.name.hasPrefix(group) }
                if !isKnown { reportUnknown(assignment) }
                values[assignment.name] = nil
                for name in values.keys where name.hasPrefix(group) { values[name] = nil }
            } else {
                values[assignment.name] = assignment
            }
        }
        guard let event = event(&values, node) else { return nil }
        guard let now = CELTimestamp(seconds: PolicyTestSuite.defaultNow) else { return nil }
        var input = policy.makeInput(event: event, now: now)
        for (name, assignment) in values.sorted(by: { $0.key < $1.key }) {
            switch name {
            case "history":
                guard case .string("unavailable") = assignment.value else {
                    reader.report(assignment.node, "'history' must be 'unavailable' or omitted")
                    continue
                }
                input.isHistoryUnavailable = true
            case "now":
                guard case .string(let text) = assignment.value, let time = CELTimestamp(text: text)
                else {
                    reader.report(
                        assignment.node, "'now' must be a time as in 2026-11-20T21:14:03Z")
                    continue
                }
                input.now = time
            default:
                guard let slot = policy.slot(named: name) else {
                    reportUnknown(assignment)
                    continue
                }
                do throws(PolicyInputError) {
                    try policy.set(
                        slot: slot, to: converted(assignment.value, to: policy.signals[slot].type),
                        in: &input)
                } catch {
                    reader.report(assignment.node, error.message)
                }
            }
        }
        return input
    }

    /// A status policy has only one event.
    private func event(_ values: inout [String: Assignment], _ node: Node) -> PolicyEvent? {
        if policy.kind == .status { return PolicyLoader.statusEvent }
        guard let value = values.removeValue(forKey: "event") else {
            reader.report(node, "the input needs 'event'")
            return nil
        }
        guard case .string(let word) = value.value, let event = PolicyEvent(rawValue: word) else {
            let words = PolicyEvent.allCases.map(\.rawValue).joined(separator: ", ")
            reader.report(value.node, "unknown event; known: \(words)")
            return nil
        }
        return event
    }

    /// YAML has no uint, time or duration: they are written as numbers and text.
    private func converted(_ value: CELValue, to type: CELType) -> CELValue {
        switch (type, value) {
        case (.uint, .int(let int)): UInt64(exactly: int).map(CELValue.uint) ?? value
        case (.timestamp, .string(let text)):
            CELTimestamp(text: text).map(CELValue.timestamp) ?? value
        case (.duration, .string(let text)): CELDuration(text: text).map(CELValue.duration) ?? value
        default: value
        }
    }

    private func reportUnknown(_ assignment: Assignment) {
        let names = policy.signals.map(\.name) + ["history", "now"]
        reader.report(
            assignment.node,
            "unknown signal '\(assignment.name)'\(suggestion(for: assignment.name, among: names))")
    }

    // MARK: Output

    private var listKeys: [String] {
        (policy.kind == .status ? [] : ["challenges", "waived"]) + [
            "reasons", "missing", "errors", "shadow",
        ]
    }

    private var wordKeys: [String] {
        policy.kind == .status ? ["status", "degraded"] : ["decision", "degraded", "event"]
    }

    private func expectations(_ node: Node) -> [PolicyTestExpectation] {
        guard
            let fields = reader.fields(
                node, "an output", required: [], optional: wordKeys + listKeys)
        else { return [] }
        var expected: [PolicyTestExpectation] = []
        for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
            var values: [String] = []
            if listKeys.contains(key) {
                for element in reader.list(value, key) ?? [] {
                    if let text = reader.text(element, key) {
                        if let known = known(key), !known.contains(text) {
                            reader.report(
                                element,
                                "the policy has no '\(text)'\(suggestion(for: text, among: known))")
                        }
                        values.append(text)
                    }
                }
            } else {
                let words: [String] =
                    switch key {
                    case "status": PolicyStatus.allCases.map(\.rawValue)
                    case "decision": PolicyDecision.allCases.map(\.rawValue)
                    case "event": PolicyEvent.allCases.map(\.rawValue)
                    default: ["true", "false"]
                    }
                if let word = reader.word(value, key, among: words) { values = [word] }
            }
            expected.append(PolicyTestExpectation(key: key, values: values))
        }
        return expected
    }

    /// The values allowed under a key, so that mistakes are found.
    private func known(_ key: String) -> [String]? {
        switch key {
        case "challenges": policy.challenges.map(\.kind)
        case "reasons", "waived": policy.reasonCodes
        case "errors": policy.rules.map(\.id) + policy.challenges.map(\.kind)
        default: policy.rules.map(\.id)
        }
    }
}
