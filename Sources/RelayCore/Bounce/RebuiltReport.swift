// A report in the words of this relay, for the team or for the user.

import InternetMessage
import MailCrypto

struct RebuiltReport {
    private let engine: RelayEngine
    private let account: RelayAccount
    private let message: IncomingMessage
    private let report: DeliveryReport
    private let names: ReplyNames
    private let text: TextRewriter

    init(engine: RelayEngine, account: RelayAccount, message: IncomingMessage, report: DeliveryReport, names: ReplyNames) {
        self.engine = engine
        self.account = account
        self.message = message
        self.report = report
        self.names = names
        text = TextRewriter(names: names)
    }

    /// For the envelope sender of a forward. The last look makes sure that nothing of the inbox is in it.
    func forTeam(_ sender: AddrSpec) throws(Refusal) -> OutgoingMessage {
        var outgoing = write(.team, to: sender, recipient: account.relayAddress, original: original { $0 })
        if LastLook(names: names).finds(header: outgoing.header, body: outgoing.bodyForSigning) != nil {
            // Nothing but what this relay itself says.
            outgoing = write(.team, to: sender, recipient: account.relayAddress, original: [], diagnostic: "")
        }
        if let place = LastLook(names: names).finds(header: outgoing.header, body: outgoing.bodyForSigning) {
            engine.directory.count(.leakIncident, account: account.number, day: message.day)
            throw .leakIncident(place: place)
        }
        return outgoing
    }

    /// For the user, whose reply did not arrive: the correspondent is named by its reverse address.
    func forUser(_ inbox: InboxAddress) throws(Refusal) -> OutgoingMessage {
        var recipient: AddrSpec?
        if let address = AddrSpec.parseForwardPath(report.decisive?.address ?? "") { recipient = try reverse(address) }
        let original = original { id in
            engine.ids.reveal(id, account: account.number, isRelayDomain: engine.settings.isRelayDomain) ?? id
        }
        return write(.user, to: inbox.revealed, recipient: recipient, original: original)
    }

    private func reverse(_ correspondent: AddrSpec) throws(Refusal) -> AddrSpec {
        let token = engine.tokens.reverse(account: account.number, correspondent: correspondent)
        if let address = token.addressToStore {
            do {
                try engine.directory.store(address, token: token.localPart, account: account.number, expiryDay: nil)
            } catch {
                throw .storeTrouble(error.detail)
            }
        }
        return AddrSpec(localPart: token.localPart, domain: account.relayAddress.domain)
    }

    private func write(
        _ reader: ReportWriter.Reader, to: AddrSpec, recipient: AddrSpec?, original: [HeaderField], diagnostic: String? = nil
    ) -> OutgoingMessage {
        let domain = account.relayAddress.domain
        let decisive = report.decisive
        let redaction = ReportRedaction(names: names, addresses: report.recipients.map(\.address))
        let writer = ReportWriter(
            reader: reader, relayDomain: domain, to: to, recipient: recipient, report: decisive,
            diagnostic: diagnostic ?? decisive.map { redaction.redact($0.diagnostic) } ?? "", original: original,
            date: MessageDate.format(message.now),
            id: String(decoding: Base32.encode(engine.randomness(15)), as: UTF8.self))
        let (fields, body) = writer.write()
        var hops = 0
        if case .hops(let count) = engine.mark.trace(message.header) { hops = count }
        return OutgoingMessage(
            header: HeaderSection(fields + [engine.mark.field(hops: hops + 1)]), body: [body[...]], bodyForSigning: [body[...]])
    }

    /// Subject, Date and Message-ID of the original, each only where nothing of the user's stands in it.
    private func original(_ id: ([UInt8]) -> [UInt8]) -> [HeaderField] {
        var fields: [HeaderField] = []
        if let subject = report.original["subject"], !subject.isEmpty {
            let clean = Array(subject.utf8.prefix(900)).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
            let rewritten = text.rewrite(clean) ?? clean
            fields.append(
                HeaderField(
                    name: "Subject",
                    rawValue: [0x20]
                        + HeaderText.unstructured(Array(String(decoding: rewritten, as: UTF8.self).utf8), startingAt: 9)))
        }
        if let date = report.original["date"], date.utf8.count <= 40,
            date.utf8.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || " ,:+-".utf8.contains($0) })
        {
            fields.append(HeaderField("Date", date))
        }
        if let value = report.original["message-id"], let raw = MessageIDs.ids(in: value.utf8).first {
            let shown = id(raw)
            if shown.count <= 250, shown.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.rewrite(shown) == nil {
                fields.append(HeaderField(name: "Message-ID", rawValue: MessageIDs.value([shown])))
            }
        }
        return fields
    }
}
