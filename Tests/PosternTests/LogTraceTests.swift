// Following a message through the logs.

import Foundation
import Monitoring
import TestSupport
import Testing

@Suite struct LogTraceTests {
    /// One message to two accounts, its copy, a bounce, and another message.
    static let log = """
        Nov 28 09:00:01 mx postfix/smtpd[11]: 4A1B2C3D4E: client=out.juice.example[192.0.2.1]
        Nov 28 09:00:01 mx postfix/cleanup[12]: 4A1B2C3D4E: message-id=<m-1@juice.example>
        Nov 28 09:00:01 mx postern[9]: info copy copy=5F5F5F5F5F queue=4A1B2C3D4E ref=abcdefgh
        Nov 28 09:00:01 mx postern[9]: info accept account=7 address=x7k2m9q4wd@relay.example direction=forward queue=4A1B2C3D4E ref=abcdefgh
        Nov 28 09:00:01 mx postfix/smtpd[13]: 5F5F5F5F5F: client=localhost[127.0.0.1]
        Nov 28 09:00:02 mx postfix/qmgr[4]: 4A1B2C3D4E: from=<m=juice.example.axabcdefg@relay.example>, size=1200, nrcpt=1
        Nov 28 09:00:03 mx postfix/smtp[14]: 4A1B2C3D4E: to=<jane@home.example>, orig_to=<x7k2m9q4wd@relay.example>, status=sent (250 ok)
        Nov 28 09:00:04 mx postfix/smtp[15]: 5F5F5F5F5F: to=<joe@home.example>, status=bounced (550 no such user)
        Nov 28 09:00:04 mx postfix/bounce[16]: 5F5F5F5F5F: sender non-delivery notification: 6A6A6A6A6A
        Nov 28 09:00:05 mx postfix/qmgr[4]: 6A6A6A6A6A: from=<>, size=900, nrcpt=1
        Nov 28 09:00:06 mx postfix/smtpd[11]: NOQUEUE: milter-reject: RCPT from x[192.0.2.9]: 550 5.1.1 No such address here [o27n2eps]; from=<a@b.example>
        Nov 28 09:00:06 mx postern[9]: notice 550 5.1.1 queue= reason=unknown ref=o27n2eps stage=rcpt
        Nov 28 09:00:07 mx postfix/smtpd[11]: 7B7B7B7B7B: client=other.example[192.0.2.2]
        {"level":"info","message":"accept","queue":"7B7B7B7B7B","ref":"bcdefghi"}
        """

    private func lines(_ clue: String) -> [String] {
        var trace = LogTrace()
        return trace.lines(about: clue, in: Array(Self.log.utf8).split(separator: 0x0A)).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    @Test(arguments: [
        "4A1B2C3D4E", "4a1b2c3d4e:", "<m-1@juice.example>", "[abcdefgh]", "5F5F5F5F5F",
        "6A6A6A6A6A", "jane@home.example",
    ])
    func lines_anyClueOfAMessage_areAllOfIt(clue: String) {
        let found = lines(clue)
        #expect(
            found.count == 10 && !found.contains { $0.contains("o27n2eps") || $0.contains("7B7B") },
            "\(found)")
    }

    @Test func lines_aRefusal_areThoseWithItsReference() {
        #expect(
            lines("o27n2eps").count == 2 && lines("7B7B7B7B7B").count == 2
                && lines("bcdefghi").count == 2)
        #expect(lines("4A1B2C").isEmpty && lines("").isEmpty && lines("nothing").isEmpty)
    }

    @Test(arguments: [
        (
            "mx postfix/smtp[4]: 4Zx: to=<jane@home.example>, orig_to=<x7k2m9q4wd@relay.example>, x",
            "mx postfix/smtp[4]: 4Zx: to=<j…@home.example>, orig_to=<x7k2m9q4wd@relay.example>, x"
        ),
        (
            "mx postfix/smtp[4]: 4Zx: to=<\"jane doe\"@home.example>",
            "mx postfix/smtp[4]: 4Zx: to=<\"…@home.example>"
        ),
        ("mx postfix/smtp[4]: 4Zx: to=<jane@[192.0.2.7]>", "mx postfix/smtp[4]: 4Zx: to=<j…@…>"),
        (
            "mx postfix/smtp[4]: 4Zx: status=bounced (550 jane.doe at home.example, mailto:jane%40home.example)",
            "mx postfix/smtp[4]: 4Zx: status=bounced (…)"
        ),
        (
            "mx postfix/smtp[4]: 4Zx: status=sent (250 2.0.0 Ok: queued as 5F5F5F5F5F)",
            "mx postfix/smtp[4]: 4Zx: status=sent (… queued as 5F5F5F5F5F)"
        ),
        (
            "mx postfix/smtpd[4]: NOQUEUE: reject: jane@home.example jane%40home.example jane\u{FF20}home.example",
            "mx postfix/smtpd[4]: NOQUEUE: reject: … … …"
        ),
        (
            "mx postfix/cleanup[4]: 4Zx: warning: header Subject: =?utf-8?Q?jane=40home.example?= from local",
            "mx postfix/cleanup[4]: 4Zx: warning: header Subject: … from local"
        ),
        (
            "mx postfix/smtpd[4]: helo=<mx.juice.example> from=<>",
            "mx postfix/smtpd[4]: helo=<mx.juice.example> from=<>"
        ),
        (
            "mx postern[9]: notice accept address=x7k2m9q4wd@relay.example",
            "mx postern[9]: notice accept address=x7k2m9q4wd@relay.example"
        ),
        (
            "2026-11-21T08:51:18.769Z notice 550 address=x7k2m9q4wd@relay.example",
            "2026-11-21T08:51:18.769Z notice 550 address=x7k2m9q4wd@relay.example"
        ),
        (
            "mx postfix/smtpd[4]: postern[9]: jane@home.example",
            "mx postfix/smtpd[4]: postern[9]: …"
        ),
        ("mx rspamd[4]: jane@home.example", "mx rspamd[4]: …"),
    ]) func masked_anyForm_showsNoInbox(line: String, masked: String) {
        #expect(LogTrace.masked(Array(line.utf8)[...]) { $0.hasSuffix("@relay.example") } == masked)
    }
}

@Suite(.blocking) struct TraceCommandTests {
    @Test func trace_aQueueID_showsItsLinesWithoutTheInbox() throws {
        let runner = try CommandRunner.initialised()
        try Data(LogTraceTests.log.utf8).write(to: runner.folder.appendingPathComponent("mail.log"))
        let shown = try runner.succeed("trace", "4A1B2C3D4E", "--log", "mail.log")
        #expect(
            shown.split(separator: "\n").count == 10 && !shown.contains("jane@")
                && shown.contains("j…@home.example"))
        #expect(shown.contains("x7k2m9q4wd@relay.example") && !shown.contains("m=juice.example"))
        #expect(!(try runner.succeed("audit", "--action", "mail.trace")).contains("mail"))
        #expect(
            try runner.succeed("trace", "4A1B2C3D4E", "--log", "mail.log", "--reveal").contains(
                "to=<jane@home.example>"))
        for clue in ["jane＠home.example", "jane%40home.example", "jane", "<jane@home.example>"] {
            _ = try runner.run(["trace", clue, "--log", "mail.log", "--reveal"])
        }
        let audit = try runner.succeed("audit", "--action", "mail.trace")
        #expect(
            audit.contains("mail.trace\tmail\t4A1B2C3D4E") && !audit.contains("jane"), "\(audit)")
        try runner.fail(
            "trace", "ABCDEF0123", "--log", "mail.log", status: 66,
            saying: "no line has it among 14 lines")
        try runner.fail("trace", "x", "--log", "none.log", status: 66, saying: "none.log")
    }

    @Test func decode_anyAddressAtARelayDomain_namesItsAccount() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("source", "add", "juice", "juice.example")
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        let address = try runner.succeed("address", "issue", "juice", "jane")
        let shown = try runner.succeed("address", "decode", address)
        #expect(
            shown.contains("kind\trelay address") && shown.contains("user\tjane")
                && shown.contains("account\t1"))
        try runner.fail(
            "address", "decode", "a@elsewhere.example", status: 65, saying: "not at a relay domain")
        try runner.fail(
            "address", "decode", "nobody22222@relay.example", status: 66, saying: "no relay address"
        )
    }
}
