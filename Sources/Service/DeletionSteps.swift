// What has expired is deleted step by step, with room in between for those who write.

import Foundation

/// Deletions of any number of rows, none of which others notice.
enum DeletionSteps {
    /// Runs `step` until there was nothing to delete. Between two steps others write for as long as one took, since those who
    /// wait for their turn would else have every second one at the most. Blocks.
    /// - Parameter step: deletes some rows, some ten milliseconds' worth; how many, of whatever tables.
    static func run(_ step: () throws -> Int) throws {
        while true {
            let start = ContinuousClock.now
            guard try step() > 0 else { return }
            Thread.sleep(forTimeInterval: (ContinuousClock.now - start) / .seconds(1))
        }
    }
}
