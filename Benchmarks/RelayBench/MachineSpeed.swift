// The current speed of the machine: a fixed piece of work, timed next to each message, so that a
// bound counts work and not the machine.

import Foundation

func cpuSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

enum MachineSpeed {
    /// Milliseconds of that work on the machine for which the bounds are made (AMD EPYC, virtual).
    private static let standard = 4.45
    private static let octets = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    /// FNV-1a: one octet after another, so that a processor cannot do parts in parallel.
    @inline(never) private static func work() -> UInt64 {
        octets.withUnsafeBufferPointer {
            $0.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        }
    }

    /// The factor by which work takes longer here and now than on that machine.
    static func factor() -> Double {
        let start = cpuSeconds()
        guard work() != 0 else { return 1 }
        return (cpuSeconds() - start) * 1000 / standard
    }
}
