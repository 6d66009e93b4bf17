// YAML text → nodes, within limits. Yams parses; what it lets through and policies do not need is refused here:
// anchors and aliases (they can multiply a small file), tags, deep nesting, very large files.

import Yams

/// Limits on a policy's YAML files. Beyond each the file is refused, with the limit in the message.
package enum PolicyFileLimits {
    /// Bytes of one YAML file.
    package static let maximumBytes = 262_144
    /// Depth of nodes; the format needs six.
    package static let maximumNesting = 16
    /// Nodes of one file.
    package static let maximumNodes = 50_000
    /// Rules of one policy: what a person can still review, and what fits into one word of the evaluator.
    package static let maximumRules = 100
    /// Signals of one policy: the size of an input.
    package static let maximumSignals = 200
    /// Challenges of one policy: one bit each in a byte.
    package static let maximumChallenges = 8
    /// Guarantees of one policy: each is evaluated with every decision.
    package static let maximumGuarantees = 32
    /// Constants of one policy.
    package static let maximumConstants = 200
    /// Entries of one list.
    package static let maximumListEntries = 100_000
    /// Elements of a signal that is a list.
    package static let maximumListElements = 64
    /// UTF-8 bytes of a string signal, unless its declaration says less.
    package static let maximumStringBytes = 1_024
}

/// A YAML file that was parsed.
struct YAMLFile {
    let source: SourceFile
    let root: Node

    /// Parses one document.
    init(name: String, text: String) throws(PolicyRefusal) {
        source = SourceFile(name: name, text: text)
        let source = source
        func refuse(_ message: String, line: Int = 1, column: Int = 1) -> PolicyRefusal {
            let position = SourcePosition(line: max(1, line), column: max(1, column))
            return PolicyRefusal(diagnostics: [source.diagnostic(at: position, message)])
        }
        guard text.utf8.count <= PolicyFileLimits.maximumBytes else {
            throw refuse("the file is larger than \(PolicyFileLimits.maximumBytes) bytes")
        }
        if let alias = AliasScan.firstAlias(in: source.lines) {
            throw refuse(Self.aliasMessage, line: alias.line, column: alias.column)
        }
        let node: Node?
        do {
            // The encoding is named because Yams would look for it in the environment.
            node = try Yams.Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
        } catch let error as YamlError {
            switch error {
            case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
                .composer(_, let problem, let mark, _):
                throw refuse("not YAML: \(problem)", line: mark.line, column: mark.column)
            case .reader(let problem, _, _, _):
                throw refuse("not YAML: \(problem)")
            case .duplicatedKeysInMapping(let duplicates, let context):
                let names = duplicates.map { "'\($0)'" }.joined(separator: ", ")
                throw refuse("duplicate key \(names)", line: context.mark.line, column: context.mark.column)
            default:
                throw refuse("not YAML")
            }
        } catch {
            throw refuse("not YAML")
        }
        guard let node else { throw refuse("the file is empty") }
        root = node
        var left = PolicyFileLimits.maximumNodes
        if let fault = Self.firstFault(node, depth: 1, &left) {
            throw refuse(fault.message, line: fault.mark?.line ?? 1, column: fault.mark?.column ?? 1)
        }
    }

    private static let aliasMessage = "anchors and aliases are not part of the format; write it out"

    private static func firstFault(_ node: Node, depth: Int, _ left: inout Int) -> (message: String, mark: Mark?)? {
        left -= 1
        if left < 0 { return ("the file has more than \(PolicyFileLimits.maximumNodes) nodes", node.mark) }
        if depth > PolicyFileLimits.maximumNesting {
            return ("nested more than \(PolicyFileLimits.maximumNesting) deep", node.mark)
        }
        if node.anchor != nil { return (aliasMessage, node.mark) }
        switch node {
        case .scalar: return nil
        case .alias: return (aliasMessage, node.mark)
        case .sequence(let sequence):
            for child in sequence {
                if let fault = firstFault(child, depth: depth + 1, &left) { return fault }
            }
        case .mapping(let mapping):
            for (key, value) in mapping {
                guard case .scalar = key else { return ("a key must be plain text", key.mark) }
                if let fault = firstFault(key, depth: depth + 1, &left) { return fault }
                if let fault = firstFault(value, depth: depth + 1, &left) { return fault }
            }
        }
        return nil
    }

    func position(of node: Node) -> SourcePosition {
        SourcePosition(line: max(1, node.mark?.line ?? 1), column: max(1, node.mark?.column ?? 1))
    }
}

/// Finds `&name` and `*name` before Yams resolves them: a key that is an alias of aliases would be hashed at
/// exponential cost. Errs towards letting text through; what is left is found among the nodes.
enum AliasScan {
    static func firstAlias(in lines: [[UnicodeScalar]]) -> (line: Int, column: Int)? {
        var quote: UnicodeScalar?
        var blockIndent: Int?
        // The last character of the text before that counts: decides whether a node can begin here.
        var last: UnicodeScalar = "\n"
        for (number, line) in lines.enumerated() {
            let indent = line.prefix { $0 == " " }.count
            if indent == line.count { continue }
            if let block = blockIndent {
                if indent > block { continue }
                blockIndent = nil
            }
            if quote == nil, !"[{,:-?".unicodeScalars.contains(last) { last = "\n" }
            var index = indent
            while index < line.count {
                let scalar = line[index]
                defer { index += 1 }
                if let open = quote {
                    if scalar == "\\", open == "\"" { index += 1 } else if scalar == open { quote = nil }
                    continue
                }
                if scalar == " " || scalar == "\t" { continue }
                if scalar == "#", index == 0 || line[index - 1] == " " { break }
                let isStart =
                    switch last {
                    case "\n", "[", "{", ",": true
                    case ":", "-", "?": index == indent || line[index - 1] == " "
                    default: false
                    }
                let next = index + 1 < line.count ? line[index + 1] : " "
                if isStart {
                    if scalar == "'" || scalar == "\"" { quote = scalar }
                    if scalar == "|" || scalar == ">", last != "[", last != "{" {
                        blockIndent = indent
                        break
                    }
                    if scalar == "*" || scalar == "&", next.properties.isAlphabetic || next.properties.numericType != nil {
                        return (number + 1, index + 1)
                    }
                }
                last = scalar
            }
        }
        return nil
    }
}
