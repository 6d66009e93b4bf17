// RelayMilter, event by event: its answers, its requests to the MTA, and the state that it leaves
// for the next message.

import InternetMessage
import LeakSearch
import MailTesting
import Milter
import MilterTesting
import TestSupport
import Testing

@testable import RelayCore
@testable import RelayMilter

/// A rewriter that misses everything.
private struct BlindRewriter: BodyRewriting {
    func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        let content = StretchMap.Content.text(
            StretchMap.Form(), [StretchMap.Stretch(end: body.count, kind: .typed)])
        return RewrittenBody(
            contentFields: [], body: nil, reasons: [], map: StretchMap(body.count, content))
    }
}

@Suite(.blocking) struct RelayMilterTests {
    private let connection = MilterTransaction().connect(daemonName: "smtp").helo("client.test")

    private func statuses(_ message: MessageOutcome, _ recipients: [String]) -> [String] {
        recipients.map { message.reply(to: $0)?.status ?? "-" }
    }

    // MARK: Answers

    @Test func recipient_anyPath_isAnsweredAtRCPT() {
        let fixture = RelayMilterFixture()
        let recipients = [
            "<annarelay2@relay.example>", "<AnnaRelay2@Relay.Example>",
            "<bobrelay22@relay.example>", "<nobody@relay.example>",
            "<aaaaaaaaaa@relay.example>", "<someone@elsewhere.example>",
            "<postmaster@relay.example>", "<@relay.example>",
            "<a@b@relay.example>",
        ]
        let transaction = recipients.reduce(connection.mail("<b@app.example>")) { $0.rcpt($1) }
        let message = fixture.play(transaction.teamMessage().endOfMessage()).message
        #expect(
            statuses(message, recipients) == [
                "continue", "continue", "452 4.5.3", "550 5.1.1", "550 5.1.1", "452 4.5.3",
                "451 4.3.5", "550 5.1.1", "550 5.1.1",
            ])
        #expect(message.recipients == ["<annarelay2@relay.example>", "<AnnaRelay2@Relay.Example>"])
        #expect(message.delivered?.recipients == ["<anna@inbox.example>"])
    }

    /// RCPT must not reveal whether a reverse address belongs to the relay address's account.
    @Test func recipient_reverseBesideRelayAddress_isTakenAtRCPT() {
        for account in [RelayMilterFixture.anna, RelayMilterFixture.bob] {
            let fixture = RelayMilterFixture()
            let recipients = [
                "<annarelay2@relay.example>", fixture.reverse(account, "billing@app.example"),
            ]
            let transaction = recipients.reduce(connection.mail("<b@app.example>")) { $0.rcpt($1) }
            let message = fixture.play(transaction.teamMessage().endOfMessage()).message
            #expect(statuses(message, recipients) == ["continue", "continue"])
            #expect(message.delivered == nil)
        }
    }

    @Test func refusal_eachStage_carriesTheLoggedReference() throws {
        let fixture = RelayMilterFixture()
        let outcome = fixture.play(
            connection.mail("<b@app.example>").rcpt("<nobody@relay.example>").rcpt(
                "<annarelay2@relay.example>"
            ).rcpt(
                "<bobrelay22@relay.example>"
            )
            .message(Array("From: x@stranger.example\r\n\r\nx\r\n".utf8)).endOfMessage()
            .mail("<b@app.example>").rcpt("<nobody@relay.example>"))
        let replies = outcome.messages.flatMap(\.answers).map(\.reply).filter { $0 != .continue }
        #expect(replies.map(\.status) == ["550 5.1.1", "452 4.5.3", "550 5.7.1", "550 5.1.1"])
        let references = try replies.map { try #require($0.parts).reference }
        #expect(
            references.allSatisfy { $0.count == 8 } && Set(references[..<3]).count == 1
                && references[3] != references[0])
        for reference in references {
            #expect(fixture.log.lines.contains { $0.contains("ref=\(reference)") })
        }
        #expect(fixture.log.lines.count == 4)
    }

    /// Text that the rewriting misses is refused as an unrewritable part. It is an error in the
    /// log, which contains nothing of the inbox.
    @Test func log_leakCheckIncident_isAnError() {
        let fixture = RelayMilterFixture()
        let engine = fixture.engine.rewriting { _, _ in BlindRewriter() }
        fixture.exchange(for: engine)
        let reverse = fixture.reverse(RelayMilterFixture.anna, "billing@app.example")
        let message = fixture.play(
            connection.mail("<anna@inbox.example>").rcpt(reverse).annasMessage(
                body: "Write to ANNA@inbox.example\r\n"
            )
            .endOfMessage()
        ).message
        #expect(message.final.status == "550 5.7.7" && message.modifications.isEmpty)
        #expect(
            fixture.log.lines.contains {
                $0.hasPrefix("error 550 5.7.7") && $0.contains("reason=leak-incident")
            })
    }

    @Test func log_refusedMessages_nameTheRelayAddressAndTheTeam() {
        let fixture = RelayMilterFixture()
        let stranger = connection.mail("<b@app.example>")
        let reverse = fixture.reverse(RelayMilterFixture.anna, "billing@app.example")
        let refused: [(MilterTransaction, reason: String, names: [String])] = [
            (
                stranger.rcpt("<nobody2222@relay.example>"), "unknown-address",
                ["address=nobody2222@relay.example"]
            ),
            (
                stranger.rcpt("<annarelay2@relay.example>").message(
                    Array("From: x@stranger.example\r\n\r\nx\r\n".utf8)),
                "unregistered-source", ["address=annarelay2@relay.example", "team=app"]
            ),
            (
                stranger.rcpt("<annarelay2@relay.example>").message(
                    Array("From: x@app.example\r\n\r\nx\r\n".utf8)),
                "proof-failed", ["address=annarelay2@relay.example", "team=app"]
            ),
            (
                stranger.rcpt(reverse).message(Array("From: anna@inbox.example\r\n\r\nx\r\n".utf8)),
                "reply-not-proved",
                ["address=annarelay2@relay.example", "team=app"]
            ),
            (
                stranger.rcpt("<\(fixture.returnPath(RelayMilterFixture.anna))>").message(
                    Array("From: anna@inbox.example\r\n\r\nx\r\n".utf8)), "bad-return-path",
                ["address=annarelay2@relay.example", "team=app"]
            ),
        ]
        for (transaction, reason, names) in refused {
            _ = fixture.play(transaction.endOfMessage())
            let line = fixture.log.lines.last { $0.contains("reason=\(reason)") } ?? ""
            for name in names {
                #expect(line.contains(name), "\(reason): \(fixture.log.lines.suffix(2))")
            }
        }
    }

    /// For the user's page: the last author. Does not include refused messages or replies.
    @Test func forwarded_ofMessages_isReportedOnceEach() {
        let fixture = RelayMilterFixture()
        let team = connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>")
        _ = fixture.play(team.teamMessage(body: "one\r\n").endOfMessage())
        _ = fixture.play(
            team.message(Array("From: x@app.example\r\n\r\nx\r\n".utf8)).endOfMessage())
        #expect(fixture.forwarded.all.map(\.account) == [RelayMilterFixture.anna.number])
        #expect(
            fixture.forwarded.all.allSatisfy {
                $0.author.domain == "app.example" && $0.isRegistered
            })
    }

    /// A link that stayed is counted, and not only logged.
    @Test func forward_linkLeftPastTheRelay_isCounted() {
        let fixture = RelayMilterFixture()
        func forward(_ text: String) -> MessageOutcome {
            fixture.play(
                connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>").teamMessage(
                    body: text + "\r\n"
                )
                .endOfMessage()
            ).message
        }
        // Its line would become longer than allowed.
        let long = String(repeating: "y", count: 950) + " mailto:eva@app.example"
        #expect(forward("mailto:eva@app.example").delivered?.recipients == ["<anna@inbox.example>"])
        #expect(fixture.metrics.linksLeft.count == 0)
        #expect(forward(long).delivered?.recipients == ["<anna@inbox.example>"])
        #expect(fixture.metrics.linksLeft.count == 1)
        #expect(fixture.metrics.registry.text().contains("\npostern_links_left_total 1\n"))
    }

    @Test func recipient_storeDown_isTemporaryFailure() {
        let fixture = RelayMilterFixture()
        fixture.directory.goDown()
        let message = fixture.play(
            connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>")
        ).message
        #expect(statuses(message, ["<annarelay2@relay.example>"]) == ["451 4.3.0"])
    }

    /// The end of the header section is not answered, as that would cost every message a round
    /// trip.
    @Test func message_badHeaderSection_isRefusedAtItsEnd() {
        let fixture = RelayMilterFixture()
        for field in ["X-Nul: a\0b\r\n", "From: second@app.example\r\n"] {
            let message = fixture.play(
                connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>").teamMessage(
                    field
                ).endOfMessage()
            ).message
            #expect(
                message.answers.last?.stage == "end of message"
                    && message.final.status.hasPrefix("550 5."))
            #expect(message.delivered == nil && message.modifications.isEmpty)
        }
    }

    /// Chunks are not answered, so the answer must wait, and the rest of the body passes.
    @Test func message_bodyTooLarge_isRefusedAtItsEnd() {
        var limits = RelayLimits()
        limits.messageSize = 100_000
        let body = String(repeating: "x\r\n", count: 100_000)
        let large = RelayMilterFixture(limits: limits)
        let forward = large.play(
            connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>").teamMessage(
                body: body
            ).endOfMessage()
        ).message
        #expect(
            forward.answers.last?.stage == "end of message" && forward.final.status == "552 5.3.4"
                && forward.modifications.isEmpty)

        let full = RelayMilterFixture(replyMemory: 12_000_000)
        let reverse = full.reverse(RelayMilterFixture.anna, "billing@app.example")
        let first = full.handler.makeSession(
            connection: MilterConnection(hostName: "client.test", peer: .ipv4("192.0.2.1", port: 1))
        )
        _ = first.mail("<anna@inbox.example>", arguments: [], macros: NoMacros())
        _ = first.recipient(reverse, arguments: [], macros: NoMacros())
        for field in ["From: anna@inbox.example", "X-Test-Proved: inbox.example"] {
            let parts = field.split(separator: ":", maxSplits: 1)
            _ = first.header(name: Array(parts[0].utf8), value: Array(parts[1].utf8))
        }
        _ = first.endOfHeaders()
        Array(repeating: UInt8(ascii: "x"), count: 1_400_000).withUnsafeBytes { _ = first.body($0) }
        #expect(full.engine.replyMemory.inUse > 1_400_000)
        let other = String(repeating: "x\r\n", count: 500_000)
        let begun = connection.mail("<anna@inbox.example>").rcpt(reverse)
        // Alone it would fit later.
        let reply = full.play(begun.annasMessage(body: other).endOfMessage()).message
        #expect(reply.final.status == "452 4.3.1" && reply.modifications.isEmpty)
        first.abort()
        #expect(full.engine.replyMemory.inUse == 0)
        #expect(full.play(begun.annasMessage(body: other).endOfMessage()).message.final == .accept)
        // This message never fits, so a retry would be useless.
        let never = full.play(begun.annasMessage(body: other + other).endOfMessage()).message
        #expect(never.final.status == "552 5.3.4" && never.modifications.isEmpty)
        #expect(full.engine.replyMemory.inUse == 0)
    }

    // MARK: Modifications

    @Test func forward_foldedFields_areRewrittenWithCRLF() throws {
        let fixture = RelayMilterFixture()
        let message = fixture.play(
            connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>")
                .teamMessage(
                    "Cc: Eve\r\n\t<eve@app.example>,\r\n bob@app.example\r\nSubject: a\r\n b\r\nDKIM-Signature: v=1;\r\n\tb=x\r\n"
                ).endOfMessage()
        ).message
        let delivered = try #require(message.delivered)
        #expect(delivered.recipients == ["<anna@inbox.example>"])
        #expect(delivered.mailFrom.hasSuffix("@relay.example>"))
        let eve = fixture.reverse(RelayMilterFixture.anna, "eve@app.example")
        let bob = fixture.reverse(RelayMilterFixture.anna, "bob@app.example")
        #expect(delivered.values("Cc") == ["Eve\r\n\t\(eve),\r\n \"bob at app.example\" \(bob)"])
        #expect(delivered.values("Subject") == ["a\r\n b"])
        #expect(delivered.values("DKIM-Signature").isEmpty)
        #expect(
            delivered.values("Authentication-Results") == [
                "mx.relay.example;\r\n\tdkim=pass header.d=app.example header.s=s header.a=rsa-sha256"
            ])
        #expect(delivered.body == Array("Hello\r\n".utf8))
        for modification in message.modifications {
            guard case .changeHeader(_, _, let value?) = modification else { continue }
            #expect(HeaderField(name: "X", rawValue: value).controls.isEmpty)
        }
    }

    @Test func reply_inboxInHeaderAndBody_isRemoved() throws {
        let fixture = RelayMilterFixture()
        let reverse = fixture.reverse(RelayMilterFixture.anna, "billing@app.example")
        let message = fixture.play(
            connection.mail("<anna@inbox.example>").rcpt(reverse)
                .annasMessage(
                    "To: \(reverse)\r\nReceived: from home.example\r\n\tby mx.inbox.example\r\nReceived: from x\r\nX-Mailer: y\r\n",
                    body: "I am anna@inbox.example\r\n"
                )
                .endOfMessage()
        ).message
        let delivered = try #require(message.delivered)
        #expect(delivered.recipients == ["<billing@app.example>"])
        #expect(
            String(decoding: delivered.body, as: UTF8.self) == "I am annarelay2@relay.example\r\n")
        let text = String(decoding: delivered.message, as: UTF8.self)
        #expect(
            !text.contains("inbox.example") && !text.contains("Received")
                && !text.contains("X-Test") && !text.contains(reverse))
    }

    @Test func message_forOtherDomain_isAcceptedUnchanged() {
        let fixture = RelayMilterFixture()
        let message = fixture.play(
            connection.mail("<a@b.example>").rcpt("<c@elsewhere.example>").message(
                Array("From: a@b.example\r\nX: a\0b\r\n\r\nx\r\n".utf8)
            ).endOfMessage()
        ).message
        #expect(
            message.final == .accept && message.modifications.isEmpty
                && message.delivered == message.original)
        #expect(fixture.log.lines.isEmpty)
    }

    /// Found by the fuzz target `milter`: mail for other domains passes at the end of its header
    /// section. Events after that must still be handled.
    @Test func recipient_afterData_isTemporaryFailure() {
        let message = RelayMilterFixture().play(
            connection.mail("<b@app.example>").rcpt("<someone@elsewhere.example>").body("x\r\n")
                .rcpt(
                    "<bobrelay22@relay.example>"
                ).endOfMessage()
        ).message
        #expect(message.reply(to: "<bobrelay22@relay.example>")?.status == "451 4.3.5")
        #expect(message.recipients == ["<someone@elsewhere.example>"])
    }

    @Test func message_unprovedAutoReply_isDiscarded() {
        let fixture = RelayMilterFixture()
        let message = fixture.play(
            connection.mail("<>").rcpt("<\(fixture.returnPath(RelayMilterFixture.anna))>")
                .message(
                    Array(
                        "From: anna@inbox.example\r\nAuto-Submitted: auto-replied\r\n\r\nAway\r\n"
                            .utf8)
                ).endOfMessage()
        ).message
        #expect(
            message.final == .discard && message.modifications.isEmpty && message.delivered == nil)
    }

    /// Postfix's own bounces come without brackets, and must not be refused permanently: they would
    /// be lost, or reveal the inbox.
    @Test func internalListener_refusal_isTemporary() throws {
        let fixture = RelayMilterFixture()
        let inside = MilterTransaction().connect(
            "localhost", peer: .unknown, daemonName: "internal")
        let refused = ["nobody@relay.example", "bobrelay22@relay.example"]
        let transaction = refused.reduce(inside.mail("").rcpt("annarelay2@relay.example")) {
            $0.rcpt($1)
        }
        let message = fixture.play(
            transaction.message(Array("From: MAILER-DAEMON@relay.example\r\n\r\nx\r\n".utf8))
                .endOfMessage()
        )
        .message
        #expect(statuses(message, refused) == ["451 4.3.0", "452 4.5.3"])
        #expect(message.final.status == "451 4.3.0")
        // The same from outside is refused.
        let outside = fixture.play(connection.mail("<>").rcpt("<nobody@relay.example>")).message
        #expect(statuses(outside, ["<nobody@relay.example>"]) == ["550 5.1.1"])

        let report = """
            From: MAILER-DAEMON@relay.example\r
            Subject: Undelivered Mail Returned to Sender\r
            MIME-Version: 1.0\r
            Content-Type: multipart/report; report-type=delivery-status; boundary=b\r
            \r
            --b\r
            Content-Type: message/delivery-status\r
            \r
            Reporting-MTA: dns; relay.example\r
            \r
            Final-Recipient: rfc822; anna@inbox.example\r
            Action: failed\r
            Status: 5.1.1\r
            Diagnostic-Code: smtp; 550 5.1.1 <anna@inbox.example> unknown\r
            \r
            --b--\r

            """
        let bounced = fixture.play(
            inside.mail("").rcpt(fixture.returnPath(RelayMilterFixture.anna)).message(
                Array(report.utf8)
            ).endOfMessage()
        ).message
        let delivered = try #require(bounced.delivered)
        #expect(delivered.mailFrom == "<>" && delivered.recipients == ["<bounce@app.example>"])
        #expect(!String(decoding: delivered.message, as: UTF8.self).contains("inbox.example"))
    }

    /// sendmail(1) on the relay's host: Postfix ignores an answer to RCPT there, and returns mail
    /// that is refused at the end.
    @Test(arguments: [
        (["nobody@relay.example"], "550 5.1.1"), (["annarelay2@relay.example"], "550 5.7.1"),
        (["annarelay2@relay.example", "nobody@relay.example"], "550 5.1.1"),
        (["annarelay2@relay.example", "bobrelay22@relay.example"], "550 5.5.3"),
    ])
    func localMail_refusedRecipient_isRejectedAtTheEnd(recipients: [String], status: String) {
        let fixture = RelayMilterFixture()
        let inside = MilterTransaction().connect(
            "localhost", peer: .unknown, daemonName: "internal"
        ).mail(
            "root@mx.relay.example")
        let message = fixture.play(
            recipients.reduce(inside) { $0.rcpt($1) }.message(
                Array("From: root@mx.relay.example\r\n\r\nx\r\n".utf8)
            )
            .endOfMessage()
        ).message
        #expect(message.recipients.count == recipients.count)
        #expect(message.final.status == status && message.delivered == nil)
    }

    @Test func localMail_storeAway_waits() {
        let fixture = RelayMilterFixture()
        fixture.directory.goDown()
        let inside = MilterTransaction().connect(
            "localhost", peer: .unknown, daemonName: "internal"
        ).mail(
            "root@mx.relay.example")
        let message = fixture.play(
            inside.rcpt("nobody1@relay.example").rcpt("annarelay2@relay.example")
                .message(Array("From: root@mx.relay.example\r\n\r\nx\r\n".utf8)).endOfMessage()
        ).message
        #expect(message.final.status == "451 4.3.0")
    }

    // MARK: One message after another

    @Test func connection_severalMessages_keepsThemApart() throws {
        let fixture = RelayMilterFixture()
        let reverse = fixture.reverse(RelayMilterFixture.bob, "billing@app.example")
        let outcome = fixture.play(
            connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>").teamMessage(
                "X-Postern-Forged: 1\r\n"
            )
            .endOfMessage()
            .mail("<b@app.example>").rcpt("<bobrelay22@relay.example>").teamMessage().endOfMessage()
            .mail("<x@stranger.example>").rcpt("<bobrelay22@relay.example>").message(
                Array("From: x@stranger.example\r\n\r\n".utf8)
            ).endOfMessage()
            .mail("<c@elsewhere.example>").rcpt("<c@elsewhere.example>").message(
                Array("From: c@elsewhere.example\r\n\r\n".utf8)
            ).endOfMessage()
            .mail("<bob@inbox.example>").rcpt(reverse)
            .message(
                Array("X-Test-Proved: inbox.example\r\nFrom: bob@inbox.example\r\n\r\nx\r\n".utf8)
            ).endOfMessage())
        #expect(
            outcome.messages.map { $0.delivered?.recipients ?? [] } == [
                ["<anna@inbox.example>"], ["<bob@inbox.example>"], [], ["<c@elsewhere.example>"],
                ["<billing@app.example>"],
            ])
        #expect(
            outcome.messages[2].final.status == "550 5.7.1"
                && outcome.messages[3].modifications.isEmpty)
        #expect(fixture.engineRequests == 5)
    }

    @Test func message_reset_leavesNoState() {
        let fixture = RelayMilterFixture()
        let outcome = fixture.play(
            connection.mail("<b@app.example>").rcpt("<annarelay2@relay.example>").reset()
                .mail("<b@app.example>").rcpt("<bobrelay22@relay.example>").header(
                    "X-Test-Proved", "app.example"
                ).reset()
                .mail("<c@elsewhere.example>").rcpt("<c@elsewhere.example>").message(
                    Array("From: c@elsewhere.example\r\n\r\n".utf8)
                ).endOfMessage()
                .mail("<b@app.example>").rcpt("<bobrelay22@relay.example>").teamMessage()
                .endOfMessage())
        #expect(outcome.messages.map(\.aborted) == [true, true, false, false])
        #expect(outcome.messages[2].delivered == outcome.messages[2].original)
        #expect(outcome.messages[3].delivered?.recipients == ["<bob@inbox.example>"])
    }

    @Test func replyMemory_messageReset_isReleased() {
        let fixture = RelayMilterFixture()
        let reverse = fixture.reverse(RelayMilterFixture.anna, "billing@app.example")
        let begun = connection.mail("<anna@inbox.example>").rcpt(reverse).annasMessage()
        _ = fixture.play(begun.reset())
        _ = fixture.play(begun)
        #expect(fixture.engine.replyMemory.inUse == 0)
    }

    @Test func engine_exchangedDuringMessage_isUsedForNextMessage() {
        let fixture = RelayMilterFixture()
        let session = fixture.handler.makeSession(
            connection: MilterConnection(hostName: "client.test", peer: .ipv4("192.0.2.1", port: 1))
        )
        let macros = NoMacros()
        _ = session.mail("<b@app.example>", arguments: [], macros: macros)
        #expect(
            session.recipient("<annarelay2@relay.example>", arguments: [], macros: macros)
                == .continue)
        // At the same time, the reloaded configuration no longer contains the account.
        fixture.exchange(for: RelayMilterFixture.engine(MemoryDirectory([RelayMilterFixture.bob])))
        #expect(
            session.recipient("<annarelay2@relay.example>", arguments: [], macros: macros)
                == .continue)
        session.abort()
        _ = session.mail("<b@app.example>", arguments: [], macros: macros)
        #expect(
            session.recipient("<annarelay2@relay.example>", arguments: [], macros: macros).status
                == "550 5.1.1")
        session.closed()
    }

    // MARK: Unexpected events

    /// `␀` represents NUL.
    @Test(arguments: [
        ("<a␀b@relay.example>", true), ("<annarelay2␀@relay.example>", true),
        ("<annarelay2@relay.example␀>", true),
        ("<annarelay2@relay.example␀.evil.example>", true), ("<annarelay2@relay.example\n>", true),
        ("annarelay2@relay.example>", true),
        ("<\u{FFFD}@relay.example>", true), ("", true), ("<>", true), ("<@>", false),
        ("<a␀b@elsewhere.example>", false),
    ])
    func recipient_malformedPath_isRefusedOrUntouched(_ written: String, isRefused: Bool) {
        let path = String(written.map { $0 == "␀" ? "\0" : $0 })
        let message = RelayMilterFixture().play(
            connection.mail("<b\0@app.example>").rcpt(path).teamMessage().endOfMessage()
        )
        .message
        // Refused, or not ours and then unchanged.
        #expect(message.reply(to: path)?.status == (isRefused ? "550 5.1.1" : "continue"))
        #expect(message.modifications.isEmpty)
    }

    @Test func returnPath_unreadableSender_isSilent() throws {
        let fixture = RelayMilterFixture()
        for sender in ["<b\0@app.example>", "<b@app.example\0.evil.example>", "<\"b@app.example>"] {
            let message = fixture.play(
                connection.mail(sender).rcpt("<annarelay2@relay.example>").teamMessage()
                    .endOfMessage()
            )
            .message
            let path = try #require(message.delivered).mailFrom
            guard
                case .token(let token) = fixture.engine.tokens.read(
                    String(path.dropFirst().prefix { $0 != "@" }))
            else {
                Issue.record("\(path) is no return path")
                continue
            }
            #expect(token.purpose == .silentForward)
        }
    }

    /// Reasons and replies contain no name, file or address that the user wrote; `play` checks
    /// this.
    @Test func reply_refused_showsNoInbox() {
        let fixture = RelayMilterFixture()
        let reverse = fixture.reverse(RelayMilterFixture.anna, "billing@app.example")
        let reply = connection.mail("<anna@inbox.example>").rcpt(reverse)
        let parts = [
            "Content-Type: application/pdf; name=\"anna@inbox.example.pdf\"\r\nMIME-Version: 1.0\r\n",
            "Content-Type: image/png\r\nContent-Disposition: attachment; filename=\"for ANNA@inbox.example.png\"\r\nMIME-Version: 1.0\r\n",
            "Content-Type: application/anna@inbox.example\r\nMIME-Version: 1.0\r\n",
            "Content-Type: text/plain; charset=\"anna@inbox.example\"\r\nMIME-Version: 1.0\r\n",
        ]
        var refused = 0
        for part in parts {
            let message = fixture.play(
                reply.annasMessage(part, body: "\u{1}anna@inbox.example\u{2}\r\n").endOfMessage()
            ).message
            if message.final.status == "550 5.7.7" { refused += 1 }
            #expect(
                message.delivered.map {
                    !String(decoding: $0.message, as: UTF8.self).lowercased().contains("anna@inbox")
                } ?? true
            )
        }
        #expect(refused >= 2)
        // Not proved, and proved for another user.
        for proof in ["", "X-Test-Proved: inbox.example\r\n"] {
            let stranger = "\(proof)From: bob@inbox.example\r\n\r\nx\r\n"
            #expect(
                fixture.play(reply.message(Array(stranger.utf8)).endOfMessage()).message.final
                    .status == "550 5.7.26")
        }
        #expect(!fixture.log.lines.isEmpty)
    }
}

private final class NoMacros: MilterMacros {
    subscript(name: String) -> String? { nil }
}
