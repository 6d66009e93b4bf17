// What the policy tests share: folders, the conformance data, time zones from the system.

import Foundation
import RiskPolicy
import Testing

enum Folders {
    static let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    static let policies = package.appending(path: "policy")
    static let conformance =
        ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"].map { URL(filePath: $0) }
        ?? package.deletingLastPathComponent().appending(path: "shared/conformance")
    static let hasConformance = FileManager.default.fileExists(atPath: conformance.path)
    static let skipped: Comment = "skipped: no conformance data (set POSTERN_CONFORMANCE)"
}

extension TimeZoneOffsets {
    /// IANA names by the system's database.
    static let system = TimeZoneOffsets { zone, seconds in
        TimeZone(identifier: zone).map { Int64($0.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))) }
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// What generators begin with: `POSTERN_GENERATE=SEED:COUNT`, or what the test says.
enum Generated {
    static func seed(default seed: UInt64, count: Int) -> (seed: UInt64, count: Int) {
        let parts = (ProcessInfo.processInfo.environment["POSTERN_GENERATE"] ?? "").split(separator: ":")
        guard parts.count == 2, let other = UInt64(parts[0]), let more = Int(parts[1]) else { return (seed, count) }
        return (other, more)
    }
}
