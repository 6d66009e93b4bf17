// The life of `postern serve` next to a running Postfix: stopped, reloaded, started twice, killed.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayLifeTests {
    @Test func service_sigtermWhileIdle_ends() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let idle = try fixture.postfix.connect()
        try idle.expect(250, "EHLO client.test")
        let process = try fixture.process
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0, "\(process.output)")
        #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/milter.sock"))
    }

    /// SIGTERM right after the announcement must be handled: it must not kill the process and leave
    /// socket and counters behind.
    @Test func service_sigtermRightAfterStart_endsGracefully() throws {
        let (fixture, _) = try RelayFixtures.anna()
        defer { fixture.stop() }
        for _ in 0..<5 {
            #expect(try fixture.end(SIGTERM) == 0)
            #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/milter.sock"))
            try fixture.serve()
        }
    }

    @Test func service_sigtermInTransaction_finishesItFirst() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        try client.expect(250, "MAIL FROM:<bounce@juice.example>")
        try client.expect(250, "RCPT TO:<\(address)>")
        let process = try fixture.process
        process.signal(SIGTERM)
        // After the signal, a new message is deferred, and its sender keeps it.
        try wait("a new message is deferred", atMost: 60) {
            let other = try fixture.postfix.connect()
            _ = try other.command("EHLO client.test")
            return try other.command("MAIL FROM:<bounce@juice.example>").code / 100 == 4
        }
        let text = RelayFixtures.message(to: address).replacingOccurrences(of: "\n", with: "\r\n")
        #expect(try client.data(Array(text.utf8)).code == 250)
        #expect(try process.waitForExit() == 0)
        #expect(
            try fixture.arrival(for: "anna@home.example").address("From").hasSuffix(
                "@relay.example"))
    }

    @Test func service_away_defersMail() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.end()
        let result = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(
            (result.data ?? result.recipients.first).map { $0.code / 100 } == 4
                || result.mail.code / 100 == 4, "\(result)")
        try fixture.serve()
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address)
            ).data?.code == 250)
    }

    @Test func service_sighup_reloadsConfiguration() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let text = try String(contentsOfFile: fixture.configuration, encoding: .utf8)
        let limited = text.replacingOccurrences(
            of: "  # messages_per_day: 100", with: "  messages_per_day: 1")
        try #require(limited != text)
        try limited.write(toFile: fixture.configuration, atomically: true, encoding: .utf8)
        let process = try fixture.process
        process.signal(SIGHUP)
        try process.waitForLine(containing: "configuration reloaded")
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address)
            ).data?.code == 250)
        let second = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(second.data.map { "\($0)" }?.hasPrefix("452 4.7.1") == true, "\(second)")

        try (text + "\nlimitz: 1\n").write(
            toFile: fixture.configuration, atomically: true, encoding: .utf8)
        process.signal(SIGHUP)
        let line = try process.waitForLine(containing: "not reloaded")
        #expect(line.contains("limitz"))
    }

    @Test func service_secondOnSameSocket_isRefused() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let second = try ManagedProcess.run(
            fixture.program,
            [
                "serve", "--config", fixture.configuration, "--set",
                "milter.socket=\(fixture.socket)", "--set",
                "dns.servers=\(fixture.dns.address)",
            ])
        #expect(second.status == 69, "\(second)")
        #expect(second.output.contains("another process is already listening on unix:"))
        #expect(second.output.split(separator: "\n").filter { $0.hasPrefix("postern:") }.count == 1)
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address)
            ).data?.code == 250)
    }

    @Test func service_killedDuringTransactions_losesNoMail() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { $0.settings["limits.messages_per_day"] = "100000" })
        defer { fixture.stop() }
        let open = Watched(Set(1...200))
        let deferrals = Watched(0)
        let underway = Watched(0)
        let isBack = Watched(true)
        let group = DispatchGroup()
        let lanes = 10
        for lane in 0..<lanes {
            group.enter()
            Thread.detachNewThread {
                defer { group.leave() }
                for number in stride(from: lane + 1, through: 200, by: lanes) {
                    var isAccepted = false
                    // A sender that keeps its mail tries again. The limit is for a relay that never
                    // returns.
                    for _ in 0..<600 where !isAccepted {
                        let text = RelayFixtures.message(
                            to: address, id: "m\(number)@juice.example")
                        let result = try? fixture.send(
                            from: "bounce@juice.example", to: [address], text)
                        underway.with { $0 += 1 }
                        isAccepted = result?.data?.code == 250
                        if !isAccepted {
                            deferrals.with { $0 += 1 }
                            let worst =
                                [
                                    result?.mail.code, result?.recipients.first?.code,
                                    result?.data?.code,
                                ].compactMap { $0 }.max()
                                ?? 0
                            if worst / 100 == 5 {
                                Issue.record(
                                    "a 5xx while the relay was away: \(String(describing: result))")
                            }
                            // A sender tries again from time to time, and at once when the relay is
                            // back.
                            _ = isBack.wait(seconds: 0.05) { $0 ? true : nil }
                        }
                    }
                    if isAccepted { open.with { _ = $0.remove(number) } }
                }
            }
        }
        _ = underway.wait(seconds: standardTimeout) { $0 >= 60 ? true : nil }
        isBack.with { $0 = false }
        #expect(try fixture.end(SIGKILL) == 128 + SIGKILL)
        _ = deferrals.wait(seconds: standardTimeout) { $0 >= 20 ? true : nil }
        try fixture.serve()
        isBack.with { $0 = true }
        #expect(group.wait(timeout: .now() + 120) == .success)
        #expect(open.with { $0.isEmpty })
        #expect(deferrals.with { $0 } >= 20)
        try fixture.postfix.waitUntilDone()
        let arrived = fixture.sink.messages
        let ids = arrived.compactMap { $0.value("Message-ID") }
        #expect(
            ids.count == 200 && Set(ids).count == 200,
            "\(ids.count) arrived, \(Set(ids).count) different")
        #expect(
            arrived.allSatisfy {
                $0.recipients == ["<anna@home.example>"]
                    && $0.address("From").hasSuffix("@relay.example")
            })
    }
}
