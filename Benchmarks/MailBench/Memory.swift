// How much memory Postern takes while many sessions hand over large messages at the same moment, and after very many messages.

import BenchReport
import Foundation
import PostfixHarness

/// Resident memory in MiB: what counts, and of what it consists.
struct ResidentMemory {
    /// When nothing goes on, just before.
    var idle = 0.0
    /// The largest resident set (VmHWM), to which everything below adds up only nearly: they need not be largest at the same time.
    var peak = 0.0
    /// The most that belongs to the process alone: heap, stacks, data that was written to. Sampled.
    var anonymous = 0.0
    /// The most pages of files: program, libraries and database, which the kernel shares with others and can drop. Sampled.
    var files = 0.0
    /// The most threads. Sampled.
    var threads = 0
}

enum Memory {
    /// Resident memory while `sessions` messages of a megabyte end at once, twice.
    static func measure(_ world: World, _ contestant: Contestant, sessions: Int) throws -> ResidentMemory {
        let process = try world.rig.process
        var memory = ResidentMemory()
        memory.idle = mebibytes(process, "VmRSS")
        // Makes VmHWM begin anew at the present size.
        try "5".write(toFile: "/proc/\(process.identifier)/clear_refs", atomically: false, encoding: .utf8)
        let sampled = Watched(memory)
        let ended = Watched(false)
        let sampler = Thread {
            while !ended.with({ $0 }) {
                let (anonymous, files) = (mebibytes(process, "RssAnon"), mebibytes(process, "RssFile"))
                let threads = process.memory("Threads") ?? 0
                sampled.with {
                    $0.anonymous = max($0.anonymous, anonymous)
                    $0.files = max($0.files, files)
                    $0.threads = max($0.threads, threads)
                }
                usleep(10_000)
            }
        }
        sampler.start()
        defer { ended.with { $0 = true } }
        let sender = world.sender(contestant)
        try Source(
            port: world.port(contestant), sessions: sessions, messages: sessions * 2, recipients: [world.recipient(contestant)],
            sender: { _ in sender }, message: world.message(contestant), together: true
        ).run()
        try world.waitUntilDelivered()
        memory = sampled.with { $0 }
        memory.peak = mebibytes(process, "VmHWM")
        return memory
    }

    private static func mebibytes(_ process: ManagedProcess, _ field: String) -> Double { Double(process.memory(field) ?? 0) / 1024 }

    /// Sends `messages` and looks at the resident memory after each twentieth part. Gives MiB: after the first and the last tenth.
    static func soak(_ world: World, messages: Int, sessions: Int) throws -> (first: Double, last: Double, samples: [Double]) {
        let process = try world.rig.process
        var samples: [Double] = []
        let part = max(1, messages / 20)
        for number in 0..<20 {
            try Source(
                port: world.port(.forward), sessions: sessions, messages: part, recipients: [world.recipient(.forward)],
                sender: { "bounce+\(number)-\($0)@app.example" }, message: world.message(.forward)
            ).run()
            try world.waitUntilDelivered()
            samples.append(Double(process.memory("VmRSS") ?? 0) / 1024)
            print(String(format: "%9d messages: %.1f MiB", part * (number + 1), samples[number]))
            fflush(nil)
        }
        return (samples[1], samples[19], samples)
    }
}
