// Printing checks: a line each for people and pipes, JSON for programs.

import Doctor
import Foundation

struct CheckRow: Encodable {
    let name: String
    let verdict: String
    let sentence: String
    let remedy: String?

    init(_ check: Check) {
        name = check.name
        verdict = check.verdict.rawValue
        sentence = check.sentence
        remedy = check.remedy
    }
}

enum CheckOutput {
    /// Prints the checks, what to do under each that is not well.
    static func print(_ checks: [Check], json: Bool) throws {
        if json { return try printJSON(checks.map(CheckRow.init)) }
        for check in checks {
            let word = check.verdict.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
            Swift.print("\(word)\(check.sentence)")
            if let remedy = check.remedy { Swift.print("          → \(remedy)") }
        }
    }
}
