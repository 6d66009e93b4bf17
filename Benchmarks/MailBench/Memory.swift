// How much memory Postern takes while many sessions hand over large messages at the same moment, and after very many messages.

import BenchReport
import Foundation
import PostfixHarness

enum Memory {
    /// Peak of the resident memory while `sessions` messages of a megabyte end at once.
    static func measure(_ world: World, _ contestant: Contestant, sessions: Int) throws -> Double {
        let process = try world.rig.process
        // Makes VmHWM begin anew at the present size.
        try "5".write(toFile: "/proc/\(process.identifier)/clear_refs", atomically: false, encoding: .utf8)
        let sender = world.sender(contestant)
        try Source(
            port: world.port(contestant), sessions: sessions, messages: sessions * 2, recipients: [world.recipient(contestant)],
            sender: { _ in sender }, message: world.message(contestant), together: true
        ).run()
        try world.waitUntilDelivered()
        return Double(process.memory("VmHWM") ?? 0) / 1024
    }

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
