// No scalar prevents the escaping of the next character: every page and every mail, with every
// scalar that forms one Character with its neighbours.

import Foundation
import Languages
import Support
import Testing

@testable import Portal

@Suite struct EscapingTests {
    /// Scalars that Unicode joins to the previous or next one (UAX #29: Extend, ZWJ, SpacingMark,
    /// Prepend).
    private static let joining: [Unicode.Scalar] = {
        let prepended: [UInt32] = [
            0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0xD4E,
            0x110BD, 0x110CD, 0x111C2,
            0x111C3,
            0x113D1, 0x1193F, 0x11941, 0x11A3A, 0x11A84, 0x11A85, 0x11A86, 0x11A87, 0x11A88,
            0x11A89, 0x11D46, 0x11F02,
        ]
        let extending = (0x300...0xE01EF).compactMap(Unicode.Scalar.init).filter { scalar in
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .spacingMark, .enclosingMark: true
            default:
                scalar.properties.isGraphemeExtend || scalar.properties.isEmojiModifier
                    || scalar == "\u{200D}"
            }
        }
        return prepended.compactMap(Unicode.Scalar.init) + extending
    }()

    /// Each of them before and after each character that has a meaning in HTML.
    private static let hostile: String = {
        var text = String.UnicodeScalarView("x".unicodeScalars)
        for scalar in joining {
            for mark in "<>\"'&".unicodeScalars { text.append(contentsOf: [scalar, mark, scalar]) }
        }
        text.append("x")
        return String(text)
    }()

    /// The first place at which an unescaped character of markup follows one of the scalars.
    private static func leak(_ html: String) -> String? {
        let scalars = Array(html.unicodeScalars)
        let known = Set(joining)
        let entities = ["lt;", "gt;", "quot;", "amp;", "#39;", "#x27;", "apos;"].map {
            Array($0.unicodeScalars)
        }
        for place in scalars.indices.dropLast() where known.contains(scalars[place]) {
            let next = scalars[place + 1]
            let rest = scalars[(place + 2)...]
            let isRaw = next == "<" || next == ">" || next == "\"" || next == "'"
            guard isRaw || next == "&" && !entities.contains(where: { rest.starts(with: $0) })
            else { continue }
            return scalars[place...].prefix(3).map { String($0.value, radix: 16) }.joined(
                separator: " ")
        }
        return nil
    }

    /// The names of a template: those of values, and those of sections for an absent or empty
    /// value.
    private static func names(
        _ template: String
    ) -> (all: Set<String>, inverted: Set<String>, emptied: Set<String>) {
        var (all, inverted, emptied): (Set<String>, Set<String>, Set<String>) = ([], [], [])
        let tags = template.matches(of: #/\{\{\{?([#^\/&]?)\s*(empty\()?([A-Za-z_]+)\)?\s*\}?\}\}/#)
        for tag in tags where tag.3 != "t" {
            all.insert(String(tag.3))
            switch (tag.1, tag.2 != nil) {
            case ("^", false): inverted.insert(String(tag.3))
            case ("#", true): emptied.insert(String(tag.3))
            default: break
            }
        }
        return (all, inverted, emptied)
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func templates(_ folder: String, _ suffix: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: root.appendingPathComponent(folder), includingPropertiesForKeys: nil
        )
        .filter { $0.lastPathComponent.hasSuffix(suffix) }
    }

    @Test func leak_ofWhatIsNotEscaped_isFound() {
        #expect(Self.joining.count > 2_000)
        #expect(
            Self.leak("x\u{600}<b>") != nil && Self.leak("x\u{301}&x;") != nil
                && Self.leak("\u{600}&lt;\u{301}x") == nil)
    }

    @Test func pagesAndMails_withScalarsThatJoin_escapeWhatFollows() throws {
        let files =
            try Self.templates("Sources/Portal/Templates", ".mustache")
            + Self.templates("Sources/Mail/Notices/Templates", ".html")
        try #require(files.count > 30)
        for file in files {
            let text = try String(contentsOf: file, encoding: .utf8)
            let template = try HTMLTemplate(Catalogue.english.localised(text))
            let (all, inverted, emptied) = Self.names(text)
            // The values that our own code gives as markup.
            let ours: Set<String> = ["content", "mark"]
            for (left, empty) in [([], []), (inverted, emptied)] {
                let given = all.subtracting(ours).subtracting(left)
                let html = template.render(
                    Dictionary(
                        uniqueKeysWithValues: given.map {
                            ($0, empty.contains($0) ? "" : Self.hostile)
                        }))
                #expect(
                    Self.leak(html) == nil, "\(file.lastPathComponent): \(Self.leak(html) ?? "")")
            }
        }
    }

    /// A name that no view has would be left out of the page without an error.
    @Test func templates_everyName_isAPropertyOfAView() throws {
        let enumerator = try #require(
            FileManager.default.enumerator(
                at: Self.root.appendingPathComponent("Sources/Portal"),
                includingPropertiesForKeys: nil))
        var properties: Set<String> = []
        for case let file as URL in enumerator where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            properties.formUnion(
                text.matches(of: #/    (?:let|var) ([A-Za-z]+)(?:: | = )/#).map { String($0.1) })
        }
        let templates = try Self.templates("Sources/Portal/Templates", ".mustache")
        #expect(
            Set(templates.map { $0.deletingPathExtension().lastPathComponent })
                == Set(PageTemplate.allCases.map(\.rawValue) + ["layout"]))
        for file in templates {
            let names = try Self.names(String(contentsOf: file, encoding: .utf8)).all
            #expect(
                names.isSubset(of: properties),
                "\(file.lastPathComponent): \(names.subtracting(properties).sorted())")
        }
    }
}
