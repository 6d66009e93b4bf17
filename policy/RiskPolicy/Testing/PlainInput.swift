// Requests and variables from a separate YAML or JSON text: for `explain --input` and `eval
// --input`.

import CEL
import Yams

extension PolicyTestSuite {
    /// Parses one request in the form of a test's `input`: nested or dotted names, `event`,
    /// `history`, `now`.
    package static func input(
        _ text: String, file: String, policy: Policy
    ) throws(PolicyRefusal) -> PolicyInput {
        let yaml = try YAMLFile(name: file, text: text)
        let faults = DiagnosticCollector()
        let reader = PolicyTestReader(
            reader: YAMLReader(file: yaml, faults: faults), policy: policy)
        let input = reader.readInput(yaml.root)
        try faults.throwIfAny()
        guard let input else { throw PolicyRefusal(diagnostics: []) }
        return input
    }
}

extension CELValue {
    /// Variables by name from a YAML or JSON mapping; nested mappings become maps.
    package static func variables(
        _ text: String, file: String
    ) throws(PolicyRefusal) -> [String: CELValue] {
        let yaml = try YAMLFile(name: file, text: text)
        guard case .map(let map) = CELValue(plain: yaml.root) else {
            let start = SourcePosition(line: 1, column: 1)
            throw PolicyRefusal(diagnostics: [
                yaml.source.diagnostic(at: start, "variables must be a mapping")
            ])
        }
        var variables: [String: CELValue] = [:]
        for entry in map.entries {
            if case .string(let name) = entry.key { variables[name] = entry.value }
        }
        return variables
    }

    /// The depth is limited, because the file's nesting is limited.
    private init(plain node: Node) {
        switch node {
        case .scalar(let scalar): self = YAMLReader.value(scalar)
        case .sequence(let sequence): self = .list(sequence.map { CELValue(plain: $0) })
        case .mapping(let mapping):
            var map = CELMap()
            for (key, value) in mapping {
                if case .scalar(let scalar) = key {
                    _ = map.add(.string(scalar.string), CELValue(plain: value))
                }
            }
            self = .map(map)
        case .alias: self = .null
        }
    }
}
