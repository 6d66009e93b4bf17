// Rewrites the body of a reply: takes the whole MIME tree apart, rewrites what holds a name, and puts it together again.

import InternetMessage

/// An outgoing body, with the fields that describe it.
package struct RewrittenBody {
    /// The Content-* fields of the message itself.
    package var contentFields: [HeaderField]
    /// The body in consecutive pieces; nil where it is unchanged.
    package var body: [ArraySlice<UInt8>]?
    /// Which rules changed it; set by form alone, never by what of the inbox was found.
    package var reasons: [RelayReason]
    /// Stretches of the received body in which nothing must be hidden.
    var searched: [SearchedStretch] = []
    /// Pieces of the body that are pictures without metadata.
    var pictures: [[UInt8]] = []
}

/// Rewrites the body of one reply. A protocol, so that a test can use a rewriter that overlooks something, and see the leak
/// check.
protocol BodyRewriting {
    /// - Parameters:
    ///   - header: the header section of the message; only its Content-* fields are read.
    ///   - body: everything after the empty line, line ends as CRLF.
    /// - Throws: `550 5.7.7` where a name is in a part that cannot be rewritten, where a signature cannot be taken out, or
    ///   where this takes too much work; `550 5.7.4` where a part is encrypted.
    func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody
}

/// Rewrites the body of one reply.
package struct BodyRewriter: BodyRewriting {
    private(set) var text: TextRewriter
    private let opaque: OpaqueScan
    private let budget: WorkBudget

    init(names: ReplyNames, budget: WorkBudget) {
        text = TextRewriter(names: names)
        self.budget = budget
        opaque = OpaqueScan(names: names, work: budget)
    }

    /// Units of work for each octet of a text that is rewritten.
    private static let textWork = 30

    /// Levels of encoded messages that are opened; deeper ones are searched, not rewritten.
    private static let maximumNesting = 4

    package func rewrite(content header: HeaderSection, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        guard !text.isOverfull else { throw .unrewritable(part: "more addresses in the header than can be searched for") }
        let root = MIMEPart.parse(header: header, body: body)
        var rewriter = self
        rewriter.text.contentIDs = ContentIDs(of: root, names: text.names)
        return try rewriter.rewrite(root, body: body)
    }

    private func rewrite(_ root: MIMEPart, body: [UInt8]) throws(Refusal) -> RewrittenBody {
        var work = Work(bytes: body, nesting: 0)
        let result = try rewrite(root, in: &work, PartTitle(place: .messageText))
        let fields = PartHeader.contentFields(of: root, with: result, text: text, work: budget)
        guard !text.isOverfull else { throw .unrewritable(part: "more addresses of the relay than can be read") }
        guard !budget.isSpent else { throw .tooMuchWork }
        let reasons = work.hasMetadata ? [RelayReason("picture-metadata", "pictures lost their metadata")] : []
        return RewrittenBody(
            contentFields: fields, body: result.pieces, reasons: reasons, searched: opaque.searched, pictures: opaque.pictures)
    }

    /// The message that is being taken apart.
    struct Work {
        let bytes: [UInt8]
        let nesting: Int
        /// Whether a picture had metadata.
        var hasMetadata = false
        /// Whether it is within an attached forward of the team's, which may have its guesses anywhere.
        var isForward = false
        /// Whether it is within a signed part of such a message: the relay changed nothing in it.
        var isSigned = false
        var place: TextPlace { isForward ? isSigned ? .signed : .quoted : .body }
    }

    /// The result of rewriting one entity.
    struct Result {
        /// The body; nil where it is unchanged.
        var pieces: [ArraySlice<UInt8>]?
        /// Set where charset or transfer encoding could not be kept.
        var contentType: ContentType?
        var transferEncoding: TransferEncoding?

        static let unchanged = Result()
    }

    // MARK: The tree

    private func rewrite(_ part: MIMEPart, in work: inout Work, _ title: PartTitle) throws(Refusal) -> Result {
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
        // A key among several parts was already taken out.
        case .enclosing, .removable: throw signed(part, title)
        case nil: break
        }
        if let nested = part.children.first { return try rewriteMessage(part, nested, in: &work) }
        let isMessage = type.matches("message", "rfc822") || type.matches("message", "global") || type.matches("message", "news")
        if isMessage, !part.transferEncoding.isIdentity { return try rewriteEncodedMessage(part, in: &work, title) }
        if PartKind.isText(type) { return try rewriteText(part, in: &work, title) }
        if let picture = rewritePicture(part, in: &work) { return picture }
        return try lookInto(part, in: &work, title)
    }

    private func rewriteMultipart(_ part: MIMEPart, in work: inout Work) throws(Refusal) -> Result {
        let kinds = part.children.map { CryptographicPart($0, in: work.bytes) }
        if part.isComposite, kinds.indices.allSatisfy({ isRemovable(part.children[$0], kinds[$0], number: $0, of: part) }) {
            throw signed(part.children[0], PartTitle(place: .part(0, of: part)))
        }
        let wasSigned = work.isSigned
        defer { work.isSigned = wasSigned }
        work.isSigned = wasSigned || part.contentType.matches("multipart", "signed")
        let boundary = Boundary(part.contentType, place: work.isForward ? .quoted : .whole, text: text)
        var output = PieceBuilder(work.bytes)
        var position = part.bodyRange.lowerBound
        if let preamble = part.preamble {
            output.copy(position..<preamble.lowerBound)
            output.write(rewriteLoose(preamble, in: work), inPlaceOf: preamble)
            position = preamble.upperBound
        }
        for (number, child) in part.children.enumerated() {
            if isRemovable(child, kinds[number], number: number, of: part) {
                output.write([], inPlaceOf: position..<child.bodyRange.upperBound)
                position = child.bodyRange.upperBound
                continue
            }
            boundary.copy(position..<child.headerRange.lowerBound, to: &output)
            let result = try rewrite(child, kinds[number], in: &work, PartTitle(place: .part(number, of: part)))
            append(
                child, result,
                fields: PartHeader.partFields(of: child, with: result, isForward: work.isForward, text: text, work: budget),
                to: &output)
            position = child.bodyRange.upperBound
        }
        if let epilogue = part.epilogue, epilogue.lowerBound >= position {
            boundary.copy(position..<epilogue.lowerBound, to: &output)
            output.write(rewriteLoose(epilogue, in: work), inPlaceOf: epilogue)
            position = epilogue.upperBound
        }
        boundary.copy(position..<max(position, part.bodyRange.upperBound), to: &output)
        var result = Result(pieces: output.pieces)
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

    /// Whether a part is a key or a signature; in a multipart/signed, the signature has the type that `protocol` names (RFC
    /// 1847 section 2.1).
    private func isRemovable(_ child: MIMEPart, _ kind: CryptographicPart?, number: Int, of part: MIMEPart) -> Bool {
        if kind == .removable { return true }
        guard number > 0, part.contentType.matches("multipart", "signed"),
            let type = part.contentType.parameters["protocol"]?.lowercased()
        else { return false }
        return child.contentType.type + "/" + child.contentType.subtype == type
    }

    /// Appends a part: its header, unchanged where the fields are the same, else rewritten, and its body.
    private func append(_ part: MIMEPart, _ result: Result, fields: [HeaderField]?, to output: inout PieceBuilder) {
        if let fields {
            output.write(HeaderSection(fields).serialized, inPlaceOf: part.headerRange)
            // A header that ran directly into the body now needs an empty line.
            let separator = part.headerRange.upperBound..<part.bodyRange.lowerBound
            if separator.isEmpty, !part.bodyRange.isEmpty {
                output.write([0x0D, 0x0A], inPlaceOf: separator)
            } else {
                output.copy(separator)
            }
        } else {
            output.copy(part.headerRange.lowerBound..<part.bodyRange.lowerBound)
        }
        if let pieces = result.pieces { output.append(pieces) } else { output.copy(part.bodyRange) }
    }

    /// Text outside of all parts.
    private func rewriteLoose(_ range: Range<Int>, in work: Work) -> [UInt8]? {
        text.rewrite(Array(work.bytes[range]), place: work.isForward ? .quoted : .typed)
    }

    // MARK: Messages within messages

    private func rewriteMessage(_ part: MIMEPart, _ nested: MIMEPart, in work: inout Work) throws(Refusal) -> Result {
        var output = PieceBuilder(work.bytes)
        output.copy(part.bodyRange.lowerBound..<nested.headerRange.lowerBound)
        let wasForward = work.isForward
        let wasSigned = work.isSigned
        // The parts around a forward are the user's, whatever they claim to be.
        if !wasForward { work.isSigned = false }
        work.isForward = wasForward || text.names.isForward(nested.header)
        let result = try rewrite(nested, in: &work, PartTitle(place: .attachedMessageText))
        let fields = PartHeader.messageFields(of: nested, with: result, isForward: work.isForward, text: text, work: budget)
        (work.isForward, work.isSigned) = (wasForward, wasSigned)
        append(nested, result, fields: fields, to: &output)
        output.copy(nested.bodyRange.upperBound..<max(nested.bodyRange.upperBound, part.bodyRange.upperBound))
        return Result(pieces: output.pieces)
    }

    private func rewriteEncodedMessage(_ part: MIMEPart, in work: inout Work, _ title: PartTitle) throws(Refusal) -> Result {
        guard work.nesting < Self.maximumNesting, let decoded = part.transferEncoding.decode(work.bytes[part.bodyRange]),
            decoded.defects.isSubset(of: TextCoding.harmless)
        else { return try lookInto(part, in: &work, title) }
        let message = Message.parse(decoded.bytes)
        var inner = Work(bytes: decoded.bytes, nesting: work.nesting + 1)
        let root = MIMEPart.parse(message)
        inner.isForward = work.isForward || text.names.isForward(root.header)
        inner.isSigned = work.isForward && work.isSigned
        let result = try rewrite(root, in: &inner, PartTitle(place: .attachedMessageText))
        work.hasMetadata = work.hasMetadata || inner.hasMetadata
        var output = PieceBuilder(decoded.bytes)
        append(
            root, result,
            fields: PartHeader.messageFields(of: root, with: result, isForward: inner.isForward, text: text, work: budget),
            to: &output)
        guard let pieces = output.pieces else { return .unchanged }
        let bytes = pieces.reduce(into: [UInt8]()) { $0 += $1 }
        let encoded = part.transferEncoding.encode(bytes) ?? bytes
        return Result(pieces: [TextCoding.ending(like: work.bytes[part.bodyRange], encoded)[...]])
    }

    // MARK: Leaves

    private func rewriteText(_ part: MIMEPart, in work: inout Work, _ title: PartTitle) throws(Refusal) -> Result {
        let raw = work.bytes[part.bodyRange]
        guard let decoded = part.transferEncoding.decode(raw) else { return try lookInto(part, in: &work, title) }
        budget.charge(decoded.bytes.count * Self.textWork)
        if opaque.findsInBlocks(of: decoded.bytes) {
            try refuse(part, title, "uuencoded block")
            return .unchanged
        }
        // An archive that is declared as text is searched like any other.
        if Archive(decoded.bytes) != nil, opaque.finds(in: raw, encoding: part.transferEncoding, isOfMessage: work.nesting == 0) {
            try refuse(part, title)
            return .unchanged
        }
        let blocks = ArmouredBlocks(decoded.bytes, isMarkup: PartKind.syntax(part.contentType) == .markup)
        if blocks.isBroken { throw signed(part, title, "a block of PGP without its end") }
        if blocks.isEncrypted { throw .encryptedReply }
        switch TextCoding.rewrite(decoded, part: part, place: work.place, with: text) {
        case .unchanged: return .unchanged
        case .changed(let bytes, let charset, let encoding):
            var result = Result(pieces: [bytes[...]], transferEncoding: encoding)
            if let charset {
                var type = part.contentType
                type.parameters["charset"] = charset
                result.contentType = type
            }
            return result
        case .impossible where text.names.isShadow: return Result(pieces: [])
        case .impossible(let why):
            try refuse(part, title, why)
            return .unchanged
        case .opaque: return try lookInto(part, in: &work, title)
        }
    }

    /// Octets of an encoded part by which a picture is recognized, line breaks before it included.
    private static let pictureHead = 256
    /// Units of work for each octet of a picture.
    private static let pictureWork = 8

    /// Takes the metadata out of a picture and searches nothing in it; nil for any other part. Its octets decide, whatever it is
    /// called: a logo of the team's, which programs send back with an answer, may hold a guess anywhere.
    private func rewritePicture(_ part: MIMEPart, in work: inout Work) -> Result? {
        let raw = work.bytes[part.bodyRange]
        guard let head = part.transferEncoding.decode(raw.prefix(Self.pictureHead)),
            PictureMetadata.kind(of: head.bytes) != nil, let decoded = part.transferEncoding.decode(raw)?.bytes,
            let stripped = PictureMetadata.stripped(decoded)
        else { return nil }
        budget.charge(decoded.count * Self.pictureWork)
        if stripped == decoded {
            if work.nesting == 0 { opaque.passOver(stretch: part.bodyRange) }
            return .unchanged
        }
        work.hasMetadata = true
        let encoding = part.transferEncoding
        let bytes = encoding.isIdentity ? stripped : TextCoding.ending(like: raw, encoding.encode(stripped) ?? stripped)
        opaque.passOver(picture: bytes)
        return Result(pieces: [bytes[...]])
    }

    /// Searches a part without rewriting it, unless it proves to be text under another type.
    private func lookInto(_ part: MIMEPart, in work: inout Work, _ title: PartTitle) throws(Refusal) -> Result {
        let raw = work.bytes[part.bodyRange]
        guard opaque.finds(in: raw, encoding: part.transferEncoding, isOfMessage: work.nesting == 0) else { return .unchanged }
        let isTextInUnknownEncoding = part.transferEncoding.decode([]) == nil && PartKind.isText(part.contentType)
        if PartKind.mayBeText(part) || isTextInUnknownEncoding,
            let bytes = TextCoding.rewriteDisguised(raw, encoding: part.transferEncoding, place: work.place, with: text)
        {
            if !opaque.finds(in: bytes[...], encoding: part.transferEncoding) { return Result(pieces: [bytes[...]]) }
        }
        try refuse(part, title)
        return .unchanged
    }

    /// Refuses the reply. The copy that is only searched goes on.
    private func refuse(_ part: MIMEPart, _ title: PartTitle, _ why: String? = nil) throws(Refusal) {
        guard !text.names.isShadow else { return }
        throw .unrewritable(part: words(part, title, why), detail: detail(part, title, why))
    }

    private func signed(_ part: MIMEPart, _ title: PartTitle, _ why: String? = nil) -> Refusal {
        .signedReply(part: words(part, title, why), detail: detail(part, title, why))
    }

    private func words(_ part: MIMEPart, _ title: PartTitle, _ why: String?) -> String {
        clean(title.words(part, isClean: isClean) + (why.map { ": " + $0 } ?? ""))
    }

    private func detail(_ part: MIMEPart, _ title: PartTitle, _ why: String?) -> String {
        clean(title.detail(part) + (why.map { ": " + $0 } ?? ""))
    }

    /// A message's types and charsets go into the answer and the log, and may be anything.
    private func clean(_ words: String) -> String { isClean(Array(words.utf8)) ? words : "an attachment" }

    /// Whether a name holds nothing that the rewriting hides or the leak check finds.
    private func isClean(_ name: [UInt8]) -> Bool {
        text.rewrite(name, syntax: .fileName, place: .typed) == nil && text.rewrite(name) == nil && !opaque.finds(inName: name)
    }
}
