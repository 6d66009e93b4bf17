// Postern's memory while many sessions send large messages at the same moment, and after very many
// messages.

import BenchReport
import Foundation
import PostfixHarness

/// Resident memory in MiB: the total, and its parts.
struct ResidentMemory {
    /// Without work, just before.
    var idle = 0.0
    /// The largest resident set (VmHWM). The values below add up to it only approximately, as their
    /// maxima need not be at the same time.
    var peak = 0.0
    /// The maximum of the process alone: heap, stacks, written data. Sampled.
    var anonymous = 0.0
    /// The maximum pages of files: program, libraries and database, which the kernel shares with
    /// others and can drop. Sampled.
    var files = 0.0
    /// The maximum of threads. Sampled.
    var threads = 0
    /// Messages that were deferred.
    var deferred = 0
}

enum Memory {
    /// Resident memory while `sessions` messages of a megabyte end at once, twice.
    static func measure(
        _ world: MailFixture, _ contestant: FilterUnderTest, sessions: Int
    ) throws -> ResidentMemory {
        let process = try world.fixture.process
        var memory = ResidentMemory()
        memory.idle = mebibytes(process, "VmRSS")
        // Makes VmHWM begin again at the present size.
        try "5".write(
            toFile: "/proc/\(process.identifier)/clear_refs", atomically: false, encoding: .utf8)
        let sampled = Watched(memory)
        let ended = Watched(false)
        let sampler = Thread {
            while !ended.with({ $0 }) {
                let (anonymous, files) = (
                    mebibytes(process, "RssAnon"), mebibytes(process, "RssFile")
                )
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
        let deferred = try Source(
            port: world.port(contestant), sessions: sessions, messages: sessions * 2,
            recipients: [world.recipient(contestant)],
            sender: { _ in sender }, message: world.message(contestant), together: true,
            deferrals: contestant == .reply ? ["452 4.3.1"] : []
        ).run().deferred
        try world.waitUntilDelivered()
        memory = sampled.with { $0 }
        memory.deferred = deferred
        memory.peak = mebibytes(process, "VmHWM")
        return memory
    }

    private static func mebibytes(_ process: ManagedProcess, _ field: String) -> Double {
        Double(process.memory(field) ?? 0) / 1024
    }

    /// Sends `messages`, a fifth of them replies, a twentieth of the others with a sender that must
    /// be stored. Measures the memory after each twentieth part.
    /// - Returns: MiB after each part: resident, and the part that belongs to the process alone.
    static func soak(
        _ world: MailFixture, messages: Int, sessions: Int
    ) throws -> [(resident: Double, anonymous: Double)] {
        let process = try world.fixture.process
        var samples: [(resident: Double, anonymous: Double)] = []
        let part = max(5, messages / 20)
        func send(
            _ contestant: FilterUnderTest, _ messages: Int,
            _ sender: @escaping @Sendable (Int) -> String
        ) throws {
            try Source(
                port: world.port(contestant), sessions: sessions, messages: messages,
                recipients: [world.recipient(contestant)],
                sender: sender,
                message: world.message(contestant)
            ).run()
        }
        for number in 0..<20 {
            try send(.forward, part - part / 5) {
                "bounce\($0 % 20 == 0 ? "-of-the-list-of-everybody-who-ever-bought-something-here" : "")+\(number)-\($0)@app.example"
            }
            let user = world.sender(.reply)
            try send(.reply, part / 5) { _ in user }
            try world.waitUntilDelivered()
            samples.append((mebibytes(process, "VmRSS"), mebibytes(process, "RssAnon")))
            print(
                String(
                    format: "%9d messages: %.1f MiB, of which %.1f MiB anonymous",
                    part * (number + 1), samples[number].resident,
                    samples[number].anonymous))
            fflush(nil)
        }
        return samples
    }
}
