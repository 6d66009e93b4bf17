// What a team writes of a user's addresses in a forward: found with the scanner that replies are rewritten by, and remembered by signs.

import InternetMessage

/// Looks at the text of one forward as it passes. Not thread-safe.
final class ForwardMentions {
    private let text: TextRewriter
    private let collector = MentionCollector()
    private var walker: TextWalker

    /// Fields whose text may come back in an answer.
    private static let fields: FieldNameSet = ["subject", "from", "sender", "reply-to", "to", "cc", "comments", "keywords"]

    /// - Parameter account: with all inboxes of the user.
    init(engine: RelayEngine, account: RelayAccount, header: HeaderSection) {
        let names = ReplyNames(
            engine: engine, account: account, message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        text = TextRewriter(names: names.judged(by: collector))
        walker = TextWalker(header: header) { PartKind.isText($0.contentType) }
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
    func finish() -> Set<MentionSign> {
        for stretch in walker.finish() { look(at: stretch) }
        return collector.signs
    }

    private func look(at header: HeaderSection) {
        for field in header.fields where Self.fields.contains(field) {
            look(atWhole: field.decodedValue)
            // A display name comes back without what stands around it.
            if !field.isNamed("Subject") { for mailbox in AddressList.parse(field.rawValue).mailboxes { look(atWhole: mailbox.displayName ?? ForwardRewriting.madeUpName(mailbox.addrSpec)) } }
        }
    }

    private func look(atWhole value: String, syntax: TextSyntax = .plain) {
        guard !value.isEmpty else { return }
        _ = text.edits(Array(value.utf8), syntax: syntax, place: .whole)
    }

    private func look(at stretch: TextStretch) {
        collector.isWholeText = stretch.start == 0 && stretch.isLast
        if stretch.start == 0, !stretch.isLoose { look(atPart: stretch.part) }
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
    private(set) var signs: Set<MentionSign> = []
    /// Whether the text at hand is the whole one.
    var isWholeText = true

    /// Signs of one message. Each mention has four at most, so that some thousand mentions are known by their place; of those beyond, what
    /// was not there before is known by nothing, and hidden in answers.
    static let maximumSigns = 5_000

    func without(_ edits: [TextEdit], in text: [UInt8], syntax: TextSyntax, place: TextPlace) -> [TextEdit] {
        let mentions = edits.compactMap(\.mention)
        guard !mentions.isEmpty, signs.count < Self.maximumSigns else { return [] }
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
            if place == .whole, let first = mentions.map(\.lowerBound).min() { signs.formUnion(reader.whole(before: first)) }
        }
        // The base64 around it would be written anew for nothing.
        return []
    }

    func keepsAnother() -> Bool { true }
}
