// postern status --watch, on a separate terminal.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct StatusWatchTests {
    @Test(arguments: ["q", "\u{03}"]) func watch_keyOfQuitting_restoresTerminal(
        _ key: String
    ) throws {
        let runner = try CommandRunner.initialised()
        // script(1) gives it a terminal, whose size is 0 until it is set.
        let command =
            "stty rows 30 cols 100; exec '\(CommandRunner.executable.path)' status --watch --config '\(runner.configuration)' --interval 1"
        let process = try ManagedProcess(
            "/usr/bin/script", ["-q", "-e", "-c", command, "/dev/null"])
        defer { process.end() }
        _ = try process.waitForLine(containing: "q quits")
        let rates = try process.waitForLine(containing: "relayed")
        #expect(
            rates.contains("relayed -") && rates.contains("decisions -"),
            "the first look has nothing to compare with")
        _ = try process.waitForLine(containing: "relayed 0.0/s")
        process.writeInput(key)
        #expect(try process.waitForExit() == 0)
        #expect(
            process.output.contains("\u{1B}[?1049h")
                && process.output.contains("\u{1B}[?25h\u{1B}[?1049l"))
    }

    @Test func watch_withoutATerminal_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.fail("status", "--watch", status: 64, saying: "--watch needs a terminal")
    }

    @Test(
        arguments: [
            (["--watch", "--json"], "--watch and --json exclude each other"),
            (["--watch", "--dmarc"], "--watch and --dmarc exclude each other"),
            (["--interval", "2"], "--interval is for --watch"),
            (["--watch", "--interval", "0"], "--interval must be 1 to 60 seconds"),
            (["--watch", "--interval", "61"], "--interval must be 1 to 60 seconds"),
        ])
    func watch_optionsThatDoNotGoTogether_areRefused(_ options: [String], _ reason: String) throws {
        let result = try CommandRunner().run(["status"] + options)
        #expect(result.status == 64 && result.output == "")
        #expect(result.errors == "postern: \(reason); see postern status --help\n")
    }
}
