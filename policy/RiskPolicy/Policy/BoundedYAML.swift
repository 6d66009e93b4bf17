// YAML text → nodes, at a cost that the text's size limits: the only use of Yams, for policies and
// for postern.yaml.
//
// Yams resolves aliases while it reads, and hashes the keys of mappings. A key made of aliases of
// aliases takes exponential time, and one made of nested keys quadratic time. Finding `&name` and
// `*name` in the text would need the exact rules of Yams' scanner. Instead, private characters
// replace the characters that begin an anchor, an alias or an explicit key before Yams reads the
// text. The resulting texts get the original characters again. A plain text that begins with such a
// character was meant as an anchor, alias or explicit key.

import Yams

/// A text that is refused as YAML; line and column count from 1, columns in Unicode scalars.
package struct YAMLFault: Error, Sendable {
    /// One line, in plain words.
    package let message: String
    package let line: Int
    package let column: Int

    init(_ message: String, line: Int = 1, column: Int = 1) {
        self.message = message
        self.line = max(1, line)
        self.column = max(1, column)
    }

    init(_ message: String, _ mark: Mark?) {
        self.init(message, line: mark?.line ?? 1, column: mark?.column ?? 1)
    }
}

package enum BoundedYAML {
    /// UTF-8 octets of a text: far above what a person writes. Longer texts are refused.
    package static let maximumOctets = 262_144
    /// Depth of nodes; policies need six, postern.yaml four. Deeper texts are refused. It also
    /// limits the open brackets on one line, and so the depth of a mapping within a key, which Yams
    /// hashes once for each level.
    package static let maximumNesting = 16
    /// Nodes of a text. More are refused.
    package static let maximumNodes = 50_000

    private static var tooDeep: String { "nested more than \(maximumNesting) deep" }

    /// The root of a text's only document; nil if there is none.
    package static func root(_ text: String) throws(YAMLFault) -> Node? {
        let text =
            text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        guard text.utf8.count <= maximumOctets else {
            throw YAMLFault("the file is larger than \(maximumOctets) bytes")
        }
        if let place = deepBracket(text) {
            throw YAMLFault(tooDeep, line: place.line, column: place.column)
        }
        guard let stand = StandIns(for: text) else {
            throw YAMLFault("the file uses every private character of Unicode")
        }
        let node: Node?
        do {
            // The encoding is given because Yams would otherwise read it from the environment.
            node = try Yams.Parser(yaml: stand.hiding(text), resolver: .basic, encoding: .utf8)
                .singleRoot()
        } catch let error as YamlError {
            if let place = aliasLike(text) {
                throw YAMLFault(StandIns.aliasMessage, line: place.line, column: place.column)
            }
            throw fault(error, stand)
        } catch {
            throw YAMLFault("not YAML")
        }
        guard let node else { return nil }
        var left = maximumNodes
        return try restored(node, stand, depth: 1, &left)
    }

    private static func fault(_ error: YamlError, _ stand: StandIns) -> YAMLFault {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            return YAMLFault("not YAML: \(problem)", mark)
        case .reader(let problem, _, _, _):
            return YAMLFault("not YAML: \(problem)")
        case .duplicatedKeysInMapping(let duplicates, let context):
            let names = duplicates.map { "'\(stand.restoring($0))'" }.joined(separator: ", ")
            return YAMLFault("duplicate key \(names)", context.mark)
        default:
            return YAMLFault("not YAML")
        }
    }

    /// The position in a line with too many open brackets, including those within quotes.
    private static func deepBracket(_ text: String) -> (line: Int, column: Int)? {
        var (depth, line, column) = (0, 1, 0)
        for scalar in text.unicodeScalars {
            column += 1
            switch scalar {
            case "\n", "\r": (depth, line, column) = (0, scalar == "\n" ? line + 1 : line, 0)
            case "[", "{":
                depth += 1
                if depth >= maximumNesting { return (line, column) }
            case "]", "}": depth = max(0, depth - 1)
            default: continue
            }
        }
        return nil
    }

    /// For the error message only: the first place that looks like an anchor or alias, in a text
    /// that is not YAML without it.
    private static func aliasLike(_ text: String) -> (line: Int, column: Int)? {
        var (line, column) = (1, 0)
        var before: UnicodeScalar = "\n"
        var isSign = false
        for scalar in text.unicodeScalars {
            if isSign,
                scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                    || scalar == "_" || scalar == "-"
            {
                return (line, column)
            }
            column += 1
            isSign = (scalar == "&" || scalar == "*") && "\n:-?[{,".unicodeScalars.contains(before)
            if scalar != " " { before = scalar }
            if scalar == "\n" { (line, column) = (line + 1, 0) }
        }
        return nil
    }

    /// The node as it was written, within the limits. Checked from the top down, so that
    /// the recursion is limited.
    private static func restored(
        _ node: Node, _ stand: StandIns, depth: Int, _ left: inout Int
    ) throws(YAMLFault) -> Node {
        left -= 1
        if left < 0 { throw YAMLFault("the file has more than \(maximumNodes) nodes", node.mark) }
        if depth > maximumNesting { throw YAMLFault(tooDeep, node.mark) }
        switch node {
        case .scalar(let scalar):
            if scalar.style == .plain, let fault = stand.fault(scalar.string) {
                throw YAMLFault(fault, scalar.mark)
            }
            return .scalar(
                .init(stand.restoring(scalar.string), scalar.tag, scalar.style, scalar.mark))
        case .sequence(let sequence):
            var nodes: [Node] = []
            for child in sequence {
                nodes.append(try restored(child, stand, depth: depth + 1, &left))
            }
            return .sequence(.init(nodes, sequence.tag, sequence.style, sequence.mark))
        case .mapping(let mapping):
            var pairs: [(Node, Node)] = []
            for (key, value) in mapping {
                guard case .scalar = key else {
                    throw YAMLFault("a key must be plain text", key.mark)
                }
                let key = try restored(key, stand, depth: depth + 1, &left)
                pairs.append((key, try restored(value, stand, depth: depth + 1, &left)))
            }
            return .mapping(.init(pairs, mapping.tag, mapping.style, mapping.mark))
        case .alias:
            throw YAMLFault(StandIns.aliasMessage, node.mark)
        }
    }
}

/// Private characters that replace `&`, `*` and `?` while Yams reads; each takes one
/// column, like the original.
private struct StandIns {
    static let aliasMessage = "anchors and aliases are not supported; write the value out"
    private static let hidden: [UnicodeScalar] = ["&", "*", "?"]

    private let standIns: [UnicodeScalar]

    /// Three characters that the text does not use; nil if it uses them all.
    init?(for text: String) {
        let used = Set(text.unicodeScalars.lazy.filter { (0xE000...0xF8FF).contains($0.value) })
        let free = (0xE000...0xF8FF).lazy.compactMap(UnicodeScalar.init).filter {
            !used.contains($0)
        }
        standIns = Array(free.prefix(Self.hidden.count))
        guard standIns.count == Self.hidden.count else { return nil }
    }

    func hiding(_ text: String) -> String { Self.replacing(Self.hidden, by: standIns, in: text) }

    func restoring(_ text: String) -> String { Self.replacing(standIns, by: Self.hidden, in: text) }

    /// The fault of a plain text that begins like an anchor, an alias or an explicit key.
    func fault(_ text: String) -> String? {
        guard let first = text.unicodeScalars.first, let index = standIns.firstIndex(of: first)
        else { return nil }
        if Self.hidden[index] != "?" { return Self.aliasMessage }
        let next = text.unicodeScalars.dropFirst().first
        return next == nil || next == " " || next == "\t" || next == "\n"
            ? "keys must be written without '?'" : nil
    }

    private static func replacing(
        _ old: [UnicodeScalar], by new: [UnicodeScalar], in text: String
    ) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            result.append(old.firstIndex(of: scalar).map { new[$0] } ?? scalar)
        }
        return String(result)
    }
}
