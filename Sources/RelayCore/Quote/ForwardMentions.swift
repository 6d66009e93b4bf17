// What a team writes of a user's addresses in a forward: found with the scanner that replies are rewritten by, and remembered by signs.
// Beside that, how many addresses of others it writes.

import InternetMessage

/// Looks at the text of one forward as it passes. Not thread-safe.
final class ForwardMentions {
    private let text: TextRewriter
    private let collector = MentionCollector()
    private var walker: TextWalker
    private var addresses: TextAddresses

    /// Fields whose text may come back in an answer.
    private static let fields: FieldNameSet = ["subject", "from", "sender", "reply-to", "to", "cc", "comments", "keywords"]
    /// Those of them in which an address is text, and not one of a correspondent.
    private static let textFields: FieldNameSet = ["subject", "comments", "keywords"]

    /// - Parameter account: with all inboxes of the user.
    init(engine: RelayEngine, account: RelayAccount, header: HeaderSection) {
        let names = ReplyNames(
            engine: engine, account: account, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        text = TextRewriter(names: names.judged(by: collector))
        walker = TextWalker(header: header) { PartKind.isText($0.contentType) }
        let teams = ([account] + account.successors).flatMap(\.sources).map(\.registeredDomain)
        addresses = TextAddresses(
            known: Set(teams + engine.settings.relayDomains), limit: engine.settings.limits.textAddressesPerDay)
        look(at: header)
    }

    func update(body chunk: UnsafeRawBufferPointer) {
        let stretches = walker.feed(chunk)
        guard !stretches.isEmpty else { return }
        for stretch in stretches { look(at: stretch) }
        // Hundreds of messages may be coming in at once.
        text.letGo()
    }

    /// The signs of what was found; empty for nearly every message.
    func finish() -> (signs: Set<MentionSign>, textAddresses: Int) {
        for stretch in walker.finish() { look(at: stretch) }
        return (collector.all, addresses.count)
    }

    private func look(at header: HeaderSection) {
        for field in header.fields where Self.fields.contains(field) {
            look(atWhole: field.decodedValue)
            if Self.textFields.contains(field) { addresses.look(at: Array(field.decodedValue.utf8)) }
            // A display name comes back without what stands around it.
            guard !field.isNamed("Subject") else { continue }
            for mailbox in AddressList.parse(field.rawValue).mailboxes {
                look(atWhole: mailbox.displayName ?? ForwardRewriting.madeUpName(mailbox.addrSpec))
                if let name = mailbox.displayName { addresses.look(at: Array(name.utf8)) }
            }
        }
    }

    private func look(atWhole value: String, syntax: TextSyntax = .plain) {
        guard !value.isEmpty else { return }
        _ = text.edits(Array(value.utf8), syntax: syntax, place: .whole)
    }

    private func look(at stretch: TextStretch) {
        collector.isWholeText = stretch.start == 0 && stretch.isLast
        if stretch.start == 0, !stretch.isLoose { look(atPart: stretch.part) }
        // An attached list is the user's business: it does not come back with an answer.
        if stretch.isLoose || PartKind.isShown(stretch.part) {
            addresses.look(at: stretch.octets, isBegun: stretch.start > 0, goesOn: !stretch.isLast)
        }
        TextCoding.look(at: stretch.octets, part: stretch.part, with: text)
    }

    private func look(atPart part: MIMEPart) {
        guard part.depth > 0 else { return }
        let values = part.contentType.parameters.list + (part.disposition?.parameters.list ?? [])
        for value in values { look(atWhole: value.value, syntax: .fileName) }
        for field in part.header.fields where field.isNamed("Subject") || field.isNamed("Content-ID") || field.isNamed("Content-Description") {
            look(atWhole: field.decodedValue)
        }
    }
}

/// Takes note of every mention, and leaves the text alone.
final class MentionCollector: MentionJudge {
    private var signs: Set<MentionSign> = []
    /// Whether the text at hand is the whole one.
    var isWholeText = true

    /// Signs of one message. Each mention has four at most, so that some thousand mentions are known by their place. Those beyond are known
    /// by their local part alone, wherever a quotation is told by its form: a right guess must stay there as a wrong one does.
    static let maximumSigns = 5_000
    /// Local parts known so; a user has a few.
    static let maximumMany = 1_000
    private var many: Set<MentionSign> = []

    func without(_ edits: [TextEdit], in text: [UInt8], syntax: TextSyntax, place: TextPlace) -> [TextEdit] {
        let mentions = edits.compactMap(\.mention)
        guard !mentions.isEmpty else { return [] }
        guard signs.count < Self.maximumSigns else {
            for edit in edits where edit.mention != nil && many.count < Self.maximumMany { many.insert(MentionSigns.many(edit.local)) }
            return []
        }
        text.withUnsafeBufferPointer { text in
            var reader = MentionSigns(text, isMarkup: syntax == .markup)
            var last: Range<Int>?
            for mention in mentions where mention != last {
                last = mention
                signs.insert(reader.form(mention))
                guard place != .whole else { continue }
                let places = reader.places(mention, isWholeText: isWholeText)
                signs.formUnion([places.before, places.behind, places.short].compactMap { $0 })
            }
            if place == .whole, let first = mentions.map(\.lowerBound).min() { signs.formUnion(reader.whole(before: first, isAutomatic: false)) }
        }
        // The base64 around it would be written anew for nothing.
        return []
    }

    /// Every sign that was found.
    var all: Set<MentionSign> { signs.union(many) }

    func keepsAnother() -> Bool { true }
}
