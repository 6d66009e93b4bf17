// A policy's YAML files: their limits, and a file with its text for messages.

import Yams

/// Limits on the content of a policy's YAML files; `BoundedYAML` has the limits of the text. A file
/// beyond a limit is refused, with the limit in the message.
package enum PolicyFileLimits {
    /// Rules of one policy: as many as a person can review and one word of the evaluator can hold.
    package static let maximumRules = 100
    /// Octets of a rule's description, which is shown as one sentence.
    package static let maximumDescriptionBytes = 400
    /// Signals of one policy: the size of an input.
    package static let maximumSignals = 200
    /// Live lists of one policy.
    package static let maximumLiveLists = 50
    /// Counters of one policy: each is read, and most are written, for every decision.
    package static let maximumCounters = 16
    /// Challenges of one policy: one bit each in one byte.
    package static let maximumChallenges = 8
    /// Guarantees of one policy: each is evaluated for every decision.
    package static let maximumGuarantees = 32
    /// Constants of one policy.
    package static let maximumConstants = 200
    /// Entries of one list.
    package static let maximumListEntries = 100_000
    /// Elements of a signal that is a list.
    package static let maximumListElements = 64
    /// UTF-8 bytes of a string signal, unless its declaration has a lower limit.
    package static let maximumStringBytes = 1_024
}

/// A parsed YAML file.
package struct YAMLFile {
    let source: SourceFile
    /// The root of its only document.
    package let root: Node

    /// Parses one document.
    /// - Parameter name: the file's name in messages.
    package init(name: String, text: String) throws(PolicyRefusal) {
        let source = SourceFile(name: name, text: text)
        self.source = source
        do throws(YAMLFault) {
            guard let root = try BoundedYAML.root(text) else {
                throw YAMLFault("the file is empty")
            }
            self.root = root
        } catch {
            let position = SourcePosition(line: error.line, column: error.column)
            throw PolicyRefusal(diagnostics: [source.diagnostic(at: position, error.message)])
        }
    }

    /// The file's name in messages.
    package var name: String { source.name }

    /// The position where a node begins.
    package func position(of node: Node) -> SourcePosition {
        SourcePosition(line: max(1, node.mark?.line ?? 1), column: max(1, node.mark?.column ?? 1))
    }

    /// A fault at a position of the file, with its line.
    package func diagnostic(at position: SourcePosition, _ message: String) -> PolicyDiagnostic {
        source.diagnostic(at: position, message)
    }
}
