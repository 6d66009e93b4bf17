// The help texts, as files. POSTERN_TEST_RECORD=1 writes them: check the difference before you
// commit it.

import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import postern

@Suite(.blocking) struct HelpTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Snapshots")

    /// Every visible command of the program, in words.
    static let commands: [[String]] = below(Postern.self, [])

    private static func file(_ words: [String]) -> String {
        "\((["help"] + words).joined(separator: "-")).txt"
    }

    private static func below(_ type: any ParsableCommand.Type, _ words: [String]) -> [[String]] {
        var found: [[String]] = []
        for command in type.configuration.subcommands {
            let configuration = command.configuration
            guard configuration.shouldDisplay else { continue }
            let name = words + [command._commandName]
            found.append(name)
            found += below(command, name)
        }
        return found
    }

    /// The output of the program, without a process.
    private static func help(_ words: [String]) -> String {
        do {
            // With --help the parsed command throws the help.
            var command = try Postern.parseAsRoot(words + ["--help"])
            try command.run()
            return "no help"
        } catch {
            return Postern.fullMessage(for: error, columns: 80) + "\n"
        }
    }

    @Test func commands_theirHelp_isAsRecorded() throws {
        try #require(Self.commands.count > 100)
        for command in [[]] + Self.commands {
            let text = Self.help(command)
            let file = Self.folder.appendingPathComponent(Self.file(command))
            if ProcessInfo.processInfo.environment["POSTERN_TEST_RECORD"] == "1" {
                try Data(text.utf8).write(to: file)
            }
            let expected = try? String(contentsOf: file, encoding: .utf8)
            #expect(
                text == expected,
                "the help of postern \(command.joined(separator: " ")) changed: see POSTERN_TEST_RECORD above"
            )
        }
    }

    /// The text that is compared above is the output of the program.
    @Test(arguments: [["team", "add"], ["serve"]]) func program_help_printsTheSnapshot(
        _ words: [String]
    ) throws {
        let result = try CommandRunner().run(words + ["--help"])
        let file = Self.folder.appendingPathComponent(Self.file(words))
        #expect(result.status == 0)
        #expect(try result.output == String(contentsOf: file, encoding: .utf8))
    }

    @Test func snapshots_matchTheCommands() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter {
            $0.hasPrefix("help")
        }
        #expect(
            Set(names).symmetricDifference(([[]] + Self.commands).map(Self.file)).sorted() == [])
    }

    @Test func rootHelp_listsEveryCommand() throws {
        let result = try CommandRunner().run(["--help"])
        #expect(result.status == 0)
        for command in Self.commands where command.count == 1 {
            #expect(result.output.contains("\n  \(command[0]) "))
        }
        // Each command is in one group.
        let names = Postern.groups.flatMap(\.subcommands).map { $0._commandName }
        #expect(
            names == Self.commands.filter { $0.count == 1 }.map { $0[0] }
                && Set(names).count == names.count)
    }
}
