// The number of cases that generated tests create.

import Foundation

/// Settings of generators: few cases in every run, many on request.
package enum Generated {
    /// The seed and the number of cases: `POSTERN_GENERATED=SEED:COUNT`, or the test's own.
    /// `make check` uses a part of the test's own: POSTERN_TEST_SHARE=8 is an eighth.
    /// - Parameter variable: the name of the variable.
    package static func settings(
        seed: UInt64 = 1, count: Int, variable: String = "POSTERN_GENERATED"
    ) -> (seed: UInt64, count: Int) {
        let parts = (ProcessInfo.processInfo.environment[variable] ?? "").split(separator: ":")
        guard parts.count == 2, let other = UInt64(parts[0]), let wanted = Int(parts[1]) else {
            let share =
                ProcessInfo.processInfo.environment["POSTERN_TEST_SHARE"].flatMap { Int($0) } ?? 1
            return (seed, max(1, count / max(1, share)))
        }
        return (other, wanted)
    }
}
