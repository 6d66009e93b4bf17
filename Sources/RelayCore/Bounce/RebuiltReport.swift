// A report in the words of this relay, for the team or for the user.

import InternetMessage
import MailCrypto
import Support

struct RebuiltReport {
    private let engine: RelayEngine
    private let account: RelayAccount
    private let message: IncomingMessage
    private let report: DeliveryReport

    init(
        engine: RelayEngine, account: RelayAccount, message: IncomingMessage, report: DeliveryReport
    ) {
        self.engine = engine
        self.account = account
        self.message = message
        self.report = report
    }

    /// For the envelope sender of a forward. It contains the status, our own words, and those parts
    /// of the original that the witness confirms as the team's. It contains no text of the
    /// provider, which may repeat the team's text or name the inbox. Nothing in it depends on the
    /// inbox, so it needs no leak search.
    func forTeam(_ sender: AddrSpec) -> OutgoingMessage {
        write(.team, to: sender, recipient: account.relayAddress, original: witnessed)
    }

    /// For the user, whose reply did not arrive. A sender that knows the return path can send a
    /// report there, so none of its text is relayed. It contains only a status code, our own words,
    /// and the user's own message id, which no one else can make.
    /// - Parameter recipient: a real recipient of the reply; nil if the report names none of them.
    func forUser(_ inbox: InboxAddress, recipient: AddrSpec?) throws(Refusal) -> OutgoingMessage {
        var named: AddrSpec?
        if let recipient { named = try reverse(recipient) }
        let own = report.original["message-id"].flatMap { MessageIDs.ids(in: $0.utf8).first }
            .flatMap {
                engine.ids.reveal(
                    $0, account: account.number, isRelayDomain: engine.settings.isRelayDomain)
            }
            .flatMap { Self.messageID("<" + String(decoding: $0, as: UTF8.self) + ">") }
        return write(.user, to: inbox.revealed, recipient: named, original: own.map { [$0] } ?? [])
    }

    /// The reverse address of a correspondent; nil if it must be stored but the store no longer has
    /// it. A report never stores an address.
    private func reverse(_ correspondent: AddrSpec) throws(Refusal) -> AddrSpec? {
        let minted = engine.tokens.reverse(account: account.number, correspondent: correspondent)
        if minted.addressToStore != nil {
            let stored = StoredAddresses(directory: engine.directory, tokens: engine.tokens)
            guard case .token(let token) = engine.tokens.read(minted.localPart),
                stored.address(of: token) != nil
            else {
                if let failure = stored.failure { throw .storeTrouble(failure.detail) }
                return nil
            }
        }
        return AddrSpec(localPart: minted.localPart, domain: account.relayAddress.domain)
    }

    private func write(
        _ reader: ReportWriter.Reader, to: AddrSpec, recipient: AddrSpec?, original: [HeaderField]
    ) -> OutgoingMessage {
        var told = report.decisive
        // The report's own words make the status precise. They are not relayed, and addresses in
        // them are ignored.
        if let understood = told?.understood { told?.status = understood }
        let writer = ReportWriter(
            reader: reader, relayDomain: account.relayAddress.domain, to: to, recipient: recipient,
            report: told,
            original: original,
            date: MessageDate.format(message.now),
            id: String(decoding: Base32.encode(engine.randomness(15)), as: UTF8.self))
        let (fields, body) = writer.write()
        var hops = 0
        if case .hops(let count) = engine.mark.trace(message.header) { hops = count }
        return OutgoingMessage(
            header: HeaderSection(fields + [engine.mark.field(hops: hops + 1)]), body: [body[...]],
            bodyForSigning: [body[...]])
    }

    /// Subject (without controls, at most 900 octets) and Message-ID of the original, each only if
    /// the witness confirms it.
    private var witnessed: [HeaderField] {
        let witness = report.original[OriginalWitness.fieldName.lowercased()]
        func isConfirmed(_ part: OriginalWitness.Part, _ value: String) -> Bool {
            engine.witness.confirms(part, value, by: witness, account: account.number)
        }
        return [
            report.original["subject"].flatMap {
                isConfirmed(.subject, $0) ? Self.subject($0) : nil
            },
            report.original["message-id"].flatMap {
                original(of: $0) ?? (isConfirmed(.messageID, $0) ? Self.messageID($0) : nil)
            },
        ].compactMap { $0 }
    }

    /// The team's own id, if the forward replaced it by another.
    private func original(of value: String) -> HeaderField? {
        MessageIDs.ids(in: value.utf8).first
            .flatMap {
                engine.ids.original(
                    of: $0, account: account.number, isRelayDomain: engine.settings.isRelayDomain)
            }
            .flatMap { Self.messageID("<" + String(decoding: $0, as: UTF8.self) + ">") }
    }

    /// Octets of a subject that the report shows.
    private static let shownSubject = 900

    private static func subject(_ subject: String) -> HeaderField? {
        guard !subject.isEmpty else { return nil }
        let clean = Array(subject.utf8.prefix(shownSubject)).map {
            $0 < 0x20 || $0 == 0x7F ? 0x20 : $0
        }
        let text = Array(String(decoding: clean, as: UTF8.self).utf8)
        return HeaderField(
            name: "Subject", rawValue: [0x20] + HeaderText.unstructured(text, startingAt: 9))
    }

    private static func messageID(_ value: String) -> HeaderField? {
        guard let id = MessageIDs.ids(in: value.utf8).first, id.count <= 250,
            id.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            return nil
        }
        return HeaderField(name: "Message-ID", rawValue: MessageIDs.value([id]))
    }
}
