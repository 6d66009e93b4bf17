// The declarations of the sources, for tests of pages that name them.

import Foundation

/// The declarations of the sources.
struct SourceDeclarations {
    /// The files that declare or extend a type.
    private var files: [String: Set<Int>] = [:]
    /// The names of functions, and of members that are values, by file.
    private var functions: [Set<String>] = []
    private var values: [Set<String>] = []
    private var paths: [URL] = []
    private(set) var names: Set<String> = []
    private(set) var fileNames: Set<String> = []
    /// The columns of each table.
    private(set) var columns: [String: Set<String>] = [:]

    static let all = SourceDeclarations()

    private init() {
        for folder in ["Sources", "milter", "policy", "Plugins", "Tests", "Benchmarks"] {
            read(folder)
        }
        for name in targets { files[name, default: []].formUnion([]) }
    }

    private var targets: [String] {
        let package = DocumentPages.text(DocumentPages.root.appendingPathComponent("Package.swift"))
        return package.matches(of: #/name: "([^"]+)"/#).map { String($0.1) }
    }

    private mutating func read(_ folder: String) {
        let root = DocumentPages.root.appendingPathComponent(folder)
        for case let path as String in FileManager.default.enumerator(atPath: root.path) ?? .init()
        where path.hasSuffix(".swift") || path.hasSuffix(".sql") || path.hasSuffix(".js") {
            fileNames.insert(path.split(separator: "/").last.map(String.init) ?? path)
            let text = DocumentPages.text(root.appendingPathComponent(path))
            if path.hasSuffix(".sql") { readTables(text) }
            guard path.hasSuffix(".swift") else { continue }
            paths.append(root.appendingPathComponent(path))
            readDeclarations(text)
        }
        names = functions.reduce(into: Set()) { $0.formUnion($1) }
    }

    /// Reads the name after each declaring word. Comments and texts are read too, which does not
    /// matter here.
    private mutating func readDeclarations(_ text: String) {
        let file = functions.count
        var (calls, members): (Set<String>, Set<String>) = ([], [])
        var (word, before): ([UInt8], Word?) = ([], nil)
        for octet in text.utf8 {
            if octet.isWord || octet == UInt8(ascii: ".") && before == .type {
                word.append(octet)
                continue
            }
            guard !word.isEmpty else {
                if octet != UInt8(ascii: " ") { before = nil }
                continue
            }
            let name = String(decoding: word, as: UTF8.self)
            switch before {
            case .type:
                for part in name.split(separator: ".") {
                    files[String(part), default: []].insert(file)
                }
            case .function: calls.insert(name)
            case .value: members.insert(name)
            case nil: break
            }
            before = octet == UInt8(ascii: " ") ? Self.words[name] : nil
            word.removeAll(keepingCapacity: true)
        }
        functions.append(calls)
        values.append(members)
    }

    private enum Word { case type, function, value }

    private static let words: [String: Word] = [
        "struct": .type, "class": .type, "enum": .type, "protocol": .type, "actor": .type,
        "extension": .type, "typealias": .type,
        "func": .function, "let": .value, "var": .value, "case": .value,
    ]

    private mutating func readTables(_ text: String) {
        for match in text.matches(of: #/CREATE TABLE (\w+) \(\n((?: .*\n)+)/#) {
            columns[String(match.1)] = Set(
                match.2.split(separator: "\n").compactMap {
                    $0.split(separator: " ").first.map(String.init)
                })
        }
    }

    func hasType(_ name: String) -> Bool { files[name] != nil }

    /// Whether a file that declares or extends the type has the function.
    func hasFunction(_ function: String, of type: String) -> Bool {
        files[type]?.contains { functions[$0].contains(function) } ?? false
    }

    /// The number of a member's declaration, for example `static let most: Int64 = 20 * 60`; nil if
    /// there is none.
    func number(_ member: String, of type: String) -> Int? {
        let declared = #/(?:let|var) (\w+)(?:: \w+)? (?:= |\{ )([0-9_]+)(?: (<<|\*) ([0-9_]+))?/#
        for file in files[type] ?? [] where values[file].contains(member) {
            for match in DocumentPages.text(paths[file]).matches(of: declared)
            where match.1.utf8.elementsEqual(member.utf8) {
                let numbers = [match.2, match.4 ?? "1"].compactMap {
                    Int($0.replacing("_", with: ""))
                }
                guard numbers.count == 2 else { return nil }
                return match.3 == "<<" ? numbers[0] << numbers[1] : numbers[0] * numbers[1]
            }
        }
        return nil
    }

    func hasMember(_ member: String, of type: String) -> Bool {
        files[type]?.contains { values[$0].contains(member) || functions[$0].contains(member) }
            ?? false
    }
}

extension UInt8 {
    /// Whether the character can be in one of our Swift names.
    fileprivate var isWord: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
