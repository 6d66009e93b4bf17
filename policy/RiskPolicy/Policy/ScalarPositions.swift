// Finds the position in the file of a character of a YAML scalar's value, so that a fault of an
// expression points at the right place. For plain, quoted, literal and folded scalars.

import Yams

extension YAMLFile {
    /// The position of the `offset`-th UTF-8 byte of a scalar's value; the scalar's own position if
    /// it cannot be determined.
    func position(in scalar: Node.Scalar, utf8Offset offset: Int) -> SourcePosition {
        let start = SourcePosition(
            line: max(1, scalar.mark?.line ?? 1), column: max(1, scalar.mark?.column ?? 1))
        var walker = ScalarWalker(
            lines: source.lines, line: start.line - 1, column: start.column - 1)
        guard walker.begin(style: scalar.style) else { return start }
        var seen = 0
        for value in scalar.string.unicodeScalars {
            guard let place = walker.next(value, style: scalar.style) else { return start }
            if seen >= offset { return place }
            seen += UTF8.width(value)
        }
        return walker.place
    }
}

private struct ScalarWalker {
    let lines: [[UnicodeScalar]]
    var line: Int
    var column: Int
    private var indent = 0
    /// Whether the previous character was a line break from a blank line.
    private var isAfterBreak = false

    init(lines: [[UnicodeScalar]], line: Int, column: Int) {
        self.lines = lines
        self.line = line
        self.column = column
    }

    var place: SourcePosition { SourcePosition(line: line + 1, column: column + 1) }

    /// Nil at the end of a line.
    private var current: UnicodeScalar? {
        lines.indices.contains(line) && column < lines[line].count ? lines[line][column] : nil
    }

    /// Moves to the first character of the content.
    mutating func begin(style: Node.Scalar.Style) -> Bool {
        switch style {
        case .singleQuoted, .doubleQuoted:
            column += 1
            return true
        case .literal, .folded:
            guard lines.indices.contains(line) else { return false }
            let header = lines[line][min(column, lines[line].count)...].prefix { $0 != " " }
            let explicit = header.first { ("1"..."9").contains($0) }
            line += 1
            var first = line
            while lines.indices.contains(first), lines[first].allSatisfy({ $0 == " " }) {
                first += 1
            }
            guard lines.indices.contains(first) else { return false }
            // An explicit indentation indicator counts from the parent; the
            // first line's indentation limits it.
            indent = lines[first].prefix { $0 == " " }.count
            if explicit != nil { indent = min(indent, lines[first].count) }
            column = min(indent, lines[line].count)
            return true
        default:
            return true
        }
    }

    private mutating func newLine(skippingBlanks: Bool) {
        line += 1
        column = 0
        guard lines.indices.contains(line) else { return }
        if skippingBlanks {
            while let scalar = current, scalar == " " || scalar == "\t" { column += 1 }
        } else {
            column = min(indent, lines[line].count)
        }
    }

    /// Moves past the line break of `value`. In folded text, one break is a space and two are a
    /// line break.
    private mutating func breakLine(_ value: UnicodeScalar, folds: Bool, skippingBlanks: Bool) {
        newLine(skippingBlanks: skippingBlanks)
        guard folds, value == "\n" else { return }
        if !isAfterBreak, isAtFold { newLine(skippingBlanks: skippingBlanks) }
        isAfterBreak = true
    }

    /// Consumes the source of one character of the value; nil if they do not agree.
    mutating func next(_ value: UnicodeScalar, style: Node.Scalar.Style) -> SourcePosition? {
        switch style {
        case .literal, .folded:
            let here = place
            if let scalar = current {
                guard scalar == value else { return nil }
                isAfterBreak = false
                column += 1
                return here
            }
            guard value == "\n" || value == " ", lines.indices.contains(line) else { return nil }
            breakLine(value, folds: style == .folded, skippingBlanks: false)
            return here
        default:
            return flowNext(value, style: style)
        }
    }

    /// Whether only blanks remain on this line.
    private var isAtFold: Bool {
        guard lines.indices.contains(line) else { return false }
        return lines[line][min(column, lines[line].count)...].allSatisfy { $0 == " " || $0 == "\t" }
    }

    private mutating func flowNext(
        _ value: UnicodeScalar, style: Node.Scalar.Style
    ) -> SourcePosition? {
        // An escaped line break joins lines without a character.
        while style == .doubleQuoted, current == "\\", column + 1 == lines[line].count {
            newLine(skippingBlanks: true)
        }
        let here = place
        if isAtFold {
            guard value == " " || value == "\n", lines.indices.contains(line + 1) else {
                return nil
            }
            breakLine(value, folds: true, skippingBlanks: true)
            return here
        }
        isAfterBreak = false
        guard let scalar = current else { return nil }
        if style == .singleQuoted, scalar == "'" {
            guard value == "'" else { return nil }
            column += 2
            return here
        }
        if style == .doubleQuoted, scalar == "\\" {
            let letter = column + 1 < lines[line].count ? lines[line][column + 1] : " "
            let digits: [UnicodeScalar: Int] = ["x": 2, "u": 4, "U": 8]
            column += 2 + (digits[letter] ?? 0)
            return here
        }
        guard scalar == value else { return nil }
        column += 1
        return here
    }
}
