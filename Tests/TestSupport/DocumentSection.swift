// Sections of documents that tests write. POSTERN_TEST_RECORD=1 writes them.

import Foundation
import Synchronization

/// A section of a file in `docs`, from `<!-- NAME: written by TEST -->` to `<!-- end of NAME -->`.
package struct DocumentSection {
    private let url: URL
    private let start: String
    private let end: String

    /// - Parameters:
    ///   - test: the suite that writes the section.
    ///   - file: the name of a file in `docs`.
    package init(_ name: String, by test: String, in file: String) {
        url = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/\(file)")
        start = "<!-- \(name): written by \(test) -->\n"
        end = "<!-- end of \(name) -->\n"
    }

    /// Several sections of one document may be written at the same time.
    private static let writing = Mutex(())

    /// Whether the document contains the section as generated, with an empty line before and after
    /// it.
    package func holds(_ made: String) throws -> Bool {
        guard ProcessInfo.processInfo.environment["POSTERN_TEST_RECORD"] == "1" else {
            return try compare(made, isWritten: false)
        }
        return try Self.writing.withLock { _ in try compare(made, isWritten: true) }
    }

    private func compare(_ made: String, isWritten: Bool) throws -> Bool {
        let text = try String(contentsOf: url, encoding: .utf8)
        guard let from = text.range(of: start)?.upperBound,
            let until = text.range(of: end)?.lowerBound
        else { return false }
        let section = "\n\(made)\n"
        guard isWritten else { return text[from..<until].utf8.elementsEqual(section.utf8) }
        try Data((String(text[..<from]) + section + text[until...]).utf8).write(to: url)
        return true
    }
}
