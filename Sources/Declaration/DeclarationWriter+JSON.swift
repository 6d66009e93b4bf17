// A declaration as JSON, which is also valid YAML: postern apply reads both.

import RiskPolicy
import Support
import Yams

extension DeclarationWriter {
    /// The same members as the text of a file, on one line.
    package static func json(_ declaration: Declaration) throws(YAMLFault) -> String {
        guard let root = try BoundedYAML.root(text(declaration)) else { return "{}" }
        var writer = JSONWriter()
        write(root, to: &writer)
        return writer.text
    }

    private static func write(_ node: Node, to writer: inout JSONWriter) {
        switch node {
        case .scalar(let scalar)
        where scalar.style == .plain && ["true", "false"].contains(scalar.string):
            writer.value(scalar.string == "true")
        case .scalar(let scalar): writer.value(scalar.string)
        case .sequence(let sequence): writer.array { for item in sequence { write(item, to: &$0) } }
        case .mapping(let mapping):
            writer.object {
                for (key, value) in mapping {
                    $0.name(key.string ?? "")
                    write(value, to: &$0)
                }
            }
        case .alias: writer.literal("null")
        }
    }
}
