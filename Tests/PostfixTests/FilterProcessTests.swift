// The life of a milter process next to a running Postfix: start, stop, kill, restart.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct FilterProcessTests {
    private static let message = Array(mail(["From: a@out.test"]).utf8)

    @Test func filter_sigterm_finishesOpenMessageOnly() throws {
        let fixture = try PostfixFixture("add X-Seen  yes\n")
        defer { fixture.stop() }
        let open = try fixture.postfix.connect()
        let idle = try fixture.postfix.connect()
        for client in [open, idle] { try client.expect(250, "EHLO client.test") }
        try open.expect(250, "MAIL FROM:<a@out.test>")
        try open.expect(250, "RCPT TO:<user@relay.test>")
        fixture.filter.signal(SIGTERM)
        try fixture.filter.waitForLine(containing: "signal \(SIGTERM)")
        // A new connection, and a new message on an old one, are deferred; both clients keep their
        // mail. The log line comes a moment before that begins.
        try wait("new messages are refused", atMost: 20) {
            let new = try fixture.postfix.connect()
            defer { new.quit() }
            _ = try new.command("EHLO client.test")
            return try new.command("MAIL FROM:<a@out.test>").code == 451
        }
        #expect([421, 451].contains(try idle.command("MAIL FROM:<a@out.test>").code))
        // The open message is completed.
        #expect(try open.data(Self.message).code == 250)
        #expect(try fixture.filter.waitForExit() == 0)
        #expect(fixture.filter.output.contains("cut off 0"))
        #expect(try fixture.sink.wait(for: 1)[0].fields.contains("X-Seen: yes"))
        #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/filter.sock"))
    }

    @Test func filter_sigtermWhileIdle_ends() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        fixture.filter.signal(SIGTERM)
        #expect(try fixture.filter.waitForExit() == 0)
        // The old connection's filter has ended, so Postfix does not let its mail pass.
        #expect(try client.command("MAIL FROM:<a@out.test>").code / 100 == 4)
    }

    @Test func filter_sighup_keepsRunning() throws {
        let fixture = try PostfixFixture("add X-Seen  yes\n")
        defer { fixture.stop() }
        fixture.filter.signal(SIGHUP)
        try fixture.filter.waitForLine(containing: "signal \(SIGHUP)")
        #expect(
            try fixture.relay(String(decoding: Self.message, as: UTF8.self)).fields.contains(
                "X-Seen: yes"))
    }

    @Test func filter_secondOnSameSocket_isRefused() throws {
        let fixture = try PostfixFixture("add X-Seen  yes\n")
        defer { fixture.stop() }
        let second = try ManagedProcess(
            ManagedProcess.builtProduct("postfix-test-filter"), [fixture.socket])
        defer { second.end() }
        #expect(try second.waitForExit() == EX_UNAVAILABLE)
        #expect(second.output.contains("another process is already listening on \(fixture.socket)"))
        #expect(
            try fixture.relay(String(decoding: Self.message, as: UTF8.self)).fields.contains(
                "X-Seen: yes"))
    }

    @Test func session_quitOrClosed_isReleased() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        for number in 0..<30 {
            let client = try fixture.postfix.connect()
            try client.expect(250, "EHLO client.test")
            try client.expect(250, "MAIL FROM:<a@out.test>")
            try client.expect(250, "RCPT TO:<user@relay.test>")
            // Some clients close the connection in the middle of a message.
            if number % 3 == 0 { #expect(try client.data(Self.message).code == 250) }
            if number % 2 == 0 { client.quit() } else { client.close() }
        }
        let closed = fixture.filter.wait { $0.filter { $0 == "closed" }.count == 30 ? true : nil }
        #expect(closed == true, "\(fixture.seen("closed").count) of 30")
        #expect(
            fixture.seen("connect").count == 30 && fixture.seen("eom").count == 10
                && fixture.seen("abort").count == 20)
    }

    @Test func filter_portInUse_isRefused() throws {
        let sink = try SMTPSink()
        defer { sink.stop() }
        let filter = try ManagedProcess(
            ManagedProcess.builtProduct("postfix-test-filter"), ["inet:127.0.0.1:\(sink.port)"])
        defer { filter.end() }
        #expect(try filter.waitForExit() == EX_UNAVAILABLE)
        #expect(
            filter.output.contains(
                "another process is already listening on inet:127.0.0.1:\(sink.port)"))
    }

    @Test func filter_fileAtSocketPath_leavesItAlone() throws {
        let folder = try PostfixFixture.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try "precious".write(toFile: folder + "/file", atomically: true, encoding: .utf8)
        let filter = try ManagedProcess(
            ManagedProcess.builtProduct("postfix-test-filter"), ["unix:\(folder)/file"])
        defer { filter.end() }
        #expect(try filter.waitForExit() == EX_UNAVAILABLE)
        #expect(try String(contentsOfFile: folder + "/file", encoding: .utf8) == "precious")
    }

    @Test func filter_killedInMidMessage_defersAndRestarts() throws {
        let fixture = try PostfixFixture("add X-Seen  yes\n")
        defer { fixture.stop() }
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        try client.expect(250, "MAIL FROM:<a@out.test>")
        try client.expect(250, "RCPT TO:<user@relay.test>")
        fixture.filter.signal(SIGKILL)
        #expect(try fixture.filter.waitForExit() == 128 + SIGKILL)
        #expect(try client.data(Self.message).code == 451)
        client.quit()
        #expect(
            try fixture.postfix.send(
                from: "<a@out.test>", to: ["<user@relay.test>"], message: Self.message
            ).mail.code == 451)
        #expect(FileManager.default.fileExists(atPath: fixture.folder + "/filter.sock"))
        let next = try PostfixFixture.startFilter(fixture.folder)
        defer { next.end() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Self.message)
        #expect(result.data?.code == 250)
        #expect(try fixture.sink.wait(for: 1).allSatisfy { $0.fields.contains("X-Seen: yes") })
        try fixture.postfix.waitUntilDone()
        #expect(fixture.sink.messages.count == 1)
    }

    @Test(arguments: ["2", "3", "4"]) func filter_olderMilterProtocol_isRefused(
        _ version: String
    ) throws {
        let fixture = try PostfixFixture(settings: ["milter_protocol": version])
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Self.message)
        #expect(result.mail.code == 451)
        let reason = try fixture.filter.waitForLine(containing: "refused an MTA")
        #expect(reason.contains("milter_protocol = 6"))
        #expect(fixture.sink.messages.isEmpty)
    }

    @Test func filter_undeclaredAction_isNotTaken() throws {
        let fixture = try PostfixFixture("needs no-actions\nadd X-A  a\n")
        defer { fixture.stop() }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: Self.message)
        #expect(result.data?.code == 451)
        try fixture.filter.waitForLine(containing: "did not declare")
    }
}
