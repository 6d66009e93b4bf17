// What became of forwards, from a real Postfix: its log, and its reports to the return path.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayDeliveryTests {
    private struct Figures: Decodable {
        let team: String
        let provider: String
        let counts: [String: Int]
    }

    private static func figures(_ fixture: RelayFixture) throws -> [String: [String: Int]] {
        let text = try fixture.run(["delivery", "show", "--team", "juice", "--json"])
        let all = try JSONDecoder().decode([Figures].self, from: Data(text.utf8))
        return Dictionary(uniqueKeysWithValues: all.map { ($0.provider, $0.counts) })
    }

    /// Tries until the condition holds: the log and the counts follow within moments.
    private static func eventually(_ holds: () throws -> Bool) rethrows -> Bool {
        let end = ContinuousClock.now + .seconds(standardTimeout)
        while ContinuousClock.now < end {
            if try holds() { return true }
            usleep(50_000)
        }
        return false
    }

    @Test func forwards_deliveredDeferredAndRefused_areCountedOnce() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options {
                $0.zone = $0.zone.replacing(
                    "\"home.example\": {",
                    with: "\"home.example\": {\"MX\": [[10, \"mx1.gmx.net\"]], ")
            })
        defer { fixture.stop() }
        func send(_ number: Int) throws {
            #expect(
                try fixture.send(
                    from: "bounce@juice.example", to: [address],
                    RelayFixtures.message(to: address, id: "\(number)@juice.example")
                ).data?.code == 250)
        }
        try send(1)
        _ = try fixture.arrival(for: "anna@home.example")
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = [
            "<anna@home.example>":
                "450 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to user complaints"
        ]
        fixture.sink.set(behaviour)
        try send(2)
        #expect(Self.eventually { fixture.postfix.log.contains("status=deferred") })
        behaviour.refusedRecipients = [
            "<anna@home.example>": "550 5.7.1 Our system has detected unsolicited mail"
        ]
        fixture.sink.set(behaviour)
        try send(3)
        // When the report has arrived here, the failure is counted.
        _ = try fixture.arrival(for: "bounce@juice.example")

        let log = fixture.folder + "/mail.log"
        func read() throws -> String {
            try (fixture.postfix.log + "\n").write(
                toFile: log, atomically: false, encoding: .utf8)
            return try fixture.run(["delivery", "read", log])
        }
        #expect(try read().contains("2 results"), "\(fixture.postfix.log)")
        #expect(try read().contains("0 results"), "read before")
        #expect(
            try Self.eventually { try Self.figures(fixture)["united-internet"]?["reputation"] == 1 }
        )
        let figures = try Self.figures(fixture)
        // By the MX of the inbox, as the report names no host that could be trusted.
        #expect(figures["united-internet"]?["forwarded"] == 3, "\(figures)")
        // By the host that Postfix was connected to.
        #expect(figures["other"]?["delivered"] == 1, "\(figures)")
        #expect(figures["other"]?["reputation"] == 1, "\(figures)")
        #expect(figures["other"]?["forwarded"] == 0, "\(figures)")
        #expect(try !fixture.run(["delivery", "show"]).contains("home.example"))
    }

    /// A host on its first day: what is beyond the ceiling gets 451 from a real Postfix, and codes
    /// and replies leave.
    @Test func forward_beyondTheWarmUp_isDeferredAndRepliesLeave() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options {
                // Before the first day, the ceiling of the first day holds.
                $0.settings["delivery.warm_up"] = "2999-01-01"
                $0.settings["limits.messages_per_day"] = "1000"
            })
        defer { fixture.stop() }
        func send(_ number: Int) throws -> SMTPServerReply? {
            try fixture.send(
                from: "bounce@juice.example", to: [address],
                RelayFixtures.message(to: address, id: "\(number)@juice.example")
            ).data
        }
        let reverse = try fixture.reverseAddress(of: "news@juice.example", for: address)
        for number in 1...100 { #expect(try send(number)?.code == 250) }
        let last = try send(101)
        #expect(last?.code == 451)
        #expect(last?.lines.last?.contains("4.4.5") == true, "\(String(describing: last))")
        // A reply of the user is no forward.
        #expect(
            try fixture.send(
                from: "anna@home.example", to: [reverse],
                "From: anna@home.example\nTo: \(reverse)\nMessage-ID: <r@home.example>\n\nHello\n"
            ).data?.code == 250)
        _ = try fixture.arrival(for: "news@juice.example")
        let status = try ManagedProcess.run(
            fixture.program, ["status", "--config", fixture.configuration]
        ).output
        #expect(status.contains("is new (delivery.warm_up)"), "\(status)")
    }

    @Test func serve_withALog_countsResultsAcrossARestart() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { $0.settings["delivery.log"] = "mail.log" })
        defer { fixture.stop() }
        let log = fixture.folder + "/postern/mail.log"
        var written = 0
        func write() throws {
            let lines = fixture.postfix.logLines
            let new = lines.dropFirst(written).map { $0 + "\n" }.joined()
            written = lines.count
            if !FileManager.default.fileExists(atPath: log) {
                try Data().write(to: URL(filePath: log))
            }
            let handle = try FileHandle(forWritingTo: URL(filePath: log))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data(new.utf8))
            try handle.close()
        }
        func send(_ number: Int) throws {
            #expect(
                try fixture.send(
                    from: "bounce@juice.example", to: [address],
                    RelayFixtures.message(to: address, id: "\(number)@juice.example")
                ).data?.code == 250)
            _ = try fixture.arrival(for: "anna@home.example")
            #expect(
                Self.eventually {
                    fixture.postfix.log.split(separator: "status=sent").count > number
                })
            try write()
        }
        func isDelivered(_ count: Int) throws -> Bool {
            try Self.figures(fixture).values.contains { $0["delivered"] == count }
        }
        // Without a log, status says so, and mail flows.
        #expect(
            try Self.eventually {
                try ManagedProcess.run(
                    fixture.program, ["status", "--config", fixture.configuration]
                ).output.contains("No such file or directory")
            })
        try send(1)
        #expect(try Self.eventually { try isDelivered(1) })
        try fixture.end()
        try fixture.serve()
        try send(2)
        #expect(try Self.eventually { try isDelivered(2) })
    }
}
