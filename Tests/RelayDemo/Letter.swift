// Messages as people read them: some fields decoded for the eye, and the first lines of text.

import Foundation
import PostfixHarness

/// A message taken apart far enough to be shown.
struct Letter {
    let fields: [(name: String, value: String)]
    let body: String

    init(_ text: String) {
        let text = text.replacingOccurrences(of: "\r\n", with: "\n")
        let parts = text.range(of: "\n\n")
        let head = parts.map { String(text[..<$0.lowerBound]) } ?? text
        body = parts.map { String(text[$0.upperBound...]) } ?? ""
        var fields: [(String, String)] = []
        for line in head.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.first == " " || line.first == "\t", let last = fields.indices.last {
                fields[last].1 += " " + line.trimmingCharacters(in: .whitespaces)
            } else if let colon = line.firstIndex(of: ":") {
                fields.append((String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)))
            }
        }
        self.fields = fields
    }

    init(_ message: SinkMessage) { self.init(message.text) }

    func value(_ name: String) -> String? { fields.first { $0.name.lowercased() == name.lowercased() }?.value }

    /// The fields that a reader looks at, and how long the rest is.
    func shown(_ names: [String]) -> [String] {
        let chosen = fields.filter { field in names.contains { $0.lowercased() == field.name.lowercased() } }
        let rest = fields.count - chosen.count
        let lines = chosen.map { "\($0.name): \(Self.shortened($0.value))" }
        return lines + (rest > 0 ? [Terminal.styled("(\(rest) more header fields)", .quiet)] : [])
    }

    private static func shortened(_ value: String) -> String { value.count > 150 ? value.prefix(147) + "…" : value }
}
