// Rewrites the body of a reply: parses the MIME tree, rewrites each part that contains a name, and
// assembles it again.

import InternetMessage
import LeakSearch

/// An outgoing body, with the fields that describe it.
package struct RewrittenBody {
    /// The Content-* fields of the message itself.
    package var contentFields: [HeaderField]
    /// The body in consecutive pieces; nil if it is unchanged.
    package var body: [ArraySlice<UInt8>]?
    /// The rules that changed it. Set by form alone, regardless of the parts of the inbox that were
    /// found.
    package var reasons: [RelayReason]
    /// The kind of each stretch of the outgoing body. An empty map proves nothing.
    package var map = StretchMap()
    /// The refusal for a file that contains the user's address, by the file's number in the map.
    /// Called for that file only, as a message may have thousands of files.
    var refusal: (Int) -> Refusal = { _ in .unrewritable(part: "an attachment", detail: "a file") }
    /// Whether the fields are not compared at all: a program wrote the message, or it has too many
    /// addresses.
    package var isOfProgram = false
    /// Whether local parts alone were searched for in typed text.
    var hidesWords = true
    /// The addresses that were counted in typed text, as `local@domain`.
    var countedAddresses: Set<[UInt8]> = []
}

/// Rewrites the body of one reply. A protocol, so that a test can use a rewriter that misses
/// something, and check the leak check.
protocol BodyRewriting {
    /// - Parameters:
    ///   - header: the header section of the message; only its Content-* fields and those of
    ///     its thread are read.
    ///   - body: everything after the empty line, line ends as CRLF.
    /// - Throws: `550 5.7.7` if a name is in a part that cannot be rewritten, if a signature cannot
    ///   be removed, or if this takes too much work; `550 5.7.4` if a part is encrypted.
    func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody
}

/// Rewrites the body of one reply.
package struct BodyRewriter: BodyRewriting {
    private(set) var text: TextRewriter
    private(set) var files: Files
    let budget: WorkBudget

    init(names: ReplyNames, budget: WorkBudget) {
        text = TextRewriter(names: names)
        self.budget = budget
        files = Files(names: names, work: budget)
    }

    /// The files of one message. Most messages have none, and need no search of them.
    final class Files {
        private let names: ReplyNames
        private let work: WorkBudget
        /// The files that stay unchanged.
        var kept: [(part: MIMEPart, title: PartTitle)] = []
        private(set) lazy var search = FileSearch(LeakNames(names), work: work)

        init(names: ReplyNames, work: WorkBudget) { (self.names, self.work) = (names, work) }

        /// Whether an address of the user is in the name of a file. Works even if the budget is
        /// spent.
        func isInName(_ name: [UInt8]) -> Bool {
            FileSearch(LeakNames(names), work: WorkBudget(limit: .max)).finds(
                in: name[...], .eightBit)
        }
    }

    /// Units of work for each octet of a text that is rewritten.
    static let textWork = 30

    /// Levels of encoded messages that are opened. Deeper ones are searched, but not rewritten.
    private static let maximumNesting = 4

    package func rewrite(
        content header: HeaderSection, body: [UInt8]
    ) throws(Refusal) -> RewrittenBody {
        guard !text.isOverfull else {
            throw .unrewritable(part: "more addresses in the header than can be searched for")
        }
        let root = MIMEPart.parse(header: header, body: body)
        var rewriter = self
        rewriter.text.contentIDs = ContentIDs(of: root, names: text.names)
        rewriter.text.outwardIDs = text.ids(in: header, work: budget)
        // The number of answers that one reply may give is fixed before anything in it is compared.
        text.search.beginCounting()
        var counting = rewriter
        counting.files = Files(names: text.names, work: budget)
        _ = try counting.rewrite(root, body: body)
        text.search.endCounting()
        return try rewriter.rewrite(root, body: body)
    }

    private func rewrite(_ root: MIMEPart, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        let isAnswer = holdsCalendarAnswer(root, in: body)
        var work = Work(
            bytes: body, nesting: 0, place: text.names.isAutomatic || isAnswer ? .whole : .body)
        let result = try rewrite(root, in: &work, PartTitle(place: .messageText))
        let place = headerPlace(work)
        let fields = PartHeader.contentFields(
            of: root, with: result, place: place, text: text, work: budget)
        guard !text.isOverfull else {
            throw .unrewritable(part: "more addresses of the relay than can be read")
        }
        guard !budget.isSpent else { throw .tooMuchWork }
        var reasons: [RelayReason] = []
        if text.names.isAutomatic {
            reasons.append(
                RelayReason(.automaticNeutral, "a program wrote it, so its addresses were removed"))
        } else if work.notes.hasNeutral {
            reasons.append(
                RelayReason(
                    .quotationNeutral,
                    "addresses, and the paths of links, were removed from quoted text"))
        }
        switch text.search.mode {
        case .full: break
        case .withoutWords:
            reasons.append(
                RelayReason(.typedBound, "many words like local parts, so none is searched for"))
        case .neutral:
            reasons.append(
                RelayReason(.typedBound, "typed text has many addresses, so all were removed"))
        }
        if work.notes.hasRemoved {
            reasons.append(
                RelayReason(
                    .quotationRemoved, "quoted text that cannot be written again was removed"))
        }
        if work.notes.hasAnswer {
            reasons.append(
                RelayReason(.calendarRebuilt, "the answer of a calendar was written again"))
        }
        if work.notes.hasMetadata {
            reasons.append(RelayReason(.pictureMetadata, "pictures lost their metadata"))
        }
        return RewrittenBody(
            contentFields: fields, body: result.pieces, reasons: reasons, map: result.map,
            refusal: { [kept = files.kept] in refusal(kept[$0].part, kept[$0].title) },
            isOfProgram: place != .typed, hidesWords: text.search.mode == .full,
            countedAddresses: text.search.seen)
    }

    /// The message during its rewriting.
    struct Work {
        let bytes: [UInt8]
        let nesting: Int
        /// The place of its texts. It adds what their form does not show.
        var place: TextPlace
        /// Whether it is within an attached message.
        var isAttached = false
        var notes = Notes()
    }

    /// The place of the fields of parts.
    func headerPlace(_ work: Work) -> TextPlace {
        work.place != .body ? work.place : isNeutral ? .whole : .typed
    }

    /// Whether typed text is treated like quoted text.
    var isNeutral: Bool { text.search.mode == .neutral && !isCounting }

    /// Whether this pass only counts the candidates in typed text, and searches for nothing.
    var isCounting: Bool { text.search.isCounting }

    /// Charges the budget for the reading of a text.
    func charge(_ octets: Int) {
        budget.charge(octets * (isCounting ? Self.formWork : Self.textWork))
    }

    /// The changes, for the reasons; by form alone.
    struct Notes {
        var hasMetadata = false
        var hasNeutral = false
        var hasRemoved = false
        var hasAnswer = false
    }

    /// The result of rewriting one entity.
    struct Result {
        /// The body; nil if it is unchanged.
        var pieces: [ArraySlice<UInt8>]?
        /// Set if charset or transfer encoding could not be kept.
        var contentType: ContentType?
        var transferEncoding: TransferEncoding?
        /// Whether it is a message of the team's. Its Subject is then the name of the part.
        var isOfTeam = false
        /// The kind of each stretch of the outgoing body.
        var map: StretchMap
    }

    /// A part that stays unchanged.
    func unchanged(_ part: MIMEPart, _ content: StretchMap.Content) -> Result {
        Result(map: StretchMap(part.bodyRange.count, content))
    }

    // MARK: The tree

    private func rewrite(
        _ part: MIMEPart, in work: inout Work, _ title: PartTitle
    ) throws(Refusal) -> Result {
        try rewrite(part, CryptographicPart(part, in: work.bytes), in: &work, title)
    }

    private func rewrite(
        _ part: MIMEPart, _ kind: CryptographicPart?, in work: inout Work, _ title: PartTitle
    ) throws(Refusal) -> Result {
        if budget.isSpent { throw .tooMuchWork }
        let type = part.contentType
        if type.matches("multipart") {
            if type.subtype == "encrypted" { throw .encryptedReply }
            return part.isComposite || part.preamble != nil
                ? try rewriteMultipart(part, in: &work) : try rewriteText(part, in: &work, title)
        }
        switch kind {
        case .encrypted: throw .encryptedReply
        // A key among several parts was already removed.
        case .enclosing, .removable: throw signed(part, title)
        case nil: break
        }
        if let nested = part.children.first { return try rewriteMessage(part, nested, in: &work) }
        let isMessage =
            type.matches("message", "rfc822") || type.matches("message", "global")
            || type.matches("message", "news")
        if isMessage, !part.transferEncoding.isIdentity {
            return try rewriteEncodedMessage(part, in: &work, title)
        }
        if PartKind.isText(type) { return try rewriteText(part, in: &work, title) }
        if let picture = rewritePicture(part, in: &work) { return picture }
        return try lookInto(part, in: &work, title)
    }

    private func rewriteMultipart(_ part: MIMEPart, in work: inout Work) throws(Refusal) -> Result {
        let kinds = part.children.map { CryptographicPart($0, in: work.bytes) }
        if part.isComposite,
            kinds.indices.allSatisfy({
                isRemovable(part.children[$0], kinds[$0], number: $0, of: part)
            })
        {
            throw signed(part.children[0], PartTitle(place: .part(0, of: part)))
        }
        let boundary = Boundary(
            part.contentType,
            attached: work.isAttached ? "\(work.nesting) \(part.bodyRange.lowerBound)" : nil,
            text: text)
        let quoted = quotedAlternatives(of: part, in: work)
        var output = PieceBuilder(work.bytes)
        var position = part.bodyRange.lowerBound
        if let preamble = part.preamble {
            output.copy(position..<preamble.lowerBound, .made)
            writeLoose(preamble, to: &output, in: work)
            position = preamble.upperBound
        }
        for (number, child) in part.children.enumerated() {
            if isRemovable(child, kinds[number], number: number, of: part) {
                output.write([], inPlaceOf: position..<child.bodyRange.upperBound, .made)
                position = child.bodyRange.upperBound
                continue
            }
            boundary.copy(position..<child.headerRange.lowerBound, to: &output)
            let place = work.place
            if quoted.contains(number) { work.place = .quoted }
            let result = try rewrite(
                child, kinds[number], in: &work, PartTitle(place: .part(number, of: part)))
            // A picture of a quotation returns under the name that the team gave it.
            let isPicture = number > 0 && part.contentType.matches("multipart", "related")
            let headerPlace = isPicture || result.isOfTeam ? .whole : headerPlace(work)
            append(
                child, result,
                fields: PartHeader.partFields(
                    of: child, with: result, place: headerPlace, text: text, work: budget),
                place: headerPlace, to: &output, in: work)
            work.place = place
            position = child.bodyRange.upperBound
        }
        if let epilogue = part.epilogue, epilogue.lowerBound >= position {
            boundary.copy(position..<epilogue.lowerBound, to: &output)
            writeLoose(epilogue, to: &output, in: work)
            position = epilogue.upperBound
        }
        boundary.copy(position..<max(position, part.bodyRange.upperBound), to: &output)
        var result = Result(pieces: output.pieces, map: output.map)
        result.contentType = boundary.contentType
        if part.contentType.matches("multipart", "signed") {
            var type = result.contentType ?? part.contentType
            type.subtype = "mixed"
            type.parameters["protocol"] = nil
            type.parameters["micalg"] = nil
            result.contentType = type
        }
        return result
    }

    /// Whether a part is a key or a signature. In a multipart/signed, the signature has the type in
    /// `protocol` (RFC 1847 section 2.1).
    private func isRemovable(
        _ child: MIMEPart, _ kind: CryptographicPart?, number: Int, of part: MIMEPart
    ) -> Bool {
        if kind == .removable { return true }
        guard number > 0, part.contentType.matches("multipart", "signed"),
            let type = part.contentType.parameters["protocol"]?.lowercased()
        else { return false }
        return child.contentType.type + "/" + child.contentType.subtype == type
    }

    /// The parts of a multipart/alternative that are treated as quoted: if some show a quotation,
    /// those that show none.
    private func quotedAlternatives(of part: MIMEPart, in work: Work) -> Set<Int> {
        guard work.place == .body, part.contentType.matches("multipart", "alternative"),
            part.children.count > 1
        else {
            return []
        }
        let shown = part.children.map { showsQuotation($0, in: work) }
        guard shown.contains(where: { $0?.isQuoting == true }) else { return [] }
        // A part with many more words of the user's own than another one has an unmarked quotation
        // among them.
        let fewest = shown.compactMap { $0?.typed }.min() ?? 0
        return Set(
            shown.indices.filter { number in
                shown[number].map { !$0.isQuoting || $0.typed > fewest + fewest / 4 + Self.unequal }
                    ?? false
            })
    }

    /// Letters and digits by which alternatives may differ, in addition to a quarter of them.
    private static let unequal = 24

    /// The quotations that a part shows.
    private struct Shown {
        var isQuoting: Bool
        /// Letters and digits outside of them.
        var typed: Int
    }

    /// Whether a part shows a quotation; nil if it has no text.
    private func showsQuotation(_ part: MIMEPart, in work: Work) -> Shown? {
        guard !part.contentType.matches("message") else { return nil }
        var shown: Shown?
        for child in part.children {
            guard let one = showsQuotation(child, in: work) else { continue }
            shown = Shown(
                isQuoting: one.isQuoting || shown?.isQuoting == true,
                typed: one.typed + (shown?.typed ?? 0))
        }
        guard !part.isComposite, PartKind.isText(part.contentType), !PartKind.isContentLines(part),
            !PartKind.isHeaderFields(part.contentType),
            let decoded = part.transferEncoding.decode(work.bytes[part.bodyRange])
        else { return shown }
        budget.charge(decoded.bytes.count * Self.formWork)
        let reading = TextCoding.read(decoded, part: part, place: .body)
        let syntax = PartKind.syntax(part.contentType)
        if !reading.stretches.hasQuotation, reading.isBlank(syntax) { return nil }
        return Shown(isQuoting: reading.stretches.hasQuotation, typed: reading.typedLetters(syntax))
    }

    /// Units of work for each octet of a text if only its form is read.
    static let formWork = 3

    /// Appends a part. Its header is kept if the fields are unchanged and is otherwise rewritten;
    /// its body follows.
    /// - Parameter place: the place of its fields.
    private func append(
        _ part: MIMEPart, _ result: Result, fields: [HeaderField]?, place: TextPlace,
        to output: inout PieceBuilder, in work: Work
    ) {
        if let fields {
            let header = HeaderSection(fields).serialized
            output.write(
                header, inPlaceOf: part.headerRange,
                PartHeader.map(
                    of: HeaderSection(fields), old: part.header, place: place, text: text))
            // A header without an empty line before the body now needs one.
            let separator = part.headerRange.upperBound..<part.bodyRange.lowerBound
            if separator.isEmpty, !part.bodyRange.isEmpty {
                output.write([0x0D, 0x0A], inPlaceOf: separator, .made)
            } else {
                output.copy(separator, .made)
            }
        } else {
            output.copy(part.headerRange, PartHeader.map(of: part, place: place, text: text))
            output.copy(part.headerRange.upperBound..<part.bodyRange.lowerBound, .made)
        }
        if let pieces = result.pieces {
            output.append(pieces, result.map)
        } else {
            output.copy(part.bodyRange, result.map)
        }
    }

    /// Writes text outside of all parts. No program shows it, and the user's own program writes
    /// none there.
    private func writeLoose(_ range: Range<Int>, to output: inout PieceBuilder, in work: Work) {
        let octets = Array(work.bytes[range])
        let edits = text.edits(octets, place: .whole)
        output.write(
            edits.isEmpty ? nil : edits.applied(to: octets), inPlaceOf: range,
            edits.isAnyMade ? .made : .neutral)
    }

    // MARK: Messages within messages

    /// Enters an attached message. It is the team's if its header shows that; otherwise its place
    /// decides.
    private func enter(_ header: HeaderSection, _ work: inout Work) {
        budget.charge(header.fields.reduce(0) { $0 + $1.bytes.count * 4 })
        work.isAttached = true
        if work.place != .quoted, text.names.isOfTeam(header) { work.place = .quoted }
    }

    private func rewriteMessage(
        _ part: MIMEPart, _ nested: MIMEPart, in work: inout Work
    ) throws(Refusal) -> Result {
        var output = PieceBuilder(work.bytes)
        output.copy(part.bodyRange.lowerBound..<nested.headerRange.lowerBound, .made)
        let (place, wasAttached) = (work.place, work.isAttached)
        enter(nested.header, &work)
        let result = try rewrite(nested, in: &work, PartTitle(place: .attachedMessageText))
        let fields = PartHeader.messageFields(
            of: nested, with: result, place: headerPlace(work), text: text, work: budget)
        append(nested, result, fields: fields, place: headerPlace(work), to: &output, in: work)
        let isOfTeam = work.place == .quoted
        (work.place, work.isAttached) = (place, wasAttached)
        output.copy(
            nested.bodyRange
                .upperBound..<max(nested.bodyRange.upperBound, part.bodyRange.upperBound), .made)
        return Result(pieces: output.pieces, isOfTeam: isOfTeam, map: output.map)
    }

    private func rewriteEncodedMessage(
        _ part: MIMEPart, in work: inout Work, _ title: PartTitle
    ) throws(Refusal) -> Result {
        guard work.nesting < Self.maximumNesting,
            let decoded = part.transferEncoding.decode(work.bytes[part.bodyRange]),
            decoded.defects.isSubset(of: TextCoding.harmless)
        else { return try lookInto(part, in: &work, title) }
        let message = Message.parse(decoded.bytes)
        var inner = Work(
            bytes: decoded.bytes, nesting: work.nesting + 1, place: work.place, notes: work.notes)
        let root = MIMEPart.parse(message)
        enter(root.header, &inner)
        let result = try rewrite(root, in: &inner, PartTitle(place: .attachedMessageText))
        work.notes = inner.notes
        var output = PieceBuilder(decoded.bytes)
        append(
            root, result,
            fields: PartHeader.messageFields(
                of: root, with: result, place: headerPlace(inner), text: text, work: budget),
            place: headerPlace(inner), to: &output, in: inner)
        guard let pieces = output.pieces else {
            var result = unchanged(part, .message(part.transferEncoding, output.map))
            result.isOfTeam = inner.place == .quoted
            return result
        }
        let bytes = pieces.reduce(into: [UInt8]()) { $0 += $1 }
        let encoded = TextCoding.ending(
            like: work.bytes[part.bodyRange], part.transferEncoding.encode(bytes) ?? bytes)
        return Result(
            pieces: [encoded[...]], isOfTeam: inner.place == .quoted,
            map: StretchMap(encoded.count, .message(part.transferEncoding, output.map)))
    }
}
