// The pages of README and docs, for tests.

import Foundation

enum DocumentPages {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../..")
        .standardizedFileURL
    static let docs = root.appendingPathComponent("docs")
    static let decisions = docs.appendingPathComponent("decisions")

    /// Markdown files of a folder, in the order of their names.
    static func pages(of folder: URL) -> [URL] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".md") }.sorted().map(folder.appendingPathComponent)
    }

    /// The pages with which a reader may begin, those of `docs`, and the decisions.
    static let all: [URL] = {
        let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "Tests/PostfixTests/README.md"]
        return top.map(root.appendingPathComponent) + pages(of: docs) + pages(of: decisions)
    }()

    static func text(_ page: URL) -> String {
        (try? String(contentsOf: page, encoding: .utf8)) ?? ""
    }

    /// The lines of a page.
    static func lines(_ page: URL) -> [Substring] {
        var lines = text(page).split(separator: "\n", omittingEmptySubsequences: false)
        if lines.last?.isEmpty == true { lines.removeLast() }
        return lines
    }

    /// The lines from a heading to the next heading of the same level.
    static func section(_ heading: String, of page: URL) -> ArraySlice<Substring> {
        let lines = lines(page)
        guard let start = lines.firstIndex(where: { $0.utf8.elementsEqual(heading.utf8) }) else {
            return []
        }
        let rest = lines[(start + 1)...]
        let level = heading.utf8.prefix { $0 == UInt8(ascii: "#") }.count
        let mark = String(repeating: "#", count: level) + " "
        return rest.prefix { !$0.hasPrefix(mark) }
    }

    /// The cells of the rows of a table, without its header.
    static func rows(_ lines: ArraySlice<Substring>) -> [[String]] {
        lines.filter { $0.hasPrefix("| ") }.dropFirst().map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    /// The texts between backquotes, outside of fenced blocks.
    static func quoted(_ lines: ArraySlice<Substring>) -> [String] {
        var isFenced = false
        var words: [String] = []
        for line in lines {
            if line.hasPrefix("```") { isFenced.toggle() }
            guard !isFenced, !line.hasPrefix("```") else { continue }
            words += line.matches(of: #/`([^`]+)`/#).map { String($0.1) }
        }
        return words
    }

    /// The anchors of headings, as GitHub makes them.
    static func anchors(_ page: URL) -> Set<String> {
        let headings = text(page).split(separator: "\n").filter { $0.hasPrefix("#") }.map {
            $0.drop { $0 == "#" }
        }
        return Set(
            headings.map { heading in
                let words = heading.lowercased().trimmingCharacters(in: .whitespaces)
                return String(
                    words.compactMap {
                        $0 == " " ? "-" : $0.isLetter || $0.isNumber || "-_".contains($0) ? $0 : nil
                    })
            })
    }
}
