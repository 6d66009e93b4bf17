// Printing checks: one line for each check for people and pipes, JSON for programs.

import Doctor
import Foundation

/// Checks as the commands print them.
enum CheckOutput {
    /// Prints the checks, with the remedy below each check that is not ok.
    static func print(_ checks: [Check], of installation: InstallationOptions, json: Bool) throws {
        let checks = checks.map { $0.with(installation.forProposals) }
        if json {
            return try printJSON(checks)
        }
        for check in checks {
            let word = check.verdict.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
            Swift.print("\(word)\(check.sentence)")
            if let remedy = check.remedy { Swift.print("          → \(remedy.text)") }
        }
    }
}
