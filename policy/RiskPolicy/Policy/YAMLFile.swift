// A policy's YAML files: their limits, and a file with its text at hand for messages.

import Yams

/// Limits on what a policy's YAML files say; `BoundedYAML` has those of the text. Beyond each the file is refused, with the limit
/// in the message.
package enum PolicyFileLimits {
    /// Rules of one policy: what a person can still review, and what fits into one word of the evaluator.
    package static let maximumRules = 100
    /// Signals of one policy: the size of an input.
    package static let maximumSignals = 200
    /// Live lists of one policy.
    package static let maximumLiveLists = 50
    /// Counters of one policy: each is read, and most are written, with every decision.
    package static let maximumCounters = 16
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
package struct YAMLFile {
    let source: SourceFile
    /// The one document's.
    package let root: Node

    /// Parses one document.
    /// - Parameter name: as messages name the file.
    package init(name: String, text: String) throws(PolicyRefusal) {
        let source = SourceFile(name: name, text: text)
        self.source = source
        do throws(YAMLFault) {
            guard let root = try BoundedYAML.root(text) else { throw YAMLFault("the file is empty") }
            self.root = root
        } catch {
            let position = SourcePosition(line: error.line, column: error.column)
            throw PolicyRefusal(diagnostics: [source.diagnostic(at: position, error.message)])
        }
    }

    /// As messages name it.
    package var name: String { source.name }

    /// Where a node begins.
    package func position(of node: Node) -> SourcePosition {
        SourcePosition(line: max(1, node.mark?.line ?? 1), column: max(1, node.mark?.column ?? 1))
    }

    /// A fault at a place of the file, with the line under it.
    package func diagnostic(at position: SourcePosition, _ message: String) -> PolicyDiagnostic {
        source.diagnostic(at: position, message)
    }
}
