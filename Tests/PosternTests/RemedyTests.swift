// The commands that remedies propose to the operator exist, and run unchanged.

import Doctor
import Foundation
import Support
import TestSupport
import Testing

@Suite(.blocking) struct RemedyTests {
    @Test func operatingDocument_remedies_areThoseDeclared() throws {
        let rows = RemedyCommand.Kind.allCases.map(\.facts).map {
            "| `\($0.form.joined(separator: " "))` | \($0.state) |\n"
        }
        let table = "| command | when |\n|---|---|\n" + rows.joined()
        #expect(
            try DocumentSection("remedies", by: "RemedyTests", in: "OPERATING-DOCTOR.md").holds(
                table))
    }

    /// A command in prose cannot be run by a program, and no test would check it.
    @Test func remedy_inSources_namesNoCommandInWords() throws {
        for folder in ["Sources/Doctor", "Sources/Monitoring"] {
            let root = Folders.package.appending(path: folder)
            for path in try FileManager.default.subpathsOfDirectory(atPath: root.path)
            where path.hasSuffix(".swift") {
                let lines = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                    .split(separator: "\n")
                let command =
                    #/\bpostern (?!serve\b|with\b|that\b|restore\b|init\b)[a-z]+ |\bss -|\bchmod |\bchown /#
                for line in lines where line.lowercased().contains("remedy") {
                    #expect(!line.contains(command), "\(path): \(line)")
                }
            }
        }
    }

    @Test func remedy_commands_runAsTheyStand() throws {
        let remedy: Remedy =
            "run \(.applySettings, postfix: "/srv/post fix"), then \(.reloadPostfix, postfix: "/srv/post fix"); \(.showRecord, "k1", "relay.example")"
        #expect(
            remedy.text
                == "run postern setup postfix --apply --config-directory '/srv/post fix', then postfix -c '/srv/post fix' reload; postern keys dkim publish k1 --domain relay.example"
        )
        #expect(
            remedy.commands.map(\.arguments) == [
                ["postern", "setup", "postfix", "--apply", "--config-directory", "/srv/post fix"],
                ["postfix", "-c", "/srv/post fix", "reload"],
                ["postern", "keys", "dkim", "publish", "k1", "--domain", "relay.example"],
            ])
        #expect(
            remedy.with(["--config", "/x"]).commands.map(\.arguments).map {
                $0.suffix(2) == ["--config", "/x"]
            } == [
                true, false, true,
            ])
        let own: Remedy = "run \(.ownFile, "postern:", "/x")"
        #expect(own.text == "run chown postern: /x")
        // Each word in capitals stands for one value.
        for kind in RemedyCommand.Kind.allCases {
            let values = (0..<6).map { "value\($0)" }
            let arguments = RemedyCommand(kind, values).arguments
            #expect(!arguments.contains { $0.contains { $0.isUppercase } }, "\(arguments)")
        }
        let check = Check.warning(.databaseMode, "x", remedy: "run \(.closeFile, "/a b")")
        let json =
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(check)) as? [String: Any]
        #expect(
            json?["commands"] as? [[String]] == [["chmod", "600", "/a b"]]
                && json?["remedy"] as? String == "run chmod 600 '/a b'"
        )
        let advice = try JSONEncoder().encode(Check.ok(.disk, "x"))
        #expect(!String(decoding: advice, as: UTF8.self).contains("commands"))
    }

    /// The proposals of checks, status and the guide, word by word: they must not name a command
    /// that does not exist.
    @Test func remedy_ofEveryCheck_namesACommandAndItsOptions() throws {
        let runner = try CommandRunner()
        var helps: [[String]: String?] = [:]
        func help(_ words: [String]) throws -> String? {
            if let known = helps[words] { return known }
            let result = try runner.run(words + ["--help"])
            let text = result.status == 0 ? result.output : nil
            helps[words] = text
            return text
        }
        func subcommands(_ help: String) -> [String] {
            help.components(separatedBy: "SUBCOMMANDS:\n").dropFirst().flatMap { list in
                list.split(separator: "\n").prefix { $0.hasPrefix("  ") }.filter {
                    !$0.hasPrefix("   ")
                }.compactMap {
                    $0.split { " ,(".contains($0) }.first.map(String.init)
                }
            }
        }
        let commands = subcommands(try #require(try help([])))
        var proposed = RemedyCommand.Kind.allCases.map(\.facts.form).filter { $0[0] == "postern" }
            .map { form in
                form.dropFirst().filter {
                    $0.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "-") }
                }
            }
        for folder in [
            "Sources/Doctor", "Sources/Monitoring", "Sources/Relay", "Sources/postern",
            "milter/postfix",
        ] {
            let root = Folders.package.appending(path: folder)
            for path in try FileManager.default.subpathsOfDirectory(atPath: root.path)
            where path.hasSuffix(".swift") {
                let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                for line in text.split(separator: "\n")
                where !line.drop(while: { $0 == " " }).hasPrefix("//") {
                    for match in line.matches(
                        of: /\bpostern ([a-z][a-z-]*(?: [a-z][a-z-]*)*)((?: --[a-z-]+)*)/)
                    {
                        let words = match.output.1.split(separator: " ").map(String.init)
                        let options = match.output.2.split(separator: " ").map(String.init)
                        // "postern with the …" is not a command.
                        if commands.contains(words[0]), !proposed.contains(words + options) {
                            proposed.append(words + options)
                        }
                    }
                }
            }
        }
        #expect(proposed.count > 25, "\(proposed)")
        for line in proposed {
            let options = line.filter { $0.hasPrefix("--") }
            var (words, known): ([String], [String]) = ([], commands)
            for word in line where !word.hasPrefix("--") {
                if known.contains(word) {
                    words.append(word)
                    known = subcommands(try #require(try help(words)))
                    continue
                }
                // After it come arguments, or the rest of the sentence, as in "postern setup
                // again".
                #expect(
                    known.isEmpty || words == ["setup"], "postern \(line.joined(separator: " "))")
                break
            }
            let text = try #require(try help(words), "postern \(words.joined(separator: " "))")
            for option in options {
                #expect(text.contains(option), "postern \(line.joined(separator: " "))")
            }
        }
    }
}
