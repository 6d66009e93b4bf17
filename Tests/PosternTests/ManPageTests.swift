// The commands in docs/postern.1 and the keys in docs/postern.yaml.5 are those of the program.
// POSTERN_TEST_RECORD=1 writes them.

import ArgumentParser
import Foundation
import PosternConfiguration
import Testing

@testable import postern

@Suite(.blocking) struct ManPageTests {
    /// ArgumentParser's description of a program.
    private struct Tool: Decodable { let command: Command }

    private struct Command: Decodable {
        let commandName: String
        let shouldDisplay: Bool?
        let abstract: String?
        let discussion: String?
        let subcommands: [Command]?
        let arguments: [Argument]?
    }

    private struct Argument: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String
            /// With its leading hyphens.
            var text: String { kind == "long" ? "--\(name)" : "-\(name)" }
        }

        let kind: String
        let shouldDisplay: Bool
        let isOptional: Bool
        let isRepeating: Bool
        let names: [Name]?
        let preferredName: Name?
        let valueName: String?
        let defaultValue: String?
        let allValues: [String]?
        let abstract: String?

        /// Options that the page describes once for all commands.
        var isGeneral: Bool {
            ["config", "set", "help", "version", "json"].contains(preferredName?.name)
        }
    }

    private static let docs = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "docs")

    /// The text for a separate line.
    private static func roff(_ text: String) -> String {
        let plain = text.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "\\": "\\e"
            case "-": "\\-"
            case _ where scalar.isASCII: String(scalar)
            default: "\\[u\(String(format: "%04X", scalar.value))]"
            }
        }.joined()
        return plain.hasPrefix(".") || plain.hasPrefix("'") ? "\\&" + plain : plain
    }

    private static func usage(_ argument: Argument) -> String {
        let value = argument.valueName.map { "\\fI\(roff($0))\\fP" } ?? ""
        let names = argument.preferredName.map { "\\fB\(roff($0.text))\\fP" }
        let whole: String
        switch argument.kind {
        case "flag": whole = names ?? ""
        case "option": whole = "\(names ?? "") \(value)"
        default: whole = value
        }
        let repeated = argument.isRepeating ? " ..." : ""
        return argument.isOptional ? "[\(whole)]\(repeated)" : whole + repeated
    }

    /// Paragraphs; indented lines stay lines.
    private static func prose(_ text: String) -> String {
        var out = ""
        var isExample = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let indented = line.hasPrefix("  ")
            if indented != isExample, !line.isEmpty {
                out += indented ? ".nf\n" : ".fi\n"
                isExample = indented
            }
            out += line.isEmpty ? ".sp\n" : roff(String(line)) + "\n"
        }
        return out + (isExample ? ".fi\n" : "")
    }

    private static func entries(_ command: Command, _ words: [String]) -> String {
        let shown = (command.subcommands ?? []).filter {
            $0.shouldDisplay ?? true && $0.commandName != "help"
        }
        guard shown.isEmpty else {
            return shown.map { entries($0, words + [$0.commandName]) }.joined()
        }
        let arguments = (command.arguments ?? []).filter(\.shouldDisplay)
        let usages = arguments.filter { !$0.isGeneral || $0.preferredName?.name == "json" }.map(
            usage)
        var text =
            ".TP\n"
            + (["\\fB\(roff(words.joined(separator: " ")))\\fP"] + usages).joined(separator: " ")
            + "\n"
        text += prose((command.abstract ?? "") + (command.discussion.map { "\n\n" + $0 } ?? ""))
        let described = arguments.filter { !$0.isGeneral && $0.abstract != nil }
        if !described.isEmpty {
            text += ".RS\n"
            for argument in described {
                let names = (argument.names ?? []).map { "\\fB\(roff($0.text))\\fP" }
                let value =
                    argument.kind == "flag" ? nil : argument.valueName.map { "\\fI\(roff($0))\\fP" }
                text +=
                    ".TP\n\((([names.joined(separator: ", ")] + [value].compactMap { $0 }).filter { !$0.isEmpty }).joined(separator: " "))\n"
                var facts =
                    argument.allValues.map { ["one of \($0.joined(separator: ", "))"] } ?? []
                facts += argument.defaultValue.map { ["default \($0)"] } ?? []
                text += prose(
                    (argument.abstract ?? "")
                        + (facts.isEmpty ? "" : " (\(facts.joined(separator: "; ")))"))
            }
            text += ".RE\n"
        }
        return text
    }

    @Test func manPage_commands_areThoseOfTheProgram() throws {
        let tool = try JSONDecoder().decode(Tool.self, from: Data(Postern._dumpHelp().utf8))
        let groups = (tool.command.subcommands ?? []).filter {
            $0.shouldDisplay ?? true && $0.commandName != "help"
        }
        try #require(groups.count > 30)
        let made = groups.map {
            ".SS \(Self.roff($0.commandName))\n" + Self.entries($0, ["postern", $0.commandName])
        }.joined()
        try Self.compare(made, "commands", in: "postern.1")
    }

    @Test func manPage_keys_areThoseOfTheConfiguration() throws {
        let made = ConfigurationKey.allCases.map { key in
            let facts = key.facts
            let words =
                "\(facts.values); default: \(facts.standardText)\(facts.isLive ? "" : "; needs a restart").\n\n\(facts.reason)"
                + (facts.beyond.map { " Beyond it: \($0)." } ?? "")
            return ".TP\n\\fB\(Self.roff(key.rawValue))\\fP\n" + Self.prose(words)
        }.joined()
        try Self.compare(made, "keys", in: "postern.yaml.5")
    }

    /// Compares the text between the marks of a page.
    private static func compare(_ made: String, _ what: String, in name: String) throws {
        let page = docs.appending(path: name)
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(
            text.range(of: ".\\\" \(what): written by ManPageTests\n")?.upperBound)
        let end = try #require(text.range(of: ".\\\" end of \(what)\n")?.lowerBound)
        if ProcessInfo.processInfo.environment["POSTERN_TEST_RECORD"] == "1" {
            try Data((String(text[..<start]) + made + text[end...]).utf8).write(to: page)
        }
        #expect(text[start..<end].utf8.elementsEqual(made.utf8))
    }
}
