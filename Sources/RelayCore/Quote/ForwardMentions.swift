// Finds a team's mentions of the user's addresses in a forward, with the scanner that rewrites replies, and remembers them by
// signs. Also counts the addresses of others in it.

import InternetMessage

/// Looks at the text of one forward as it passes. Not thread-safe.
final class ForwardMentions {
    private let engine: RelayEngine
    private let account: RelayAccount
    private let filter: MentionFilter
    /// Made for the first text that may hold a mention; nearly no message has one.
    private lazy var text = TextRewriter(
        names: ReplyNames(
            engine: engine, account: account, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens)
        ).judged(by: collector))
    private var isTextMade = false
    private let collector = MentionCollector()
    private var addresses: TextAddresses
    private var byteOrder: (ordinal: Int, mark: [UInt8]) = (0, [])

    /// Fields whose text may come back in an answer.
    private static let fields: FieldNameSet = ["subject", "from", "sender", "reply-to", "to", "cc", "comments", "keywords"]
    /// Those of them in which an address is text, and not that of a correspondent.
    private static let textFields: FieldNameSet = ["subject", "comments", "keywords"]

    /// - Parameter account: with all inboxes of the user.
    init(engine: RelayEngine, account: RelayAccount, header: HeaderSection) {
        self.engine = engine
        self.account = account
        filter = MentionFilter(inboxes: account.inboxes.map(\.address.revealed), providers: engine.settings.providers) {
            engine.settings.relayDomains.map(NameIndex.octets) + engine.tokens.forms(account: account.number).map(\.anchor)
        }
        let teams = ([account] + account.successors).flatMap(\.sources).compactMap(\.registeredDomain)
        addresses = TextAddresses(
            known: Set(teams + engine.settings.relayDomains), limit: engine.settings.limits.textAddressesPerDay)
        look(at: header)
    }

    /// Whether the text of a part is looked at.
    static func isWanted(_ part: MIMEPart) -> Bool { PartKind.isText(part.contentType) }

    /// Looks at texts of the body in order: those of all wanted parts, and loose ones.
    func look(at stretches: [TextStretch]) {
        guard !stretches.isEmpty else { return }
        for stretch in stretches where stretch.isLoose || Self.isWanted(stretch.part) { look(at: stretch) }
        // Hundreds of messages may arrive at once.
        filter.letGo()
        if isTextMade { text.letGo() }
    }

    /// The signs found so far, empty for nearly every message, and the number of addresses of others in the text.
    var found: (signs: Set<MentionSign>, textAddresses: Int) { (collector.all, addresses.count) }

    private func look(at header: HeaderSection) {
        for field in header.fields where Self.fields.contains(field) {
            if Self.textFields.contains(field) { addresses.look(at: Array(field.decodedValue.utf8)) }
            guard mayMention(field) else { continue }
            look(atWhole: field.decodedValue)
            // An answer repeats a display name without its surroundings.
            guard !field.isNamed("Subject") else { continue }
            for mailbox in AddressList.parse(field.rawValue).mailboxes {
                look(atWhole: mailbox.displayName ?? ForwardRewriting.madeUpName(mailbox.addrSpec))
                if let name = mailbox.displayName { addresses.look(at: Array(name.utf8)) }
            }
        }
    }

    /// Whether a field must be decoded and its addresses parsed: quoted, escaped or encoded text may read differently from its
    /// octets.
    private func mayMention(_ field: HeaderField) -> Bool {
        let raw = field.rawValue
        return raw.contains {
            $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "=")
                || $0 >= 0x80
        }
            || filter.mayMention(Array(raw), isMarkup: false)
    }

    private func look(atWhole value: String, syntax: TextSyntax = .plain) {
        let utf8 = Array(value.utf8)
        guard filter.mayMention(utf8, isMarkup: false) else { return }
        _ = madeText().edits(utf8, syntax: syntax, place: .whole)
    }

    private func look(at stretch: TextStretch) {
        collector.isWholeText = stretch.start == 0 && stretch.isLast
        if stretch.start == 0, !stretch.isLoose { look(atPart: stretch.part) }
        let utf8 = TextCoding.readable(withByteOrder(stretch), part: stretch.part)
        // An attached list does not count: an answer does not bring it back.
        if stretch.isLoose || PartKind.isShown(stretch.part) {
            let isMarkup = PartKind.syntax(stretch.part.contentType) == .markup
            addresses.look(at: utf8, isMarkup: isMarkup, isBegun: stretch.start > 0, goesOn: !stretch.isLast)
        }
        TextCoding.look(at: utf8, part: stretch.part, unless: filter, with: madeText())
    }

    /// The octets of a stretch after the byte order mark of its part, if it has one (RFC 2781 section 3.2): only this mark
    /// shows the order.
    private func withByteOrder(_ stretch: TextStretch) -> [UInt8] {
        if stretch.start == 0 {
            let mark = stretch.octets.prefix(2)
            byteOrder = (
                stretch.ordinal, mark.elementsEqual([0xFF, 0xFE]) || mark.elementsEqual([0xFE, 0xFF]) ? Array(mark) : []
            )
            return stretch.octets
        }
        return byteOrder.ordinal == stretch.ordinal && !byteOrder.mark.isEmpty ? byteOrder.mark + stretch.octets : stretch.octets
    }

    private func madeText() -> TextRewriter {
        isTextMade = true
        return text
    }

    private func look(atPart part: MIMEPart) {
        guard part.depth > 0 else { return }
        let values = part.contentType.parameters.list + (part.disposition?.parameters.list ?? [])
        for value in values { look(atWhole: value.value, syntax: .fileName) }
        for field in part.header.fields
        where field.isNamed("Subject") || field.isNamed("Content-ID") || field.isNamed("Content-Description") {
            look(atWhole: field.decodedValue)
        }
    }
}

/// Records every mention, and changes no text.
final class MentionCollector: MentionJudge {
    private var signs: Set<MentionSign> = []
    /// Whether the current text is complete, and not a stretch of a longer one.
    var isWholeText = true

    /// Maximum signs of one message. Each mention has at most four, so some thousand mentions are known by their place. Further
    /// ones are known by their local part alone, wherever a quotation is recognized by its form: there a right guess must stay
    /// as a wrong one does.
    static let maximumSigns = 5_000
    /// Maximum local parts known in this way; a user has a few.
    static let maximumMany = 1_000
    private var many: Set<MentionSign> = []

    func without(_ edits: [TextEdit], in text: [UInt8], syntax: TextSyntax, place: TextPlace) -> [TextEdit] {
        let mentions = edits.compactMap(\.mention)
        guard !mentions.isEmpty else { return [] }
        guard signs.count < Self.maximumSigns else {
            for edit in edits where edit.mention != nil && many.count < Self.maximumMany {
                many.insert(MentionSigns.many(edit.local))
            }
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
            if place == .whole, let first = mentions.map(\.lowerBound).min() {
                signs.formUnion(reader.whole(before: first, isAutomatic: false))
            }
        }
        // No edits: the base64 around them would be rewritten for nothing.
        return []
    }

    /// Every sign that was found.
    var all: Set<MentionSign> { signs.union(many) }

    func keepsAnother() -> Bool { true }
}
