// docs/ARCHITECTURE.md and docs/decisions name existing types, functions, tables, tests and files.

import Foundation
import PosternConfiguration
import TestSupport
import Testing

@Suite(.blocking) struct ArchitectureTests {
    private static let page = DocumentPages.docs.appendingPathComponent("ARCHITECTURE.md")
    private static let decisions = DocumentPages.pages(of: DocumentPages.decisions).filter {
        $0.lastPathComponent != "README.md"
    }

    private static func exists(_ path: String) -> Bool {
        ["", "Sources/"].contains {
            FileManager.default.fileExists(
                atPath: DocumentPages.root.appendingPathComponent($0 + path).path)
        }
    }

    /// Whether a name in backquotes exists.
    private static func isThere(_ name: String) -> Bool {
        let declared = SourceDeclarations.all
        if let call = name.wholeMatch(of: #/([A-Z]\w*)\.(\w+)\(\)/#) {
            return declared.hasFunction(String(call.2), of: String(call.1))
        }
        if let member = name.wholeMatch(of: #/([A-Z]\w*)\.([a-z]\w*)/#), !name.hasSuffix(".swift") {
            return declared.hasMember(String(member.2), of: String(member.1))
        }
        if name.contains("/") || name.hasSuffix(".swift") || name.hasSuffix(".md") {
            return name == "/me" || exists(name)
        }
        if name.hasPrefix("postern") { return isProgram(name) }
        if name.wholeMatch(of: #/[A-Z]\w*/#) != nil {
            return declared.hasType(name) || exists(name)
        }
        if name.wholeMatch(of: #/[245][0-9 .]*/#) != nil { return true }
        return declared.names.contains(name) || declared.columns[name] != nil
            || ConfigurationKey(rawValue: name) != nil
            || declared.columns.values.contains { $0.contains(name) }
    }

    /// `postern` alone, or one of its commands.
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
            "RelayTransactions", "RelayTransaction.addRecipients()", "Refusal.forwardingOn",
            "no_such_table", "noTestOfThisName",
            "RelayCore/Relay/Nothing.swift", "postern nothing",
        ] {
            #expect(!Self.isThere(name), "\(name)")
        }
    }

    @Test func architecture_tables_haveTheirKeys() {
        let rows = DocumentPages.rows(
            DocumentPages.section("## The ten main tables", of: Self.page))
        #expect(rows.count == 10)
        for row in rows {
            let table = row[0].trimmingCharacters(in: ["`"])
            let columns = SourceDeclarations.all.columns[table]
            for key in DocumentPages.quoted([row[1][...]]) {
                #expect(columns?.contains(key) == true, "\(table): \(key)")
            }
        }
    }

    /// The picture of processes and threads contains text too.
    @Test func architecture_picture_namesWhatIsThere() throws {
        let picture = DocumentPages.text(
            DocumentPages.docs.appendingPathComponent("pictures/processes.svg"))
        let words = picture.matches(of: #/>([^<>]+)</text>/#).flatMap {
            $0.1.split { !$0.isLetter }
        }
        let types = words.filter {
            $0.wholeMatch(of: #/[A-Z][a-z]+[A-Z]\w+/#) != nil && $0 != "HTTPS"
        }
        #expect(types.count >= 8)
        for type in types where type != "PostgreSQL" {
            #expect(Self.isThere(String(type)), "\(type)")
        }
    }

    @Test func architecture_glossary_hasAtMostTwentyWordsInOrder() {
        let words = DocumentPages.rows(DocumentPages.section("## Glossary", of: Self.page)).map {
            $0[0]
        }
        #expect((10...20).contains(words.count))
        #expect(words == words.sorted())
    }

    /// Each walk has five steps, and each invariant a test.
    @Test func architecture_walksAndInvariants_areWhole() {
        let walks = DocumentPages.section("## Six walks", of: Self.page)
        #expect(walks.filter { $0.hasPrefix("**") }.count == 6)
        #expect(
            walks.filter { $0.hasPrefix("5. ") }.count == 6
                && !walks.contains { $0.hasPrefix("6. ") })
        let tests = DocumentPages.quoted(DocumentPages.section("## Invariants", of: Self.page))
        #expect(tests.count >= 15)
        for test in tests { #expect(SourceDeclarations.all.names.contains(test), "\(test)") }
    }

    // MARK: Decisions

    @Test func decisions_index_namesEveryFile() {
        let index = DocumentPages.text(DocumentPages.decisions.appendingPathComponent("README.md"))
        let named = index.matches(
            of: #/^- \[(\d{3})\]\((\1-[a-z0-9-]+\.md)\) /#.anchorsMatchLineEndings()
        ).map { String($0.2) }
        #expect(named == Self.decisions.map(\.lastPathComponent))
        #expect(Set(named.map { $0.prefix(3) }).count == named.count)
    }

    @Test(arguments: decisions) func decision_isAPageOfFourParts(_ page: URL) {
        let lines = DocumentPages.lines(page)
        #expect(lines.count <= 60)
        #expect(
            lines.filter { $0.hasPrefix("## ") } == [
                "## Context", "## Decision", "## Consequence", "## Date",
            ])
        #expect(lines.first?.hasPrefix("# \(page.lastPathComponent.prefix(3)). ") == true)
        #expect(lines.last?.wholeMatch(of: #/\d{4}-\d\d-\d\d/#) != nil)
    }

    /// Types by their form, calls, and files. Other words in backquotes may be from a message or a
    /// protocol.
    @Test(arguments: decisions) func decision_typesAndFiles_areThere(_ page: URL) {
        for name in DocumentPages.quoted(DocumentPages.lines(page)[...]) {
            if name.hasSuffix(".swift") {
                let file = name.split(separator: "/").last.map(String.init) ?? name
                #expect(
                    SourceDeclarations.all.fileNames.contains(file) || Self.exists(name), "\(name)")
            } else if name.wholeMatch(of: #/[A-Z][a-z]+[A-Z]\w*|[A-Z]\w*\.[a-z]\w*(\(\))?/#) != nil
            {
                #expect(Self.isThere(name), "\(name)")
            }
        }
    }
}
