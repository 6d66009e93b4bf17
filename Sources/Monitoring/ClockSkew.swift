// Clock differences between hosts: each host compares its clock with that of the store,
// which all hosts share.

import Database
import Foundation
import Support

package enum ClockSkew {
    /// The limit in seconds. Any host may check return paths, codes and schedules, so the clocks
    /// must agree.
    package static let limit = 2.0

    /// Seconds by which this machine's clock is ahead of the store's. Blocks for one round trip;
    /// the error is at most half of it.
    package static func measure(_ database: any Database) throws(StoreFailure) -> Double {
        let before = Date().timeIntervalSince1970
        let store = try database.clock()
        let after = Date().timeIntervalSince1970
        return (before + after) / 2 - Double(store) / 1000
    }

    /// A description of the clocks that differ; nil if none do. Names each host whose clock differs
    /// from the store's by more than half of the limit. If two clocks differ by more than the
    /// limit, this is true of at least one of them.
    package static func complaint(_ hosts: [(host: String, ahead: Double)]) -> String? {
        let all = hosts.map(\.ahead) + [0]
        guard let least = all.min(), let most = all.max(), most - least > limit else { return nil }
        let names = hosts.filter { abs($0.ahead) > limit / 2 }.map { host in
            String(
                format: "%@ is %.1f s %@", host.host, abs(host.ahead),
                host.ahead > 0 ? "ahead" : "behind")
        }
        return "clocks differ from the database's: \(names.joined(separator: ", "))"
    }

    /// Whole seconds; 0 if the difference is not known.
    package static func seconds(_ ahead: Double?) -> Int64 {
        ahead.flatMap { Int64(exactly: $0.rounded()) } ?? 0
    }

    package static let remedy: Remedy =
        "let chrony or systemd-timesyncd synchronize the clock of every host"
}
