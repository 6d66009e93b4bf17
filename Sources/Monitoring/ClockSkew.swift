// Clocks of hosts that differ: each compares its own with the store's, which is one for all.

import Database
import Foundation

package enum ClockSkew {
    /// Seconds. Return paths, codes and schedules are judged by whichever host meets them.
    package static let limit = 2.0

    /// Seconds by which this machine's clock is ahead of the store's. Blocks for a round trip, half of which is the error at
    /// most.
    package static func measure(_ database: any Database) throws(StoreFailure) -> Double {
        let before = Date().timeIntervalSince1970
        let store = try database.clock()
        let after = Date().timeIntervalSince1970
        return (before + after) / 2 - Double(store) / 1000
    }

    /// Which clocks differ; nil where none do. Those are named that are further from the store's clock than half of the limit: of
    /// two that differ by more than it, at least one is.
    package static func complaint(_ hosts: [(host: String, ahead: Double)]) -> String? {
        let all = hosts.map(\.ahead) + [0]
        guard let least = all.min(), let most = all.max(), most - least > limit else { return nil }
        let names = hosts.filter { abs($0.ahead) > limit / 2 }.map { host in
            String(format: "%@ is %.1f s %@", host.host, abs(host.ahead), host.ahead > 0 ? "ahead" : "behind")
        }
        return "clocks differ from the database's: \(names.joined(separator: ", "))"
    }

    /// Whole seconds; 0 where nothing is known.
    package static func seconds(_ ahead: Double?) -> Int64 { ahead.flatMap { Int64(exactly: $0.rounded()) } ?? 0 }

    package static let remedy = "let chrony or systemd-timesyncd synchronize the clock of every host"
}
