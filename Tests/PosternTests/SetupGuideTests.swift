// The guided first start: its questions, its commands, and that it can be repeated.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@testable import postern

@Suite(.blocking) struct SetupGuideTests {
    /// A person with these answers; all commands succeed except the named ones.
    private final class Person: SetupDialogue {
        var answers: [String]
        let failing: String?
        let existing: Set<String>
        var said: [String] = []
        var commands: [String] = []

        init(_ answers: [String], failing: String? = nil, existing: Set<String> = []) {
            (self.answers, self.failing, self.existing) = (answers, failing, existing)
        }

        func say(_ text: String) { said.append(text) }
        func answer() -> String? { answers.isEmpty ? nil : answers.removeFirst() }
        func run(_ command: GuidedCommand) -> Int32 {
            let text = Self.text(command)
            commands.append(text)
            return text == failing ? 1 : 0
        }
        func succeeds(_ command: GuidedCommand) -> Bool { existing.contains(Self.text(command)) }
        private static func text(_ command: GuidedCommand) -> String {
            command.line(postern: "postern").joined(separator: " ")
        }
    }

    private static let situation = SetupSituation(
        configuration: "/d/postern.yaml", hostname: "mx.relay.example")

    @Test func setup_firstStart_showsAndRunsEachCommand() throws {
        let person = Person(["relay.example", "", "you@home.example", "", "y", "yes"])
        try SetupGuide(dialogue: person, situation: Self.situation).run()
        #expect(
            person.commands == [
                "postern init --directory /d --relay-domain relay.example --operator-address you@home.example --set hostname=mx.relay.example",
                "postern config check", "systemctl enable --now postern", "postern setup postfix",
                "postern setup postfix --apply", "postfix reload",
                "postern team add try --name A try",
                "postern source add try you@home.example",
                "postern user add you --inbox you@home.example --verified",
                "postern address issue try you", "postern doctor",
            ])
        #expect(person.said.contains { $0.contains("relay.example. IN MX 10 mx.relay.example.") })
        for command in person.commands {
            #expect(
                person.said.contains {
                    $0.hasPrefix("$ ") && $0.filter { $0 != "\"" } == "$ " + command
                }, "\(command)")
        }
    }

    /// The user and the program have the same name: only the program's is replaced.
    @Test func command_runAsTheUserPostern_namesUserAndProgram() {
        var command = GuidedCommand.postern("user", "add", "postern")
        #expect(
            command.line(postern: "/opt/bin/postern") == [
                "/opt/bin/postern", "user", "add", "postern",
            ])
        command.user = "postern"
        #expect(
            command.line(postern: "/opt/bin/postern")
                == ["runuser", "-u", "postern", "--", "/opt/bin/postern", "user", "add", "postern"])
        #expect(command.shown == "runuser -u postern -- postern user add postern")
    }

    @Test func setup_invalidAnswers_asksAgain() throws {
        let person = Person([
            "", "not a domain", "relay.example.", "Relay.example", "mx", "mx.relay.example", "you",
            "me@relay.example",
        ])
        #expect(throws: SetupGuide.Ending.noMoreAnswers) {
            try SetupGuide(dialogue: person, situation: Self.situation).run()
        }
        #expect(person.commands.isEmpty)
        #expect(person.said.contains("\"me@relay.example\" must not be at the relay domain."))
    }

    @Test func setup_stepsAlreadyDone_skipsThem() throws {
        var situation = Self.situation
        situation.isInstalled = true
        situation.switchesUser = true
        (situation.hasPostfix, situation.hasSystemd) = (false, false)
        let as_ = "runuser -u postern -- "
        let person = Person(
            ["", "you@home.example"],
            existing: [as_ + "postern team show try", as_ + "postern user show you"])
        try SetupGuide(dialogue: person, situation: situation).run()
        #expect(
            person.commands == [
                as_ + "postern keys dkim publish", as_ + "postern config check",
                as_ + "postern address issue try you",
                "postern doctor",
            ])
    }

    @Test func setup_commandFails_ends() {
        let person = Person(
            ["relay.example", "", "you@home.example", "n"], failing: "postern config check")
        #expect(throws: SetupGuide.Ending.failed) {
            try SetupGuide(dialogue: person, situation: Self.situation).run()
        }
        #expect(person.commands.count == 2)
    }

    /// With the real commands, on a separate terminal.
    @Test func setup_onATerminal_createsInstallation() throws {
        let runner = try CommandRunner()
        let folder = runner.folder.appendingPathComponent("data").path
        let run = try ManagedProcess(
            "/usr/bin/env",
            ["script", "-qec", "\(CommandRunner.executable.path) setup", "/dev/null"],
            environment: [
                "POSTERN_CONFIG": folder + "/postern.yaml", "TERM": "dumb", "SHELL": "/bin/bash",
            ],
            directory: runner.folder.path)
        run.writeInput("relay.example\nmx.relay.example\nyou@home.example\n")
        try run.waitForLine(containing: "2. The DNS")
        run.closeInput()
        _ = try run.waitForExit()
        #expect(
            run.output.contains("$ postern init") || run.output.contains("postern init --directory")
        )
        #expect(run.output.contains("_domainkey.relay.example"))
        #expect(FileManager.default.fileExists(atPath: folder + "/postern.keys"))
    }

    /// It must write into the folder of the configuration, and to the file name that it then uses.
    @Test func setup_configurationPath_findsItsFolder() throws {
        let runner = try CommandRunner()
        let folder = runner.folder.path
        func found(_ path: String) throws -> String {
            try SetupSituation.here(["POSTERN_CONFIG": path]).configuration
        }
        #expect(try found(folder + "/new/") == folder + "/new/postern.yaml")
        #expect(try found(folder) == folder + "/postern.yaml")
        #expect(try found(folder + "/new/postern.yaml") == folder + "/new/postern.yaml")
        #expect(throws: (any Error).self) { try found(folder + "/new/relay.yaml") }
    }

    @Test func setup_withoutATerminal_namesOtherCommands() throws {
        let runner = try CommandRunner()
        try runner.fail("setup", status: 64, saying: "postern init, postern setup postfix")
    }
}
