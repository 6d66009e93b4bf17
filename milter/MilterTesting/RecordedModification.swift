// Modifications as values, and a readable difference between two lists of them.

import Milter

/// One modification that a filter requested at the end of a message.
package enum RecordedModification: Sendable, Hashable {
    /// `value` nil: the field is deleted. Values are everything after the colon, with folds
    /// as CRLF and white space.
    case changeHeader(name: String, index: Int, value: [UInt8]?)
    case insertHeader(index: Int, name: String, value: [UInt8])
    case addHeader(name: String, value: [UInt8])
    case changeFrom(path: String, arguments: String?)
    case addRecipient(path: String, arguments: String?)
    case deleteRecipient(path: String)
    /// The whole new body, in any number of chunks.
    case replaceBody([UInt8])
}

/// Shorter forms of expected modifications for tests; values as text.
extension RecordedModification {
    package static func change(
        _ name: String, _ index: Int = 1, _ value: String
    ) -> RecordedModification {
        .changeHeader(name: name, index: index, value: Array(value.utf8))
    }

    package static func delete(_ name: String, _ index: Int = 1) -> RecordedModification {
        .changeHeader(name: name, index: index, value: nil)
    }

    package static func insert(
        _ index: Int, _ name: String, _ value: String
    ) -> RecordedModification {
        .insertHeader(index: index, name: name, value: Array(value.utf8))
    }

    package static func add(_ name: String, _ value: String) -> RecordedModification {
        .addHeader(name: name, value: Array(value.utf8))
    }

    package static func from(_ path: String, _ arguments: String? = nil) -> RecordedModification {
        .changeFrom(path: path, arguments: arguments)
    }

    package static func addRecipient(_ path: String) -> RecordedModification {
        .addRecipient(path: path, arguments: nil)
    }
}

extension RecordedModification: CustomStringConvertible {
    package var description: String {
        switch self {
        case .changeHeader(let name, let index, let value?):
            "change \(name) \(index):\(Self.text(value))"
        case .changeHeader(let name, let index, nil): "delete \(name) \(index)"
        case .insertHeader(let index, let name, let value):
            "insert at \(index) \(name):\(Self.text(value))"
        case .addHeader(let name, let value): "add \(name):\(Self.text(value))"
        case .changeFrom(let path, let arguments):
            "from \(path)" + (arguments.map { " \($0)" } ?? "")
        case .addRecipient(let path, let arguments):
            "add recipient \(path)" + (arguments.map { " \($0)" } ?? "")
        case .deleteRecipient(let path): "delete recipient \(path)"
        case .replaceBody(let body): "body (\(body.count) octets) \(Self.text(body))"
        }
    }

    /// One line: CR, LF, NUL and TAB as escapes.
    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar {
            case "\r": text += "\\r"
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\0": text += "\\0"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    /// The difference, in order: lines with `-` are missing from `actual`, lines with `+` are
    /// extra. Nil if the lists are equal.
    package static func difference(
        expected: [RecordedModification], actual: [RecordedModification]
    ) -> String? {
        if expected == actual { return nil }
        // The longest common subsequence, by the standard algorithm; lists are short.
        var lengths = [[Int]](
            repeating: [Int](repeating: 0, count: actual.count + 1), count: expected.count + 1)
        for row in expected.indices.reversed() {
            for column in actual.indices.reversed() {
                lengths[row][column] =
                    expected[row] == actual[column]
                    ? lengths[row + 1][column + 1] + 1
                    : max(lengths[row + 1][column], lengths[row][column + 1])
            }
        }
        var lines = [String]()
        var (row, column) = (0, 0)
        while row < expected.count || column < actual.count {
            if row < expected.count, column < actual.count, expected[row] == actual[column] {
                lines.append("  \(expected[row])")
                (row, column) = (row + 1, column + 1)
            } else if column == actual.count
                || (row < expected.count && lengths[row + 1][column] >= lengths[row][column + 1])
            {
                lines.append("- \(expected[row])")
                row += 1
            } else {
                lines.append("+ \(actual[column])")
                column += 1
            }
        }
        return lines.joined(separator: "\n")
    }
}
