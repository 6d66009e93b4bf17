// A report in the words of this relay, for the team or for the user.

import InternetMessage
import MailCrypto

struct RebuiltReport {
    private let engine: RelayEngine
    private let account: RelayAccount
    private let message: IncomingMessage
    private let report: DeliveryReport

    init(engine: RelayEngine, account: RelayAccount, message: IncomingMessage, report: DeliveryReport) {
        self.engine = engine
        self.account = account
        self.message = message
        self.report = report
    }

    /// For the envelope sender of a forward. Nothing in it is the provider's text, which may echo what the team wrote, or name the inbox:
    /// status, our own words, and of the original what the witness shows to be the team's. Nothing in it depends on the inbox, so that
    /// there is nothing to search for.
    func forTeam(_ sender: AddrSpec) -> OutgoingMessage {
        write(.team, to: sender, recipient: account.relayAddress, original: witnessed)
    }

    /// For the user, whose reply did not arrive: the correspondent is named by its reverse address.
    func forUser(_ inbox: InboxAddress) throws(Refusal) -> OutgoingMessage {
        var recipient: AddrSpec?
        if let address = AddrSpec.parseForwardPath(report.decisive?.address ?? "") { recipient = try reverse(address) }
        var original = [report.original["subject"].flatMap(Self.subject), report.original["date"].flatMap(Self.date)].compactMap { $0 }
        if let id = report.original["message-id"].flatMap({ MessageIDs.ids(in: $0.utf8).first }) {
            let own = engine.ids.reveal(id, account: account.number, isRelayDomain: engine.settings.isRelayDomain) ?? id
            original += [Self.messageID("<" + String(decoding: own, as: UTF8.self) + ">")].compactMap { $0 }
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

    private func write(_ reader: ReportWriter.Reader, to: AddrSpec, recipient: AddrSpec?, original: [HeaderField]) -> OutgoingMessage {
        let writer = ReportWriter(
            reader: reader, relayDomain: account.relayAddress.domain, to: to, recipient: recipient, report: report.decisive, original: original,
            date: MessageDate.format(message.now), id: String(decoding: Base32.encode(engine.randomness(15)), as: UTF8.self))
        let (fields, body) = writer.write()
        var hops = 0
        if case .hops(let count) = engine.mark.trace(message.header) { hops = count }
        return OutgoingMessage(
            header: HeaderSection(fields + [engine.mark.field(hops: hops + 1)]), body: [body[...]], bodyForSigning: [body[...]])
    }

    /// Of the original: its Date, and as they stand Subject and Message-ID, each where the witness confirms it.
    private var witnessed: [HeaderField] {
        let witness = report.original[OriginalWitness.fieldName.lowercased()]
        func isConfirmed(_ part: OriginalWitness.Part, _ value: String) -> Bool {
            engine.witness.confirms(part, value, by: witness, account: account.number)
        }
        return [
            report.original["subject"].flatMap { isConfirmed(.subject, $0) ? Self.subject($0) : nil },
            report.original["date"].flatMap(Self.date),
            report.original["message-id"].flatMap { isConfirmed(.messageID, $0) ? Self.messageID($0) : nil },
        ].compactMap { $0 }
    }

    /// Octets of a subject that are shown.
    private static let shownSubject = 900

    private static func subject(_ subject: String) -> HeaderField? {
        guard !subject.isEmpty else { return nil }
        let clean = Array(subject.utf8.prefix(shownSubject)).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        let text = Array(String(decoding: clean, as: UTF8.self).utf8)
        return HeaderField(name: "Subject", rawValue: [0x20] + HeaderText.unstructured(text, startingAt: 9))
    }

    private static func date(_ date: String) -> HeaderField? {
        let isDate = date.utf8.count <= 40 && date.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || " ,:+-".utf8.contains($0) }
        return isDate ? HeaderField("Date", date) : nil
    }

    private static func messageID(_ value: String) -> HeaderField? {
        guard let id = MessageIDs.ids(in: value.utf8).first, id.count <= 250, id.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return HeaderField(name: "Message-ID", rawValue: MessageIDs.value([id]))
    }
}
