// Reads a seed from YAML. Errors name their line and path.

import RiskPolicy
import Support
import Yams

/// A seed that is not accepted.
package struct AppleSeedFault: Error, Sendable, CustomStringConvertible {
    package let file: String
    /// From 1.
    package let line: Int
    package let message: String
    package var description: String { "\(file):\(line): \(message)" }
}

extension AppleSeed {
    /// The most teams, clients, keys of a team, redirect URIs of a client, and users: a page
    /// can still show them all.
    package static let maximumCount = 100
    /// The most octets of an id or a name.
    static let maximumLength = 255

    /// The seed embedded in the program.
    package static func standard() throws -> AppleSeed {
        try read(Embedded.seed_yaml, name: "seed.yaml")
    }

    /// The text of the embedded seed: a template for custom seeds.
    package static var standardText: String { Embedded.seed_yaml }

    /// Reads a seed. Keys without a public or private part are generated, which uses the process's
    /// random generator. Throws `AppleSeedFault`.
    /// - Parameter name: the name of the file, for errors.
    package static func read(_ text: String, name: String) throws -> AppleSeed {
        var document = SeedDocument()
        let root: Node?
        do { root = try BoundedYAML.root(text) } catch {
            throw AppleSeedFault(file: name, line: error.line, message: error.message)
        }
        guard let root else { throw document.fault(name, "", "the seed is empty") }
        document.root = document.value(root, at: "")
        do {
            return try SeedFile.Checker().seed(
                try StrictDecoder.decode(SeedFile.self, from: document.root))
        } catch let error as JSONShapeError {
            throw document.fault(name, error.pointer, error.message)
        } catch let error as SeedShape {
            throw document.fault(name, error.pointer, error.message)
        }
    }
}

/// A YAML document as a JSON value, with the line of each pointer.
private struct SeedDocument {
    var root = JSONValue.null
    var lines: [String: Int] = [:]

    mutating func value(_ node: Node, at pointer: String) -> JSONValue {
        lines[pointer] = node.mark?.line
        switch node {
        case .scalar(let scalar):
            guard scalar.style == .plain || scalar.style == .any else {
                return .string(scalar.string)
            }
            switch scalar.string {
            case "", "~", "null": return .null
            case "true": return .bool(true)
            case "false": return .bool(false)
            default:
                // An id of digits with leading zeros, which Apple sometimes uses, is text.
                if let number = Int64(scalar.string), "\(number)" == scalar.string {
                    return .integer(number)
                }
                return .string(scalar.string)
            }
        case .sequence(let items):
            return .array(
                items.enumerated().map { value($0.element, at: "\(pointer)/\($0.offset)") })
        case .mapping(let mapping):
            var object: JSONObject = [:]
            for (key, inner) in mapping {
                let name = key.string ?? ""
                object[name] = value(inner, at: "\(pointer)/\(StrictDecoder.escaped(name))")
            }
            return .object(object)
        case .alias: return .null
        }
    }

    /// The line of a pointer, or of its nearest parent.
    func fault(_ file: String, _ pointer: String, _ message: String) -> AppleSeedFault {
        var place = pointer[...]
        while lines[String(place)] == nil, let slash = place.lastIndex(of: "/") {
            place = place[..<slash]
        }
        let path = pointer.dropFirst().replacing("/", with: ".")
        return AppleSeedFault(
            file: file, line: lines[String(place)] ?? 1,
            message: path.isEmpty ? message : "\(path): \(message)")
    }
}
