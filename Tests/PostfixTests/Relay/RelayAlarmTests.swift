// Problems that the operator must be informed of: mail at a dead end, and a full disk.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayAlarmTests {
    /// Such a message would wait for five days, so doctor, status and metrics must report it.
    @Test func parkedMessage_inTheQueue_isReported() throws {
        let (fixture, anna) = try RelayFixtures.anna(
            RelayFixtures.options {
                $0.parks = true
                $0.postfix["smtp_tls_security_level"] = "may"
                $0.services = ["127.0.0.1:{port} inet n - n - - smtpd -o smtpd_milters="]
            })
        defer { fixture.stop() }
        func status() throws -> (status: Int32, output: String) {
            try ManagedProcess.run(
                fixture.program, ["status", "--config", fixture.configuration] + fixture.settings)
        }
        func doctor() throws -> String {
            try ManagedProcess.run(
                fixture.program,
                [
                    "doctor", "--config-directory", fixture.postfix.configuration, "--config",
                    fixture.configuration, "--skip",
                    "outside",
                    "--skip", "probe",
                ]
                    + fixture.settings
            ).output
        }
        #expect(
            try !status().output.contains("in Postfix's queue")
                && !doctor().contains("in the queue"))
        let text = Array(
            RelayFixtures.message(to: anna).replacingOccurrences(of: "\n", with: "\r\n").utf8)
        let past = try SMTPClient.send(
            port: fixture.postfix.ports[0], from: "<bounce@juice.example>", to: ["<\(anna)>"],
            message: text, xclient: [])
        #expect(past.data?.code == 250, "\(past)")
        try fixture.postfix.waitForLog(containing: "status=deferred")
        #expect(try doctor().contains("1 message in the queue is for addresses at a relay domain"))
        // It checks once at its start, and then each minute.
        try fixture.end()
        try fixture.serve()
        try fixture.process.waitForLine(containing: "messages in Postfix's queue")
        let end = Date(timeIntervalSinceNow: 30)
        var found = try status()
        while !found.output.contains("1 message in Postfix's queue is"), Date() < end {
            found = try status()
        }
        #expect(
            found.status == 1 && found.output.contains("1 message in Postfix's queue is"),
            "\(found.output)")
        #expect(fixture.sink.messages.isEmpty)
    }

    /// Whether this user may mount its own file system.
    private static let mayMount: Bool = {
        let folder = NSTemporaryDirectory() + "postern-mount-" + UUID().uuidString.prefix(8)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        guard geteuid() == 0,
            (try? FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)) != nil,
            (try? ManagedProcess.run(
                "/bin/mount", ["-t", "tmpfs", "-o", "size=65536", "tmpfs", folder]))?.status == 0
        else { return false }
        return (try? ManagedProcess.run("/bin/umount", [folder]))?.status == 0
    }()

    /// On a full disk no copy can be recorded, so copies must not be made again for each
    /// repetition, and `/readyz` and status must report it.
    @Test(.enabled(if: mayMount, "a file system of its own needs the right to mount"))
    func fanOut_diskFull_sendsEachCopyOnce() throws {
        let port = try FreePort.next()
        let fixture = try RelayFixture(
            RelayFixtures.options {
                $0.fansOut = true
                $0.diskSize = 24 << 20
                $0.settings["limits.messages_per_day"] = "1000000"
                $0.settings["http.listen"] = "127.0.0.1:\(port)"
            })
        defer { fixture.stop() }
        func readiness(until wanted: String, beside work: () throws -> Void = {}) throws -> String {
            let end = Date(timeIntervalSinceNow: 30)
            while true {
                try work()
                let found = try ManagedProcess.run(
                    "/usr/bin/curl",
                    [
                        "-s", "-o", "/dev/null", "-w", "%{http_code}",
                        "http://127.0.0.1:\(port)/readyz",
                    ]
                ).output
                if found == wanted || Date() > end { return found }
            }
        }
        #expect(try readiness(until: "200") == "200")
        try fixture.addTeam("juice", name: "The Juice Company", source: RelayFixtures.team)
        let addresses = try (0..<5).map { number in
            try fixture.addUser("user\(number)", inboxes: ["user\(number)@home.example"])
            return try fixture.address("juice", "user\(number)")
        }
        func send(_ id: Int) throws -> SMTPTransactionResult {
            let text =
                "Date: Sat, 21 Nov 2026 12:00:00 +0000\n"
                + RelayFixtures.message(
                    to: "undisclosed-recipients:;", id: "full\(id)@juice.example")
            return try fixture.send(from: "bounce@juice.example", to: addresses, text)
        }
        let filler = fixture.folder + "/postern/filler"
        // Fills the free space, at last octet by octet.
        for size in ["1M", "4k", "1"] {
            _ = try ManagedProcess.run(
                "/bin/sh", ["-c", "dd if=/dev/zero bs=\(size) >> '\(filler)' 2>/dev/null; true"])
        }
        // The log of the database has some space left, and sometimes begins again. A message that
        // can be recorded is accepted; all others are deferred.
        var id = 0
        var deferred = 0
        while deferred < 3 {
            let code = try send(id).data?.code
            if code == 250 { id += 1 } else { deferred += 1 }
            #expect(code == 250 || code == 451)
            try #require(id < 500, "the disk is full, and all is taken")
        }
        // When the log begins again, it needs little space for a long time, so mail fills it.
        func fill() throws { if try send(id).data?.code == 250 { id += 1 } }
        let end = Date(timeIntervalSinceNow: 30)
        var found: (status: Int32, output: String)
        repeat {
            try fill()
            found = try ManagedProcess.run(
                fixture.program, ["status", "--config", fixture.configuration] + fixture.settings)
        } while !found.output.contains("disk full") && Date() < end
        #expect(found.status == 1 && found.output.contains("disk full"), "\(found.output)")
        let doctor = try ManagedProcess.run(
            fixture.program,
            [
                "doctor", "--config", fixture.configuration, "--skip", "outside", "--skip", "probe",
                "--skip", "postfix",
            ]
                + fixture.settings)
        #expect(doctor.status == 1 && doctor.output.contains("broken  "), "\(doctor.output)")
        #expect(try readiness(until: "503", beside: fill) == "503")
        try FileManager.default.removeItem(atPath: filler)
        #expect(try readiness(until: "200") == "200")
        #expect(try send(id).data?.code == 250)
        _ = try fixture.sink.wait(for: (id + 1) * addresses.count)
        try fixture.postfix.waitUntilDone()
        let arrived = fixture.sink.messages.map {
            ($0.value("Message-ID") ?? "") + $0.recipients.joined()
        }
        #expect(
            arrived.count == (id + 1) * addresses.count && Set(arrived).count == arrived.count,
            "each once, whatever happened")
    }
}
