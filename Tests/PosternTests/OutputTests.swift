// The output of commands, and their behaviour if it cannot be written.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct OutputTests {
    /// A key is shown once: on a full disk it must not be lost with status 0.
    @Test(arguments: [
        ["api-key", "issue", "juice", "--scope", "addresses:read"], ["config", "show"],
        ["audit", "--json"],
        ["doctor", "--skip", "postfix"], ["--help"], ["--version"],
        ["decision", "list", "--csv", "--help"],
        ["help", "api-key", "issue"], ["--generate-completion-script", "bash"],
        ["policy", "show", "--yaml"],
        ["sandbox", "--port", "0"], ["sandbox", "--port", "0", "--json"],
        ["sandbox", "--as", "apple", "--port", "0"],
    ])
    func output_thatCannotBeWritten_isAnError(_ words: [String]) throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        let command = ([CommandRunner.executable.path] + words).map { "'\($0)'" }.joined(
            separator: " ")
        let run = try ProgramRun(
            ["/bin/sh", "-c", "\(command) > /dev/full"], input: Data(),
            environment: ["POSTERN_CONFIG": runner.configuration],
            directory: runner.folder)
        #expect(run.status == 74)
        #expect(run.errors.contains("standard output: "), "\(run.errors)")
    }

    /// A command that cannot print its error must not crash.
    @Test(arguments: ["2>/dev/full", "2>&-"]) func error_thatCannotBeWritten_isInTheStatus(
        _ redirection: String
    ) throws {
        let runner = try CommandRunner.initialised()
        for (words, status) in [
            ("user show nope", Int32(66)), ("policy eval '1 +'", 1), ("team add", 64),
        ] {
            let run = try ProgramRun(
                ["/bin/sh", "-c", "'\(CommandRunner.executable.path)' \(words) \(redirection)"],
                input: Data(),
                environment: ["POSTERN_CONFIG": runner.configuration], directory: runner.folder)
            #expect(run.status == status, "\(words)")
        }
    }

    /// A secret that could not be written must not be valid, and a rotated key must not end.
    @Test func secret_thatCannotBeWritten_isNotIssued() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("app", "add", "juice", "com.juice")
        let key = try runner.succeed(
            "api-key", "issue", "juice", "--scope", "addresses:read", "--json")
        let id = try #require(key.firstMatch(of: /"key" *: *"([^"]+)"/)).output.1
        let before = (
            try runner.succeed("api-key", "list"),
            try runner.succeed("app", "secret", "list", "juice", "com.juice")
        )
        for words in [
            ["api-key", "issue", "juice", "--scope", "addresses:read"],
            ["api-key", "rotate", String(id)],
            ["app", "secret", "issue", "juice", "com.juice"],
        ] {
            let command = ([CommandRunner.executable.path] + words).map { "'\($0)'" }.joined(
                separator: " ")
            let run = try ProgramRun(
                ["/bin/sh", "-c", "\(command) > /dev/full"], input: Data(),
                environment: ["POSTERN_CONFIG": runner.configuration], directory: runner.folder)
            #expect(run.status == 74)
            #expect(
                run.errors
                    == "postern: standard output: no space left on device; the secret was not issued\n",
                "\(run.errors)")
        }
        #expect(try runner.succeed("api-key", "list") == before.0)
        #expect(try runner.succeed("app", "secret", "list", "juice", "com.juice") == before.1)
        try runner.fail(
            "api-key", "rotate", String(id), "--expires", "1d", "--overlap", "7d", status: 64,
            saying: "would end before the old one")
        // A key that expires before the usual overlap ends.
        let short = try runner.succeed(
            "api-key", "issue", "juice", "--scope", "addresses:read", "--expires", "2d", "--json")
        let shortID = try #require(short.firstMatch(of: /"key" *: *"([^"]+)"/)).output.1
        #expect(try runner.succeed("api-key", "rotate", String(shortID)).hasPrefix("pk_"))
        let quiet = try runner.run(["api-key", "rotate", String(id), "--quiet"])
        #expect(quiet.output.hasPrefix("pk_") && quiet.errors.isEmpty)
        let wrong = try runner.run(["api-key", "rotate", "none", "--quiet"])
        #expect(wrong.status == 66 && wrong.errors.hasPrefix("postern: "))
    }

    /// The error must say that the change was made.
    @Test func change_whoseOutputCannotBeWritten_isSaidToBeDone() throws {
        let runner = try CommandRunner.initialised()
        func run(_ words: String) throws -> ProgramRun {
            try ProgramRun(
                [
                    "/bin/sh", "-c", "exec \"$0\" \(words) > /dev/full",
                    CommandRunner.executable.path,
                ], input: Data(),
                environment: ["POSTERN_CONFIG": runner.configuration], directory: runner.folder)
        }
        let added = try run("team add juice --name Juice")
        #expect(
            added.status == 74 && added.errors.contains("the command's changes stay in force"),
            "\(added.errors)")
        #expect(
            try run("team list").errors == "postern: standard output: no space left on device\n")
        #expect(try runner.succeed("team", "list").hasPrefix("juice"))
    }

    @Test func error_withControlsThatWereTyped_doesNotReachTheTerminal() throws {
        let runner = try CommandRunner.initialised()
        for words in [
            ["team", "show", "x\u{1B}[31m"], ["source", "add", "x\u{9B}31m", "a\u{7}.example"],
        ] {
            let run = try runner.run(words)
            #expect(run.status != 0)
            #expect(
                !run.errors.unicodeScalars.contains {
                    $0 != "\n" && $0.properties.generalCategory == .control
                })
        }
    }

    @Test func argument_thatIsNotUTF8_isRefused() throws {
        let runner = try CommandRunner.initialised()
        let run = try ProgramRun(
            [
                "/bin/sh", "-c",
                "'\(CommandRunner.executable.path)' team add t --name \"$(printf 'bad\\377')\"",
            ], input: Data(),
            environment: ["POSTERN_CONFIG": runner.configuration], directory: runner.folder)
        #expect(
            run.status == 64 && run.errors.contains("an argument is not UTF-8"), "\(run.errors)")
        #expect(try runner.succeed("team", "list") == "")
    }
}
