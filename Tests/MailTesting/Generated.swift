// How much generated tests generate.

import Foundation

/// Settings of generators: short in every run, long by hand.
package enum Generated {
    /// The seed and the number of cases: `POSTERN_GENERATED=SEED:COUNT`, else seed 1 and the test's own number.
    package static func settings(count: Int) -> (seed: UInt64, count: Int) {
        let parts = (ProcessInfo.processInfo.environment["POSTERN_GENERATED"] ?? "").split(separator: ":")
        guard parts.count == 2, let seed = UInt64(parts[0]), let wanted = Int(parts[1]) else { return (1, count) }
        return (seed, wanted)
    }
}
