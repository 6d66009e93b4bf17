// The steps of the demonstration, and the conditions that must be true after each.

import DemoSupport
import Foundation
import PostfixHarness
import RelayHarness

final class Story {
    private let fixture: RelayFixture
    private(set) var failures = 0
    private var relayAddress = ""
    private var reverseAddress = ""

    private static let inbox = "anna.mueller@home.example"
    private static let envelopeSender = "bounces@juice.example"
    private static let reader = [
        "From", "Reply-To", "To", "Subject", "Message-ID", "In-Reply-To", "References",
        "List-Unsubscribe", "Auto-Submitted",
    ]

    init() throws {
        Terminal.title("Postern: a private-email relay beside Postfix")
        Terminal.say(
            "Starting a private Postfix, a name server, a sink for outgoing mail and postern serve, all on loopback…"
        )
        var options = RelayFixture.Options()
        // Both sides send from this machine, and SPF allows it.
        options.zone = """
            {"juice.example": {"TXT": ["v=spf1 ip4:127.0.0.1 -all"]}, "home.example": {"TXT": ["v=spf1 ip4:127.0.0.1 -all"]},
             "stranger.example": {"TXT": ["v=spf1 ip4:127.0.0.1 -all"]}}
            """
        fixture = try RelayFixture(options)
        try fixture.addTeam("juice", name: "Früchte & Säfte", source: "juice.example")
        try fixture.addUser("anna", inboxes: [Self.inbox])
        relayAddress = try fixture.address("juice", "anna")
        Terminal.say(
            "Team juice sends from juice.example. Anna's inbox is \(Terminal.styled(Self.inbox, .strong))."
        )
        Terminal.say(
            "The team knows her as \(Terminal.styled(relayAddress, .strong)) and by nothing else.")
    }

    func end() { fixture.stop() }

    func tell() throws {
        try forward()
        let reply = try self.reply()
        try replyToTheReply(reply)
        try bounce()
        try refusals()
        Terminal.title(
            failures == 0
                ? "All steps came out right." : "\(failures) things were not as they should be.")
    }

    // MARK: Steps

    private func forward() throws {
        Terminal.title("1. The team writes, and the message reaches Anna")
        let sent = Messages.order(to: relayAddress)
        show(sent, "sent by the team", .sent)
        try fixture.send(from: Self.envelopeSender, to: [relayAddress], sent)
        let arrived = try fixture.arrival(for: Self.inbox)
        show(arrived, "arrived in the inbox")
        let letter = Letter(arrived)
        reverseAddress = letter.address("Reply-To")
        check(
            "the answer goes through the relay",
            reverseAddress.hasSuffix("@relay.example")
                && reverseAddress.hasPrefix("help=juice.example."))
        check(
            "the sender's name is still there",
            letter.value("From")?.contains("=?utf-8?Q?Fr=C3=BCchte_=26_S=C3=A4fte?=") == true)
        check(
            "text, HTML, picture and PDF are the same, byte for byte",
            letter.body == Letter(sent).body)
        check(
            "the request for a read receipt is gone",
            letter.value("Disposition-Notification-To") == nil)
        check(
            "one-click unsubscription still works",
            letter.value("List-Unsubscribe")?.contains("https://juice.example/u/42") == true)
        check(
            "the relay domain has signed it",
            letter.value("DKIM-Signature")?.contains("d=relay.example") == true)
        check("bounces come back to the relay", arrived.mailFrom.contains("@relay.example"))
    }

    private func reply() throws -> SinkMessage {
        Terminal.title("2. Anna answers from her usual program")
        let sent = Messages.answer(
            from: Self.inbox, to: reverseAddress, repliesTo: "order-42@juice.example")
        show(sent, "sent by Anna", .sent)
        try fixture.send(from: Self.inbox, to: [reverseAddress], sent)
        let arrived = try fixture.arrival(for: "help@juice.example")
        show(arrived, "arrived at the team")
        let letter = Letter(arrived)
        check("it comes from the relay address", letter.address("From") == relayAddress)
        check(
            "it goes to the address that the team wrote from",
            letter.address("To") == "help@juice.example")
        check(
            "it answers the team's own message",
            letter.value("In-Reply-To") == "<order-42@juice.example>")
        checkNothingLeaks(arrived)
        return arrived
    }

    private func replyToTheReply(_ reply: SinkMessage) throws {
        Terminal.title("3. The team answers the answer: threads hold on both sides")
        let id = Letter(reply).value("Message-ID") ?? ""
        let sent = Messages.thanks(
            to: relayAddress, repliesTo: id, references: "<order-42@juice.example> \(id)")
        show(sent, "sent by the team", .sent)
        try fixture.send(from: Self.envelopeSender, to: [relayAddress], sent)
        let arrived = try fixture.arrival(for: Self.inbox, number: 2)
        show(arrived, "arrived in the inbox")
        check(
            "the team never saw Anna's message id",
            !id.contains("anna") && id.contains("@relay.example"))
        check(
            "Anna's program finds its own message",
            Letter(arrived).value("In-Reply-To") == "<4F2A-anna-laptop@home.example>")
    }

    private func bounce() throws {
        Terminal.title("4. The inbox refuses, and the bounce names no one")
        var behaviour = SinkBehaviour()
        behaviour.refusedRecipients = [
            "<\(Self.inbox)>": "550 5.1.1 <\(Self.inbox)>: no such user at mx.home.example"
        ]
        fixture.sink.set(behaviour)
        let sent = Messages.plain(
            from: "orders@juice.example", to: relayAddress, subject: "Delivery")
        show(sent, "sent by the team", .sent)
        try fixture.send(from: Self.envelopeSender, to: [relayAddress], sent)
        let arrived = try fixture.arrival(for: Self.envelopeSender)
        fixture.sink.set(SinkBehaviour())
        show(arrived, "arrived at the team's bounce address")
        check("it has the null sender", arrived.mailFrom == "<>")
        check(
            "it names the relay address as the one that failed",
            arrived.text.contains("Final-Recipient: rfc822; \(relayAddress)")
        )
        check("it says why", arrived.text.contains("5.1.1"))
        checkNothingLeaks(arrived)
    }

    private func refusals() throws {
        Terminal.title("5. Anna switches forwarding off")
        try fixture.run(["address", "off", relayAddress])
        try refused(from: "orders@juice.example", to: relayAddress, "550 5.2.1")
        try fixture.run(["address", "on", relayAddress])

        Terminal.title("6. A sender that no team registered")
        try refused(from: "spam@stranger.example", to: relayAddress, "550 5.7.1")

        Terminal.title("7. An address that does not exist")
        try refused(from: "orders@juice.example", to: "aaaaaaaaaa@relay.example", "550 5.1.1")
    }

    private func refused(from sender: String, to recipient: String, _ expected: String) throws {
        let result = try fixture.send(
            from: sender, to: [recipient],
            Messages.plain(from: sender, to: recipient, subject: "Hello"))
        let reply = (result.data ?? result.recipients.first).map { "\($0)" } ?? "no reply"
        Terminal.say("\(sender) → \(recipient)")
        Terminal.say(Terminal.styled(reply, .arrived))
        check("refused with \(expected), in the transaction", reply.hasPrefix(expected))
    }

    // MARK: Showing and checking

    private func show(_ text: String, _ heading: String, _ style: Terminal.Style) {
        let letter = Letter(text)
        Terminal.block(heading, letter.shown(Self.reader) + [""] + letter.readable, style)
    }

    private func show(_ message: SinkMessage, _ heading: String) {
        let letter = Letter(message)
        Terminal.block(
            heading,
            ["envelope: \(message.mailFrom) → \(message.recipients.joined(separator: ", "))"]
                + letter.shown(Self.reader) + [""]
                + letter.readable,
            .arrived)
    }

    private func check(_ what: String, _ isRight: Bool) {
        if !isRight { failures += 1 }
        Terminal.say(
            isRight
                ? Terminal.styled("✓ ", .good) + what : Terminal.styled("✗ not so: \(what)", .bad))
    }

    /// The message to the team contains nothing of the inbox, of Anna's machine, or of any reverse
    /// address.
    private func checkNothingLeaks(_ message: SinkMessage) {
        let readable = Letter(message).everything
        let forbidden = [
            Self.inbox, "anna.mueller", "home.example", "anna-laptop", "203.0.113.77",
            "192.168.1.23", "127.0.0.1",
            reverseAddress,
        ]
        let found = forbidden.filter { readable.lowercased().contains($0.lowercased()) }
        check(
            "nothing of the inbox, of her machine or of the relay's inner addresses is in it",
            found.isEmpty)
        if !found.isEmpty {
            Terminal.say(Terminal.styled("found: \(found.joined(separator: ", "))", .bad))
        }
    }
}
