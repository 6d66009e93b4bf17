// The static types of expressions.

/// A type as the checker knows it.
package indirect enum CELType: Sendable, Equatable {
    case bool, int, uint, double, string, bytes, null, timestamp, duration
    /// An IP address, and a range of them.
    case ip, cidr
    /// The type of types.
    case type
    /// Known only at evaluation; compatible with every type.
    case dyn
    case list(CELType)
    case map(CELType, CELType)

    /// As written in policies and messages.
    package var text: String {
        switch self {
        case .bool: "bool"
        case .int: "int"
        case .uint: "uint"
        case .double: "double"
        case .string: "string"
        case .bytes: "bytes"
        case .null: "null"
        case .timestamp: "timestamp"
        case .duration: "duration"
        case .ip: "net.IP"
        case .cidr: "net.CIDR"
        case .type: "type"
        case .dyn: "dyn"
        case .list(let element): "list(\(element.text))"
        case .map(let key, let value): "map(\(key.text), \(value.text))"
        }
    }

    /// Parses a type's name: `int`, `list(string)`, `map(string, dyn)`, also in CEL's long forms.
    /// Nil for an unknown name, or more than 8 levels deep.
    package init?(text: String) {
        self.init(text[...], depth: 0)
    }

    private init?(_ text: Substring, depth: Int) {
        guard depth < 8 else { return nil }
        let trimmed = text.drop { $0 == " " }
        switch trimmed {
        case "bool": self = .bool
        case "int": self = .int
        case "uint": self = .uint
        case "double": self = .double
        case "string": self = .string
        case "bytes": self = .bytes
        case "null", "null_type": self = .null
        case "timestamp", "google.protobuf.Timestamp": self = .timestamp
        case "duration", "google.protobuf.Duration": self = .duration
        case "type": self = .type
        case "dyn": self = .dyn
        case "list": self = .list(.dyn)
        case "map": self = .map(.dyn, .dyn)
        default:
            guard let open = trimmed.firstIndex(of: "("), trimmed.last == ")" else { return nil }
            let inside = trimmed[
                trimmed.index(after: open)..<trimmed.index(before: trimmed.endIndex)]
            switch trimmed[..<open] {
            case "list":
                guard let element = CELType(inside, depth: depth + 1) else { return nil }
                self = .list(element)
            case "map":
                guard let comma = inside.firstIndex(of: ","),
                    let key = CELType(inside[..<comma], depth: depth + 1),
                    let value = CELType(inside[inside.index(after: comma)...], depth: depth + 1)
                else { return nil }
                self = .map(key, value)
            case "type":
                self = .type
            default:
                return nil
            }
        }
    }

    /// Whether a value of one type may be used for the other type.
    func goesWith(_ other: CELType) -> Bool {
        switch (self, other) {
        case (.dyn, _), (_, .dyn): true
        case (.list(let left), .list(let right)): left.goesWith(right)
        case (.map(let leftKey, let leftValue), .map(let rightKey, let rightValue)):
            leftKey.goesWith(rightKey) && leftValue.goesWith(rightValue)
        default: self == other
        }
    }

    /// The type of an element that may be of either type.
    func joined(with other: CELType) -> CELType {
        self == other ? self : .dyn
    }

    /// Whether it is int, uint or double.
    package var isNumber: Bool { self == .int || self == .uint || self == .double }
}
