// Bodies through Postfix and the filter, octet by octet.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct BodyTests {
    /// 8-bit octets, dots at line starts, long lines, white space at line ends, no
    /// NUL and no bare CR or LF.
    private static let difficult: [UInt8] = {
        var body = [UInt8]()
        let lines: [[UInt8]] = [
            Array(".".utf8), Array("..".utf8), Array(".leading dot".utf8),
            Array("trailing  \t ".utf8), [],
            Array(0x80...0xFF), Array("grüße".utf8), Array(repeating: 0x78, count: 998),
            Array(repeating: 0x79, count: 5000), [],
            Array("From the start".utf8), [0x01, 0x02, 0x7F], [],
        ]
        for line in lines { body += line + [0x0D, 0x0A] }
        return body
    }()

    @Test func body_replaced_arrivesUnchanged() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        try Data(Self.difficult).write(to: URL(fileURLWithPath: fixture.folder + "/body"))
        try fixture.script("body \(fixture.folder)/body\n")
        let message = try fixture.relay(
            mail([
                "From: a@out.test", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
            ]))
        #expect(message.body == Self.difficult)
    }

    @Test func body_sent_reachesFilterUnchanged() throws {
        let fixture = try PostfixFixture("body-echo\n")
        defer { fixture.stop() }
        let header = Array(mail(["From: a@out.test"], body: "").utf8)
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"], message: header + Self.difficult)
        #expect(result.data?.code == 250)
        let message = try fixture.sink.wait(for: 1)[0]
        #expect(message.body == Self.difficult)
        #expect(fixture.seen("eom").first?.contains("body=\(Self.difficult.count) ") == true)
    }

    @Test func body_emptiedOrFilled_isDelivered() throws {
        let fixture = try PostfixFixture("body-empty\n")
        defer { fixture.stop() }
        #expect(try fixture.relay(mail(["From: a@out.test"])).body.isEmpty)
        try Data("filled\r\n".utf8).write(to: URL(fileURLWithPath: fixture.folder + "/body"))
        try fixture.script("body \(fixture.folder)/body\n")
        #expect(
            try fixture.relay(mail(["From: a@out.test"], body: "")).body == Array("filled\r\n".utf8)
        )
    }

    /// Postfix ends a body that does not end in CRLF.
    @Test func body_withoutLineEnd_getsOne() throws {
        let fixture = try PostfixFixture()
        defer { fixture.stop() }
        try Data("no end".utf8).write(to: URL(fileURLWithPath: fixture.folder + "/body"))
        try fixture.script("body \(fixture.folder)/body\n")
        #expect(try fixture.relay(mail(["From: a@out.test"])).body == Array("no end\r\n".utf8))
    }

    @Test func body_of25Megabytes_keepsFilterSmall() throws {
        let fixture = try PostfixFixture("add X-Seen  yes\n")
        defer { fixture.stop() }
        let line = Array(String(repeating: "0123456789abcdef", count: 4).utf8) + [0x0D, 0x0A]
        var body = [UInt8]()
        body.reserveCapacity(26_000_000)
        while body.count < 25_000_000 { body += line }
        let result = try fixture.postfix.send(
            from: "<a@out.test>", to: ["<user@relay.test>"],
            message: Array("From: a@out.test\r\n\r\n".utf8) + body)
        #expect(result.data?.code == 250)
        let message = try fixture.sink.wait(for: 1)[0]
        #expect(message.body == body)
        let memory = try #require(fixture.filter.memory("VmHWM"))
        print("filter after a message of 25 MB: at most \(memory) KiB")
        #expect(memory < 60_000)
    }
}
