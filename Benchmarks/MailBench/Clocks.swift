// Time in terms of processor time. Wall time says little on a machine with other users.

import Foundation

enum Clock {
    /// Seconds of processor time that a process has used, with all its threads, including ended
    /// ones.
    static func process(_ pid: Int32) -> Double {
        var clock = clockid_t()
        guard clock_getcpuclockid(pid, &clock) == 0 else { return 0 }
        return read(clock)
    }

    /// Seconds of processor time that the calling thread has used.
    static func thread() -> Double { read(CLOCK_THREAD_CPUTIME_ID) }

    /// Seconds of a clock that only goes forward.
    static func wall() -> Double { read(CLOCK_MONOTONIC) }

    private static func read(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Seconds of processor time of all processes that this process started, and of those that they
    /// started, including ended ones. This process itself does not count. In steps of 10 ms for
    /// each process.
    static func descendants() -> Double {
        var parents: [Int32: Int32] = [:]
        var ticks: [Int32: (own: Int, ended: Int)] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let pid = Int32(name),
                let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
                let end = text.lastIndex(of: ")")
            else { continue }
            // After the name in parentheses: state, ppid, …; utime is the 12th from
            // there, then stime, cutime, cstime.
            let fields = text[text.index(after: end)...].split(separator: " ")
            guard fields.count > 15, let parent = Int32(fields[1]) else { continue }
            let times = fields[11...14].map { Int($0) ?? 0 }
            parents[pid] = parent
            ticks[pid] = (times[0] + times[1], times[2] + times[3])
        }
        let own = getpid()
        var total = ticks[own]?.ended ?? 0
        for (pid, used) in ticks where pid != own {
            var ancestor = parents[pid] ?? 0
            while ancestor > 1, ancestor != own { ancestor = parents[ancestor] ?? 0 }
            if ancestor == own { total += used.own + used.ended }
        }
        return Double(total) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
