// Faults in a policy's files, for its author: file, line, column, and a caret under the place.

import CEL

/// A place in a file; both count from 1, columns in Unicode scalars.
package struct SourcePosition: Sendable, Equatable, Comparable {
    /// From 1.
    package let line: Int
    /// From 1, in Unicode scalars.
    package let column: Int

    /// - Parameters: both from 1.
    package init(line: Int, column: Int) { (self.line, self.column) = (line, column) }

    /// By line, then column.
    package static func < (left: SourcePosition, right: SourcePosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

/// One fault in a policy's files.
package struct PolicyDiagnostic: Sendable, Equatable {
    /// The name that the loader got for the file.
    package let file: String
    /// The caret's position.
    package let position: SourcePosition
    /// One line.
    package let message: String
    /// The line with the fault, cut around the place if long, with the caret's line below; empty if
    /// there is none.
    package let excerpt: String

    /// - Parameter excerpt: includes the caret's line; empty for none.
    package init(file: String, position: SourcePosition, message: String, excerpt: String) {
        (self.file, self.position, self.message, self.excerpt) = (file, position, message, excerpt)
    }

    /// `file:line:column: error: message`, then the excerpt.
    package var text: String {
        let head = "\(file):\(position.line):\(position.column): error: \(message)"
        return excerpt.isEmpty ? head : head + "\n" + excerpt
    }
}

/// The refusal of a candidate: at least one diagnostic, in the order of the files.
package struct PolicyRefusal: Error, Sendable, CustomStringConvertible {
    /// At least one.
    package let diagnostics: [PolicyDiagnostic]

    /// - Parameter diagnostics: at least one.
    package init(diagnostics: [PolicyDiagnostic]) { self.diagnostics = diagnostics }

    /// All diagnostics, one after the other.
    package var description: String { diagnostics.map(\.text).joined(separator: "\n") }
}

/// A file's text as lines, for excerpts.
struct SourceFile {
    let name: String
    let text: String
    let lines: [[UnicodeScalar]]

    init(name: String, text: String) {
        self.name = name
        self.text = text
        lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map {
            line in
            Array(line.last == "\r" ? line.dropLast() : line)
        }
    }

    /// Maximum length of a line in an excerpt.
    static let excerptWidth = 140

    func diagnostic(at position: SourcePosition, _ message: String) -> PolicyDiagnostic {
        PolicyDiagnostic(
            file: name, position: position, message: message, excerpt: excerpt(at: position))
    }

    private func excerpt(at position: SourcePosition) -> String {
        guard lines.indices.contains(position.line - 1) else { return "" }
        let line = lines[position.line - 1]
        let column = min(max(position.column - 1, 0), line.count)
        let start =
            line.count <= Self.excerptWidth
            ? 0 : max(0, min(column - Self.excerptWidth / 2, line.count - Self.excerptWidth))
        let shown = line[start..<min(line.count, start + Self.excerptWidth)]
        var text = String.UnicodeScalarView()
        // Control characters would move the caret or affect the reader's terminal.
        for scalar in shown {
            text.append(scalar.value < 0x20 || scalar.value == 0x7F ? " " : scalar)
        }
        let number = String(position.line)
        let blank = String(repeating: " ", count: number.count)
        return
            " \(number) | \(String(text))\n \(blank) | \(String(repeating: " ", count: column - start))^"
    }
}

/// Collects the faults of one load.
package final class DiagnosticCollector {
    /// More than these are not useful; the rest is dropped.
    static let maximum = 20
    private(set) var diagnostics: [PolicyDiagnostic] = []

    package init() {}

    /// Adds a fault, unless it was added before.
    package func add(_ diagnostic: PolicyDiagnostic) {
        if diagnostics.count < Self.maximum, !diagnostics.contains(diagnostic) {
            diagnostics.append(diagnostic)
        }
    }

    /// Throws the collected faults, if any.
    package func throwIfAny() throws(PolicyRefusal) {
        if !diagnostics.isEmpty { throw PolicyRefusal(diagnostics: diagnostics) }
    }
}

extension ExpressionFault {
    /// The fault shown under the expression, for an expression on a command line.
    package func text(in expression: String) -> String {
        let source = SourceFile(name: "expression", text: expression)
        var line = 1
        var column = 1
        var seen = 0
        for scalar in expression.unicodeScalars {
            if seen >= span.lowerBound { break }
            seen += UTF8.width(scalar)
            column += 1
            if scalar == "\n" { (line, column) = (line + 1, 1) }
        }
        return source.diagnostic(at: SourcePosition(line: line, column: column), message).text
    }
}
