// Replies, reports and archives. The property of a reply: it is refused, or does not contain the
// user's inbox.

import InternetMessage
import LeakSearch
import MailAuth
import MailTesting

@testable import RelayCore

enum ReplyFuzzing {
    private static let fixture = Fixture(evidence: .signed("inbox.example"))
    private static let reverse: String = {
        let correspondent = AddrSpec(localPart: "billing", domain: "app.example")
        return fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: correspondent
        ).localPart
            + "@relay.example"
    }()

    /// The input is header fields after From, an empty line, and the body.
    static let reply: FuzzTarget = { input in
        let text = "From: Anna <anna@inbox.example>\r\n" + String(decoding: input, as: UTF8.self)
        let decision = fixture.play(from: "anna@inbox.example", to: [reverse], message: text)
            .decision
        guard case .relay = decision.outcome else { return }
        let message = Message.parse(Array(text.utf8))
        var modified = ModifiedMessage(
            header: message.header, body: message.body, sender: "", recipients: [])
        modified.apply(decision.modifications)
        let outgoing = modified.bytes
        require(!holdsInbox(outgoing), "a relayed reply does not hold the inbox")
        let parsed = Message.parse(outgoing)
        for part in MIMEPart.parse(parsed).flattened {
            guard let decoded = part.transferEncoding.decode(parsed.body[part.bodyRange]) else {
                continue
            }
            require(
                !holdsInbox(decoded.bytes),
                "a decoded part of a relayed reply does not hold the inbox")
        }
    }

    static let report: FuzzTarget = { input in
        let message = Message.parse(input)
        _ = ReportReader.read(header: message.header, body: Array(message.body))
    }

    static let aggregate: FuzzTarget = { input in
        guard let report = AggregateReport(xml: input, now: Fixture.now) else { return }
        require(
            report.messages.values.reduce(0, +) <= report.passed + report.failed,
            "hosts have no more messages than there are")
        require(report.messages.count <= 50, "a report holds so many hosts at most")
    }

    static let archive: FuzzTarget = { input in
        let work = WorkBudget(limit: 1 << 22)
        let names = ReplyNames(
            engine: fixture.engine, account: Fixture.anna, message: HeaderSection(),
            envelopeSender: "",
            stored: StoredAddresses(
                directory: fixture.engine.directory, tokens: fixture.engine.tokens))
        _ = FileSearch(LeakNames(names), work: work).finds(in: input[...], .binary)
        require(
            work.spent <= work.limit + 30 * input.count + WorkBudget.step,
            "an archive costs no more than its budget")
    }

    private static let needle = Array("anna@inbox.example".utf8)

    /// A separate search without any code of the relay: the address between octets that belong
    /// neither to an address nor to a domain.
    private static func holdsInbox(_ octets: [UInt8]) -> Bool {
        let lowered = octets.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        var index = 0
        while index + needle.count <= lowered.count {
            let end = index + needle.count
            if lowered[index..<end].elementsEqual(needle),
                index == 0 || !isOfAddress(lowered[index - 1]),
                end == lowered.count || !isOfAddress(lowered[end])
            {
                return true
            }
            index += 1
        }
        return false
    }

    /// Whether an octet may belong to a longer address: a letter, a digit, or an octet allowed in a
    /// dot-atom.
    private static func isOfAddress(_ octet: UInt8) -> Bool {
        (0x61...0x7A).contains(octet) || (0x30...0x39).contains(octet) || octet >= 0x80
            || "!#$%&'*+-/=?^_`{|}~.".utf8.contains(octet)
    }
}
