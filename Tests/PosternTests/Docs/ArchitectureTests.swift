// docs/ARCHITECTURE.md and docs/decisions name what is there: types, functions, tables, tests and files.

import Foundation
import PosternConfiguration
import TestSupport
import Testing

/// What the sources declare.
private struct Declarations {
    /// The files that declare or extend a type.
    private var files: [String: Set<Int>] = [:]
    /// The names of functions, and of members that are values, by file.
    private var functions: [Set<String>] = []
    private var values: [Set<String>] = []
    private(set) var names: Set<String> = []
    private(set) var fileNames: Set<String> = []
    /// The columns of each table.
    private(set) var columns: [String: Set<String>] = [:]

    static let all = Declarations()

    private init() {
        for folder in ["Sources", "milter", "policy", "Plugins", "Tests", "Benchmarks"] { read(folder) }
        for name in targets { files[name, default: []].formUnion([]) }
    }

    private var targets: [String] {
        let package = DocumentPages.text(DocumentPages.root.appendingPathComponent("Package.swift"))
        return package.matches(of: #/name: "([^"]+)"/#).map { String($0.1) }
    }

    private mutating func read(_ folder: String) {
        let root = DocumentPages.root.appendingPathComponent(folder)
        for case let path as String in FileManager.default.enumerator(atPath: root.path) ?? .init() {
            guard path.hasSuffix(".swift") || path.hasSuffix(".sql") || path.hasSuffix(".js") else { continue }
            fileNames.insert(path.split(separator: "/").last.map(String.init) ?? path)
            let text = DocumentPages.text(root.appendingPathComponent(path))
            if path.hasSuffix(".sql") { readTables(text) }
            guard path.hasSuffix(".swift") else { continue }
            readDeclarations(text)
        }
        names = functions.reduce(into: Set()) { $0.formUnion($1) }
    }

    /// Reads what follows each word that declares something. Comments and texts are read too, which does not matter here.
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
            case .type: for part in name.split(separator: ".") { files[String(part), default: []].insert(file) }
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
        "struct": .type, "class": .type, "enum": .type, "protocol": .type, "actor": .type, "extension": .type, "typealias": .type,
        "func": .function, "let": .value, "var": .value, "case": .value,
    ]

    private mutating func readTables(_ text: String) {
        for match in text.matches(of: #/CREATE TABLE (\w+) \(\n((?: .*\n)+)/#) {
            columns[String(match.1)] = Set(match.2.split(separator: "\n").compactMap { $0.split(separator: " ").first.map(String.init) })
        }
    }

    func hasType(_ name: String) -> Bool { files[name] != nil }

    /// Whether a file that declares or extends the type has the function.
    func hasFunction(_ function: String, of type: String) -> Bool {
        files[type]?.contains { functions[$0].contains(function) } ?? false
    }

    func hasMember(_ member: String, of type: String) -> Bool {
        files[type]?.contains { values[$0].contains(member) || functions[$0].contains(member) } ?? false
    }
}

extension UInt8 {
    /// Whether it is of a name in Swift as we write them.
    fileprivate var isWord: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"): true
        default: false
        }
    }
}

@Suite(.blocking) struct ArchitectureTests {
    private static let page = DocumentPages.docs.appendingPathComponent("ARCHITECTURE.md")
    private static let decisions = DocumentPages.pages(of: DocumentPages.decisions).filter { $0.lastPathComponent != "README.md" }

    private static func exists(_ path: String) -> Bool {
        ["", "Sources/"].contains {
            FileManager.default.fileExists(atPath: DocumentPages.root.appendingPathComponent($0 + path).path)
        }
    }

    /// Whether a name in backquotes is that of something that is there.
    private static func isThere(_ name: String) -> Bool {
        let declared = Declarations.all
        if let call = name.wholeMatch(of: #/([A-Z]\w*)\.(\w+)\(\)/#) {
            return declared.hasFunction(String(call.2), of: String(call.1))
        }
        if let member = name.wholeMatch(of: #/([A-Z]\w*)\.([a-z]\w*)/#), !name.hasSuffix(".swift") {
            return declared.hasMember(String(member.2), of: String(member.1))
        }
        if name.contains("/") || name.hasSuffix(".swift") || name.hasSuffix(".md") { return name == "/me" || exists(name) }
        if name.hasPrefix("postern") { return isProgram(name) }
        if name.wholeMatch(of: #/[A-Z]\w*/#) != nil { return declared.hasType(name) || exists(name) }
        if name.wholeMatch(of: #/[245][0-9 .]*/#) != nil { return true }
        return declared.names.contains(name) || declared.columns[name] != nil || ConfigurationKey(rawValue: name) != nil
            || declared.columns.values.contains { $0.contains(name) }
    }

    /// `postern` alone, or a command of it.
    private static func isProgram(_ words: String) -> Bool {
        let command = words.split(separator: " ").dropFirst().joined(separator: "-")
        return command.isEmpty || exists("Tests/PosternTests/Snapshots/help-\(command).txt")
    }

    @Test func architecture_lines_areAtMostTwoHundred() {
        #expect((100...200).contains(DocumentPages.lines(Self.page).count))
    }

    @Test func architecture_everyName_isThere() {
        let names = DocumentPages.quoted(DocumentPages.lines(Self.page)[...])
        #expect(names.count >= 150)
        for name in names { #expect(Self.isThere(name), "\(name)") }
    }

    @Test func isThere_nameOfNothing_isFalse() {
        for name in [
            "RelayTransactions", "RelayTransaction.addRecipients()", "Refusal.forwardingOn", "no_such_table", "noTestOfThisName",
            "RelayCore/Relay/Nothing.swift", "postern nothing",
        ] {
            #expect(!Self.isThere(name), "\(name)")
        }
    }

    @Test func architecture_tables_haveTheirKeys() {
        let rows = DocumentPages.rows(DocumentPages.section("## The ten main tables", of: Self.page))
        #expect(rows.count == 10)
        for row in rows {
            let table = row[0].trimmingCharacters(in: ["`"])
            let columns = Declarations.all.columns[table]
            for key in DocumentPages.quoted([row[1][...]]) { #expect(columns?.contains(key) == true, "\(table): \(key)") }
        }
    }

    @Test func architecture_glossary_hasAtMostTwentyWordsInOrder() {
        let words = DocumentPages.rows(DocumentPages.section("## Glossary", of: Self.page)).map { $0[0] }
        #expect((10...20).contains(words.count))
        #expect(words == words.sorted())
    }

    /// Each walk has five steps, and each invariant a test.
    @Test func architecture_walksAndInvariants_areWhole() {
        let walks = DocumentPages.section("## Six walks", of: Self.page)
        #expect(walks.filter { $0.hasPrefix("**") }.count == 6)
        #expect(walks.filter { $0.hasPrefix("5. ") }.count == 6 && !walks.contains { $0.hasPrefix("6. ") })
        let tests = DocumentPages.quoted(DocumentPages.section("## Invariants", of: Self.page))
        #expect(tests.count >= 15)
        for test in tests { #expect(Declarations.all.names.contains(test), "\(test)") }
    }

    // MARK: Decisions

    @Test func decisions_index_namesEveryFile() {
        let index = DocumentPages.text(DocumentPages.decisions.appendingPathComponent("README.md"))
        let named = index.matches(of: #/^- \[(\d{3})\]\((\1-[a-z0-9-]+\.md)\) /#.anchorsMatchLineEndings()).map { String($0.2) }
        #expect(named == Self.decisions.map(\.lastPathComponent))
        #expect(Set(named.map { $0.prefix(3) }).count == named.count)
    }

    @Test(arguments: decisions) func decision_isAPageOfFourParts(_ page: URL) {
        let lines = DocumentPages.lines(page)
        #expect(lines.count <= 60)
        #expect(lines.filter { $0.hasPrefix("## ") } == ["## Context", "## Decision", "## Consequence", "## Date"])
        #expect(lines.first?.hasPrefix("# \(page.lastPathComponent.prefix(3)). ") == true)
        #expect(lines.last?.wholeMatch(of: #/\d{4}-\d\d-\d\d/#) != nil)
    }

    /// Types by their form, calls, and files; other words in backquotes may be of a message or a protocol.
    @Test(arguments: decisions) func decision_typesAndFiles_areThere(_ page: URL) {
        for name in DocumentPages.quoted(DocumentPages.lines(page)[...]) {
            if name.hasSuffix(".swift") {
                let file = name.split(separator: "/").last.map(String.init) ?? name
                #expect(Declarations.all.fileNames.contains(file) || Self.exists(name), "\(name)")
            } else if name.wholeMatch(of: #/[A-Z][a-z]+[A-Z]\w*|[A-Z]\w*\.[a-z]\w*(\(\))?/#) != nil {
                #expect(Self.isThere(name), "\(name)")
            }
        }
    }
}
