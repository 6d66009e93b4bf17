// Printing: tables for people, plain lines for pipes, JSON for programs.

import Foundation
import Glibc
import Support

/// Whether standard output is a terminal.
let isTerminal = isatty(STDOUT_FILENO) == 1

/// Flushes the output. Throws `CommandError` if not all of it could be written: it may contain a
/// secret that is not shown again.
/// - Parameter isWhole: whether a failure undoes the command, as for a secret. Otherwise the error
///   says that the change stays.
func finishOutput(isWhole: Bool = false) throws {
    // Swift 6 does not allow access to C's variable `stdout` by name.
    guard let variable = dlsym(nil, "stdout"),
        let output = variable.assumingMemoryBound(to: UnsafeMutablePointer<FILE>?.self).pointee
    else { return }
    errno = 0
    let isWritten = fflush(output) == 0 && ferror(output) == 0
    guard !isWritten else { return }
    let reason = errno == 0 ? "not everything could be written" : Failure.words(errno)
    throw CommandError(
        status: EX_IOERR,
        message:
            "standard output: \(reason)\(!isWhole && MadeChange.isBegun ? "; the command's changes stay in force" : "")"
    )
}

/// Bold on a terminal, unless NO_COLOR is set.
func emphasised(_ text: String) -> String {
    guard isTerminal, ProcessInfo.processInfo.environment["NO_COLOR"] == nil else { return text }
    return "\u{1B}[1m\(text)\u{1B}[0m"
}

/// The text in a form that is safe for a terminal and for one column of a pipe. Some values are
/// from teams and users: invisible characters, cursor controls and line ends become U+FFFD.
func shown(_ text: String) -> String {
    guard !text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), !PersonText.isPlain(text) else {
        return text
    }
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        scalars.append(PersonText.isPlain(String(scalar)) ? scalar : "\u{FFFD}")
    }
    return String(scalars)
}

/// `shown` for a text of several lines.
func shownLines(_ text: String) -> String {
    PersonText.lines(text).map(shown).joined(separator: "\n")
}

/// The text, padded with spaces to a width in characters.
private func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
}

/// Rows of text.
struct Table {
    let header: [String]
    /// Each with as many texts as the header.
    let rows: [[String]]

    /// Prints a list as the command's whole output. On a terminal it has aligned columns and a
    /// header. In a pipe, for `cut` and similar programs, it has one row per line, columns
    /// separated by tabs, and no header.
    func print() {
        var above: [Int] = []
        for line in lines(below: &above) { Swift.print(line) }
    }

    /// Prints a table in a report, between other tables or sentences. The output in a pipe is the
    /// same as on a terminal.
    func printInReport() {
        var above: [Int] = []
        for line in lines(below: &above, isAligned: true) { Swift.print(line) }
    }

    /// The table as lines, which may continue another table.
    /// - Parameter above: the widths of the columns before and after these rows; empty at
    ///   the beginning of a table.
    func lines(below above: inout [Int], isAligned: Bool = isTerminal) -> [String] {
        let rows = rows.map { $0.map(shown) }
        guard isAligned else { return rows.map { $0.joined(separator: "\t") } }
        guard !rows.isEmpty else { return [] }
        let isFirst = above.isEmpty
        let widths = zip(header.indices, isFirst ? header.map(\.count) : above).map {
            column, width in
            max(width, rows.map { $0[column].count }.max() ?? 0)
        }
        func line(_ row: [String]) -> String {
            row.enumerated().map { column, text in
                column == row.count - 1 ? text : padded(text, widths[column])
            }.joined(separator: "  ")
        }
        above = widths
        return (isFirst ? [emphasised(line(header))] : []) + rows.map(line)
    }
}

/// The properties of one object: `name: value`, aligned on a terminal,
/// separated by a tab in a pipe.
struct Properties {
    /// Names and values.
    let lines: [(String, String)]

    /// Prints one line for each property.
    func print() {
        let width = (lines.map(\.0.count).max() ?? 0) + 2
        for (name, value) in lines {
            let label = isTerminal ? padded(name + ":", width) : name + "\t"
            Swift.print(label + shown(value))
        }
    }
}

extension OutputOptions {
    /// Prints rows as a table with a header, or as JSON.
    func print<Row: Encodable>(_ rows: [Row], _ header: [String], columns: (Row) -> [String]) throws
    {
        if json { return try printJSON(rows) }
        Table(header: header, rows: rows.map(columns)).print()
    }

    /// As above, for values whose JSON members differ from the columns.
    func print<Value, View: Encodable>(
        _ values: [Value], _ header: [String], json view: (Value) -> View,
        columns: (Value) -> [String]
    ) throws {
        if json { return try printJSON(values.map(view)) }
        Table(header: header, rows: values.map(columns)).print()
    }

    /// Prints one object as its properties, or as JSON.
    func print(_ value: some Encodable, properties: () -> [(String, String)]) throws {
        if json { return try printJSON(value) }
        Properties(lines: properties()).print()
    }
}

/// A JSON object by its members, in snake_case; those without a value are left out.
struct Members: Encodable, ExpressibleByDictionaryLiteral {
    /// The value, or null: the member is present even without a value.
    static func orNull(_ value: (any Encodable)?) -> any Encodable { value ?? BatchID.null }

    private let members: [(name: String, value: (any Encodable)?)]

    init(dictionaryLiteral elements: (String, (any Encodable)?)...) {
        members = elements.map { ($0.0, $0.1) }
    }

    private init(_ members: [(name: String, value: (any Encodable)?)]) { self.members = members }

    /// The members of both objects.
    func merging(_ others: Members) -> Members { Members(members + others.members) }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        for (name, value) in members {
            if let value { try container.encode(value, forKey: Name(stringValue: name)) }
        }
    }
}

/// A view with additional members that only one command shows.
struct ExtendedView: Encodable {
    private let view: any Encodable
    private let members: Members

    /// - Parameters:
    ///   - view: encodes as an object, with other members.
    init(_ view: some Encodable, _ members: Members) {
        self.view = view
        self.members = members
    }

    func encode(to encoder: any Encoder) throws {
        try view.encode(to: encoder)
        try members.encode(to: encoder)
    }
}

/// Prints a value as JSON with sorted keys in snake_case.
func printJSON(_ value: some Encodable) throws {
    print(String(decoding: try jsonOctets(value), as: UTF8.self))
}

/// A value in the JSON form of `printJSON`.
func jsonOctets(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return try encoder.encode(value)
}

/// A time as ISO 8601 in UTC: `2026-11-21T07:02:28Z`.
func timestamp(_ seconds: Int64) -> String { UTCTime.text(seconds) }
