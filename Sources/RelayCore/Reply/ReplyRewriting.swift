// The header section of a reply: an allowlist, and the change of each field on it. No other field
// of the user's is sent.

import InternetMessage
import LeakSearch

/// Rewrites a reply, so that nothing of the user's inbox is left in it.
struct ReplyRewriting {
    private let engine: RelayEngine
    private let account: RelayAccount
    private let header: HeaderSection
    private let isAutomatic: Bool
    private let now: Int64
    private let hops: Int
    private var names: ReplyNames
    private var text: TextRewriter

    /// Fields that are sent with their free text rewritten. Every field not named here or below is
    /// removed.
    private static let passing: Set<String> = [
        "subject", "mime-version", "importance", "priority", "x-priority", "x-msmail-priority",
        "sensitivity",
        "x-auto-response-suppress", "content-language", "precedence",
    ]

    init(
        engine: RelayEngine, account: RelayAccount, header: HeaderSection, envelopeSender: String,
        isAutomatic: Bool, now: Int64,
        hops: Int, stored: StoredAddresses, recipients: [AddrSpec] = []
    ) {
        self.engine = engine
        self.account = account
        self.header = header
        self.isAutomatic = isAutomatic
        self.now = now
        self.hops = hops
        names = ReplyNames(
            engine: engine, account: account, message: header, envelopeSender: envelopeSender,
            stored: stored,
            isAutomatic: isAutomatic || AutomaticMail.isWrittenByProgram(header),
            recipients: recipients)
        text = TextRewriter(names: names)
    }

    /// - Throws: `550 5.7.7` if an address of the user is in a part that cannot be rewritten, or if
    ///   the search takes too much work.
    func rewrite(body: [UInt8]) throws(Refusal) -> OutgoingMessage {
        try rewrite(body: body, budget: budget(body))
    }

    private func budget(_ body: [UInt8]) -> WorkBudget {
        WorkBudget(octets: header.fields.reduce(body.count) { $0 + $1.bytes.count })
    }

    /// The same with the caller's budget.
    func rewrite(body: [UInt8], budget: WorkBudget) throws(Refusal) -> OutgoingMessage {
        if let outgoing = try rewriteOnce(body: body, budget: budget) { return outgoing }
        // The check reads an address in a quotation that the rewriting did not, so the quotation is
        // removed completely.
        budget.restart()
        var strict = self
        strict.names.removesUnread = true
        strict.text = TextRewriter(names: strict.names)
        guard let outgoing = try strict.rewriteOnce(body: body, budget: budget) else {
            throw .unrewritable(
                part: "quoted text", detail: "quoted text: an address is left in it")
        }
        return outgoing
    }

    /// - Returns: nil if an address is left in text of the team's or of a program's.
    private func rewriteOnce(body: [UInt8], budget: WorkBudget) throws(Refusal) -> OutgoingMessage?
    {
        let rewritten = try engine.bodyRewriter(names, budget).rewrite(content: header, body: body)
        let fields = fields(budget)
        let outgoing = OutgoingMessage(
            header: HeaderSection(
                fields + rewritten.contentFields + [
                    engine.mark.field(hops: hops + 1),
                    engine.tokens.feedback.identifier(.reply, team: account.team),
                ]),
            body: rewritten.body,
            bodyForSigning: rewritten.body ?? [body[...]], reasons: rewritten.reasons)
        if let field = outgoing.header.fields.first(where: {
            $0.bytes.count > engine.settings.limits.rewrittenFieldSize
        }) {
            throw .fieldTooLong(field.name)
        }
        var leaks = LeakNames(names)
        leaks.looksForWords = rewritten.hidesWords
        leaks.seenAddresses = rewritten.countedAddresses
        switch LeakCheck(leaks).verdict(
            header: checked(fields, rewritten), body: outgoing.bodyForSigning, map: rewritten.map,
            work: budget)
        {
        case .clean: break
        case .file(let number): throw rewritten.refusal(number)
        case .neutral: return nil
        case .tooMany:
            throw .unrewritable(
                part: "typed text", detail: "typed text: many addresses in unusual forms")
        case .leak(let place), .uncovered(let place): throw .leakIncident(place: place)
        case .encoded(let place):
            throw .unrewritable(part: place, detail: "\(place): in encoded text")
        case .tooMuchWork: throw .tooMuchWork
        }
        if budget.isSpent { throw .tooMuchWork }
        return outgoing
    }

    /// Fields that the relay wrote itself: correspondents, and ids that are the team's or hidden.
    private static let made: FieldNameSet = [
        "to", "cc", "message-id", "in-reply-to", "references", "date",
    ]

    /// The fields in the form that the check reads.
    private func checked(_ fields: [HeaderField], _ rewritten: RewrittenBody) -> [LeakCheck.Field] {
        func field(_ field: HeaderField, _ kind: StretchMap.Kind) -> LeakCheck.Field {
            LeakCheck.Field(
                name: field.name, octets: field.bytes,
                stretches: [StretchMap.Stretch(end: field.bytes.count, kind: kind)])
        }
        let place = rewritten.isOfProgram ? TextPlace.whole : .typed
        let content = header.fields.filter {
            $0.isNamed("Content-Type") || $0.isNamed("Content-Disposition")
        }
        let isMade = content.contains { text.makes($0.bytes, place: place) }
        return fields.map { one in
            let isNeutral = one.isNamed("Subject") || names.isAutomatic && !one.isNamed("From")
            let isMade =
                Self.made.contains(one)
                || header.first(one.name).map {
                    text.makes($0.bytes, place: isNeutral ? .whole : .typed)
                } ?? false
            return field(
                one, isMade && !one.isNamed("From") ? .made : isNeutral ? .neutral : .typed)
        }
            + rewritten.contentFields.map {
                field($0, isMade ? .made : PartHeader.kind(of: $0, place: place))
            }
    }

    private func fields(_ budget: WorkBudget) -> [HeaderField] {
        var fields: [HeaderField] = []
        let name = account.sharedName.map { name in
            text.rewrite(Array(name.utf8)).map { String(decoding: $0, as: UTF8.self) } ?? name
        }
        fields.append(
            HeaderField(
                "From", Mailbox(displayName: name, addrSpec: account.relayAddress).serialized))
        fields += addressFields()
        var seen: Set<String> = []
        for field in header.fields {
            let name = field.name.lowercased()
            // Only the first of each. RFC 5322 allows one, and two programs would read a second one
            // differently.
            guard Self.passing.contains(name), seen.insert(name).inserted else { continue }
            let place = field.isNamed("Subject") || names.isAutomatic ? TextPlace.whole : .typed
            fields.append(
                HeaderField(
                    name: field.name, rawValue: text.rewriteUnstructured(field, place: place)))
        }
        fields.append(
            HeaderField(
                "Date", MessageDate.format(now),
                unless: header.first("Date").flatMap(Self.plainDate)))
        fields += identifiers(budget)
        if isAutomatic { fields.append(AutomaticMail.mark(header)) }
        return fields
    }

    /// To and Cc with the correspondents in place of their reverse addresses. Every address except
    /// these and the relay address is removed.
    private func addressFields() -> [HeaderField] {
        var fields: [HeaderField] = []
        for name in ["To", "Cc"] {
            var kept: [Mailbox] = []
            for field in header.all(name) {
                for mailbox in AddressList.parse(field.rawValue).mailboxes {
                    if mailbox.addrSpec.folded == account.relayAddress.folded {
                        kept.append(Mailbox(displayName: nil, addrSpec: account.relayAddress))
                    } else if let correspondent = names.correspondent(mailbox.addrSpec) {
                        kept.append(
                            Mailbox(
                                displayName: displayName(mailbox, correspondent),
                                addrSpec: correspondent))
                    }
                }
            }
            if !kept.isEmpty {
                fields.append(
                    HeaderField(
                        name: name,
                        rawValue: AddressFieldValue.write(
                            kept.map { .mailbox($0) }, nameLength: name.utf8.count)))
            }
        }
        // A message without a named recipient, as with Bcc, stays so (RFC 5322 section 3.6.3).
        return fields.isEmpty ? [HeaderField("To", "undisclosed-recipients:;")] : fields
    }

    /// The name that the user's program wrote, unless the forward made it up or it contains an
    /// address.
    private func displayName(_ mailbox: Mailbox, _ correspondent: AddrSpec) -> String? {
        guard let name = mailbox.displayName, name != ForwardRewriting.madeUpName(correspondent)
        else { return nil }
        return text.neutralName(name)
    }

    /// The Date as the user's program wrote it, if it is only a date.
    private static func plainDate(_ field: HeaderField) -> HeaderField? {
        let value = HeaderField.trim(field.unfoldedBytes[...])
        let isPlain =
            value.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || " ,:+-".utf8.contains($0) }
            && value.count <= 40
        return isPlain ? HeaderField("Date", String(decoding: value, as: UTF8.self)) : nil
    }

    // MARK: Message-ID, In-Reply-To, References

    private func identifiers(_ budget: WorkBudget) -> [HeaderField] {
        let ids = text.ids(in: header, work: budget)
        let own =
            header.first("Message-ID").flatMap { MessageIDs.read(in: $0.rawValue).first }
            ?? engine.randomness(16)
        var fields = [
            HeaderField(name: "Message-ID", rawValue: MessageIDs.value([ids.hidden(own)]))
        ]
        for name in OutwardIDs.threadFields {
            let outward = header.all(name).flatMap { ids.outward(MessageIDs.read(in: $0.rawValue)) }
            if !outward.isEmpty {
                fields.append(HeaderField(name: name, rawValue: MessageIDs.value(outward)))
            }
        }
        return fields
    }
}

extension HeaderField {
    /// The other field, or this one if there is none.
    fileprivate init(_ name: String, _ value: String, unless other: HeaderField?) {
        self = other ?? HeaderField(name, value)
    }
}
