// postern.yaml as text: keys with their lines. Only the existence of each key is checked here.

import Foundation
import RiskPolicy
import Support
import Yams

/// The keys that a file sets.
package struct ConfigurationFile {
    /// Value and line (from 1).
    let entries: [ConfigurationKey: (value: RawValue, line: Int)]

    /// Reads a file. Throws `ConfigurationError` if it is missing, not YAML, or has an unknown or
    /// duplicate key.
    init(path: String) throws {
        let text: String
        var status = stat()
        // Reading a pipe or a device might never end.
        if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            throw ConfigurationError(.syntax, at: path, "the configuration is not a regular file")
        }
        do {
            text = try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            // If the folder cannot be searched, it is unknown whether the file exists.
            let code = access(path, R_OK) == 0 ? 0 : errno
            throw ConfigurationError(
                code == ENOENT ? .missing : code == EACCES ? .notPermitted : .inputOutput, at: path,
                code != ENOENT
                    ? "the configuration cannot be read: \(code == 0 ? "it is not UTF-8" : String(cString: strerror(code)))"
                    : "there is no configuration file: name it with --config or POSTERN_CONFIG, or create one with postern init"
            )
        }
        try self.init(text: text, name: path)
    }

    /// Reads the text of a file; `name` is used in errors.
    package init(text: String, name: String) throws {
        let root: Node?
        do throws(YAMLFault) {
            root = try BoundedYAML.root(text)
        } catch {
            throw ConfigurationError(.syntax, at: "\(name):\(error.line)", error.message)
        }
        guard let root, !root.isNull else {
            entries = [:]
            return
        }
        guard case .mapping(let mapping) = root else {
            throw ConfigurationError(
                .syntax, at: name, "the file is not a mapping of keys to values")
        }
        var reader = Reader(name: name)
        try reader.read(mapping, prefix: "")
        entries = reader.entries
    }

    /// Walks the mapping down to the existing keys.
    private struct Reader {
        let name: String
        var entries: [ConfigurationKey: (value: RawValue, line: Int)] = [:]

        mutating func read(_ mapping: Node.Mapping, prefix: String) throws {
            for (keyNode, valueNode) in mapping {
                let line = keyNode.mark?.line ?? 0
                guard let key = keyNode.string, !key.isEmpty else {
                    throw ConfigurationError(.syntax, at: "\(name):\(line)", "a key is not text")
                }
                let path = prefix + key
                if let key = ConfigurationKey(rawValue: path) {
                    if let first = entries[key] {
                        throw ConfigurationError(
                            .syntax, at: "\(name):\(line)",
                            "\(path) is set already, in line \(first.line)")
                    }
                    entries[key] = (try value(valueNode, line), line)
                } else if ConfigurationKey.allCases.contains(where: {
                    $0.rawValue.hasPrefix(path + ".")
                }) {
                    if valueNode.isNull { continue }  // every key of the section is commented out
                    guard case .mapping(let inner) = valueNode else {
                        throw ConfigurationError(
                            .syntax, at: "\(name):\(line)", "\(path) contains further keys")
                    }
                    try read(inner, prefix: path + ".")
                } else {
                    throw ConfigurationError(.unknownKey, at: "\(name):\(line)", Self.unknown(path))
                }
            }
        }

        static func unknown(_ path: String) -> String { unknownKeyMessage(path) }

        private func value(_ node: Node, _ line: Int) throws -> RawValue {
            switch node {
            case .scalar(let scalar):
                return node.isNull ? .null : .scalar(scalar.string)
            case .sequence(let sequence):
                return .list(try sequence.map { try text($0, line) })
            case .mapping(let mapping):
                let isNested = mapping.contains { pair in
                    if case .mapping = pair.value { true } else { false }
                }
                if isNested {
                    var result: [String: [String: String]] = [:]
                    for (key, inner) in mapping {
                        guard case .mapping(let settings) = inner else {
                            throw ConfigurationError(
                                .syntax, at: "\(name):\(key.mark?.line ?? line)",
                                "must be a mapping of settings")
                        }
                        result[try text(key, line)] = try table(settings, line)
                    }
                    return .nested(result)
                }
                return .table(try table(mapping, line))
            case .alias:
                throw ConfigurationError(
                    .syntax, at: "\(name):\(line)", "YAML aliases are not supported here")
            }
        }

        private func table(_ mapping: Node.Mapping, _ line: Int) throws -> [String: String] {
            var result: [String: String] = [:]
            for (key, value) in mapping {
                // A list in braces is read as texts separated by commas.
                if case .sequence(let items) = value {
                    result[try text(key, line)] = try items.map { try text($0, line) }.joined(
                        separator: ",")
                } else {
                    result[try text(key, line)] = try text(value, line)
                }
            }
            return result
        }

        private func text(_ node: Node, _ line: Int) throws -> String {
            guard case .scalar(let scalar) = node else {
                throw ConfigurationError(
                    .syntax, at: "\(name):\(node.mark?.line ?? line)", "must be a single value")
            }
            return scalar.string
        }
    }
}

/// The message for a key that does not exist.
func unknownKeyMessage(_ path: String) -> String {
    let paths = ConfigurationKey.allCases.map(\.rawValue)
    let nearest = NearestName.find(path, among: paths) ?? paths.first { $0.hasSuffix("." + path) }
    return "unknown key \(PersonText.cleaned(path).text)"
        + (nearest.map { ": did you mean \($0)?" } ?? ": postern config show lists all keys")
}

extension Node {
    /// Whether this is YAML's null: nothing, `~` or `null` without quotes.
    fileprivate var isNull: Bool {
        guard case .scalar(let scalar) = self, scalar.style == .plain || scalar.style == .any else {
            return false
        }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }
}
