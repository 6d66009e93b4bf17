// Errors for mistyped commands; a valid command is never refused.

import Foundation
import TestSupport
import Testing

@testable import postern

@Suite(.blocking) struct CommandNamesTests {
    private static func refusal(_ arguments: [String]) -> String? {
        do {
            try CommandNames.check(arguments, below: Postern.self)
            return nil
        } catch {
            return "\((error as? CommandError)?.message ?? "another error")"
        }
    }

    @Test(
        arguments: [
            // Typed without their parent command.
            ("backup", "backup", "'store backup'"),
            ("migrate --plan", "migrate", "'store migrate'"),
            ("dkim list", "dkim", "'keys dkim'"), ("token verify", "token", "'verify token'"),
            ("attestation", "attestation", "'app attestation' or 'verify attestation'"),
            ("key-file rotate", "key-file", "'keys file'"),
            ("signing-key list", "signing-key", "'keys signing'"),
            ("key issue", "key", "'api-key' or 'keys'"),
            ("help restore", "restore", "'store restore'"),
            // Mistyped.
            ("sttaus", "sttaus", "'status'"), ("store bakcup x", "store bakcup", "'store backup'"),
            ("help keys dkim genrate", "keys dkim genrate", "'keys dkim generate'"),
            ("verify tokne", "verify tokne", "'verify token'"),
        ])
    func check_unknownCommand_saysWhatIsMeant(_ line: String, _ typed: String, _ meant: String) {
        let refusal = Self.refusal(line.split(separator: " ").map(String.init))
        #expect(refusal == "unknown command '\(typed)'; did you mean \(meant)?")
    }

    @Test(arguments: ["top", "x", "", "é", "-a"])
    func check_nothingSimilar_saysWhereCommandsAreListed(_ word: String) {
        // ArgumentParser handles options.
        #expect(
            Self.refusal([word])
                == (word == "-a" ? nil : "unknown command '\(word)'; see postern --help"))
        let nested = Self.refusal(["keys", "dkim", word])
        #expect(
            nested
                == (word == "-a"
                    ? nil : "unknown command 'keys dkim \(word)'; see postern keys dkim --help"))
    }

    /// Names are compared by octets: two encodings of a name are two names.
    @Test func check_canonicallyEqualName_isUnknown() {
        #expect(
            Self.refusal(["store\u{0301}"])?.hasPrefix("unknown command 'store\u{0301}'") == true)
    }

    @Test func check_everyCommand_passes() {
        for words in HelpTests.commands {
            #expect(Self.refusal(words) == nil && Self.refusal(["help"] + words) == nil, "\(words)")
            #expect(Self.refusal(words + ["--help"]) == nil)
        }
        for words in [
            ["--help"], ["help"], ["--version"], ["help", "--help"], ["team", "add", "backup"],
            ["verify", "--batch"],
        ] {
            #expect(Self.refusal(words) == nil, "\(words)")
        }
    }

    /// An assumption of `check`: ArgumentParser also refuses a word that is not a subcommand.
    @Test func commandsWithSubcommands_takeNoOtherArgument() {
        for words in [[]] + HelpTests.commands
        where HelpTests.commands.contains(where: {
            $0.count > words.count && $0.starts(with: words)
        }) {
            #expect(throws: (any Error).self, "\(words)") {
                try Postern.parseAsRoot(words + ["unknown"])
            }
        }
    }

    @Test func program_unknownCommand_endsWithUsage() throws {
        try CommandRunner().fail(
            "backup", "x.db", status: 64,
            saying: "unknown command 'backup'; did you mean 'store backup'?")
        try CommandRunner().fail("bakcup", "--help", status: 64, saying: "unknown command 'bakcup'")
    }

    /// Documents, and comments and texts of the code, must not name a command that does not exist.
    @Test func backquotedCommands_everywhere_exist() throws {
        let places = [
            "Sources", "milter", "policy", "docs", "dashboards", "packaging", "README.md",
            "CONTRIBUTING.md", "CHANGELOG.md",
        ]
        var count = 0
        for place in places {
            let root = Folders.package.appending(path: place)
            let paths =
                FileManager.default.subpaths(atPath: root.path).map {
                    $0.map { root.appending(path: $0) }
                } ?? [root]
            for path in paths where !path.hasDirectoryPath {
                guard let text = try? String(contentsOf: path, encoding: .utf8) else { continue }
                for match in text.matches(of: /`postern ([a-z][^`|]*)`/) {
                    let words = match.output.1.split { $0 == " " || $0 == "\n" }.map(String.init)
                    // `postern help COMMAND` means any command.
                    let names = words.prefix { !$0.utf8.allSatisfy { (0x41...0x5A).contains($0) } }
                    let refusal = Self.refusal(Array(names))
                    #expect(refusal == nil, "\(path.lastPathComponent): \(match.output.0)")
                    count += 1
                }
            }
        }
        #expect(count > 100)
    }

    /// People type `help` after a noun too.
    @Test(arguments: [
        (["team", "help", "add"], ["help", "team", "add"]), (["team", "help"], ["help", "team"]),
        (["app", "secret", "help", "issue"], ["help", "app", "secret", "issue"]),
        (["help", "team"], ["help", "team"]), (["team", "add", "help"], ["team", "add", "help"]),
        (["list", "create", "help"], ["list", "create", "help"]), (["help"], ["help"]), ([], []),
    ])
    func help_afterANoun_isMovedToTheFront(typed: [String], read: [String]) {
        #expect(CommandNames.withHelpFirst(typed, below: Postern.self) == read)
    }
}
