// postern top, on its own terminal.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct TopCommandTests {
    @Test(arguments: ["q", "\u{03}"]) func showsRatesUntilSomebodyQuitsAndPutsTheTerminalBack(_ key: String) throws {
        let runner = try CommandRunner.initialised()
        // script(1) gives it a terminal, whose size is nothing until someone says it.
        let command =
            "stty rows 30 cols 100; exec '\(CommandRunner.executable.path)' top --config '\(runner.configuration)' --interval 1"
        let process = try ManagedProcess("/usr/bin/script", ["-q", "-e", "-c", command, "/dev/null"])
        defer { process.end() }
        _ = try process.waitForLine(containing: "q quits")
        let rates = try process.waitForLine(containing: "relayed")
        #expect(rates.contains("relayed -") && rates.contains("decisions -"), "the first look has nothing to compare with")
        _ = try process.waitForLine(containing: "relayed 0.0/s")
        process.writeInput(key)
        #expect(try process.waitForExit() == 0)
        #expect(process.output.contains("\u{1B}[?1049h") && process.output.contains("\u{1B}[?25h\u{1B}[?1049l"))
    }

    @Test func withoutATerminalItNamesWhatToUse() throws {
        let runner = try CommandRunner.initialised()
        try runner.fail("top", status: 64, saying: "use postern status")
        try runner.fail("top", "--interval", "0", status: 64, saying: "1 to 60 seconds")
    }
}
