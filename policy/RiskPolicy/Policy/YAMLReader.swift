// Typed access to YAML nodes; all faults are collected with their positions, so that an author sees
// all of them together.

import CEL
import Support
import Yams

/// Reads one file's nodes.
package struct YAMLReader {
    /// The file that contains the nodes.
    package let file: YAMLFile
    let faults: DiagnosticCollector

    /// - Parameter faults: collects the faults.
    package init(file: YAMLFile, faults: DiagnosticCollector) {
        (self.file, self.faults) = (file, faults)
    }

    /// Adds a fault at a node.
    package func report(_ node: Node, _ message: String) {
        faults.add(file.source.diagnostic(at: file.position(of: node), message))
    }

    func report(_ scalar: Node.Scalar, utf8Offset: Int, _ message: String) {
        faults.add(
            file.source.diagnostic(at: file.position(in: scalar, utf8Offset: utf8Offset), message))
    }

    // MARK: Mappings

    /// A mapping's fields in the order written; nil (and a fault) if the node is not a mapping.
    package func entries(
        _ node: Node, _ what: String
    ) -> [(key: String, keyNode: Node, value: Node)]? {
        guard case .mapping(let mapping) = node else {
            report(node, "\(what) must be a mapping")
            return nil
        }
        return mapping.compactMap { key, value in
            guard case .scalar(let scalar) = key else { return nil }
            return (scalar.string, key, value)
        }
    }

    /// A mapping of known keys; an unknown key is a fault that names the nearest known one.
    package func fields(
        _ node: Node, _ what: String, required: [String], optional: [String]
    ) -> [String: Node]? {
        guard let entries = entries(node, what) else { return nil }
        var fields: [String: Node] = [:]
        for entry in entries {
            guard required.contains(entry.key) || optional.contains(entry.key) else {
                // `on:` is a common first attempt, and YAML 1.1 reads it as a boolean.
                let hint =
                    entry.key == "on" && required.contains("events")
                    ? "; did you mean 'events'?"
                    : suggestion(for: entry.key, among: required + optional)
                report(entry.keyNode, "unknown key '\(entry.key)' in \(what)\(hint)")
                continue
            }
            fields[entry.key] = entry.value
        }
        let absent = required.filter { fields[$0] == nil }
        if !absent.isEmpty {
            report(node, "\(what) needs \(absent.map { "'\($0)'" }.joined(separator: ", "))")
        }
        return fields
    }

    // MARK: Scalars and lists

    func scalar(_ node: Node, _ what: String) -> Node.Scalar? {
        guard case .scalar(let scalar) = node else {
            report(node, "\(what) must be text")
            return nil
        }
        return scalar
    }

    /// Text that is not empty.
    package func text(_ node: Node?, _ what: String) -> String? {
        guard let node, let scalar = scalar(node, what) else { return nil }
        guard !Self.isNull(node) else {
            report(
                node,
                scalar.string.isEmpty
                    ? "\(what) is empty"
                    : "\(what) is \(scalar.string), which YAML reads as no value: write it in quotation marks if it is meant"
            )
            return nil
        }
        guard !scalar.string.isEmpty else {
            report(node, "\(what) is empty")
            return nil
        }
        return scalar.string
    }

    /// One of several words.
    package func word(_ node: Node?, _ what: String, among words: [String]) -> String? {
        guard let node, let text = text(node, what) else { return nil }
        guard words.contains(text) else {
            let near = suggestion(for: text, among: words)
            report(
                node,
                "unknown \(what) '\(text)'\(near.isEmpty ? "; known: " + words.joined(separator: ", ") : near)"
            )
            return nil
        }
        return text
    }

    /// The elements of a list; nil (and a fault) if the node is not a list; nil if there is no
    /// node.
    package func list(_ node: Node?, _ what: String) -> [Node]? {
        guard let node else { return nil }
        guard case .sequence(let sequence) = node else {
            report(node, "\(what) must be a list")
            return nil
        }
        return Array(sequence)
    }

    /// `true` or `false` in plain style; otherwise nil (and a fault).
    package func flag(_ node: Node, _ what: String) -> Bool? {
        guard let scalar = scalar(node, what) else { return nil }
        guard case .bool(let value) = Self.value(scalar) else {
            report(node, "\(what) must be true or false")
            return nil
        }
        return value
    }

    /// Whether the node is YAML's null: nothing, `~` or `null` without quotes.
    package static func isNull(_ node: Node) -> Bool {
        guard case .scalar(let scalar) = node else { return false }
        if case .null = value(scalar) { return true }
        return false
    }

    /// The value of a scalar: in plain style null, true, false and numbers (YAML 1.2 core schema),
    /// otherwise text.
    static func value(_ scalar: Node.Scalar) -> CELValue {
        guard scalar.style == .plain else { return .string(scalar.string) }
        switch scalar.string {
        case "", "~", "null": return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        default: break
        }
        if let int = Int64(scalar.string) { return .int(int) }
        if scalar.string.utf8.contains(where: \.isASCIIDigit), !scalar.string.hasPrefix("0x"),
            let double = Double(scalar.string)
        {
            return .double(double)
        }
        return .string(scalar.string)
    }
}
