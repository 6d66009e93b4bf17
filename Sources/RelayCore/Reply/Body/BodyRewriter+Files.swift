// The leaves of a reply's body: pictures and files, and the names that a refusal gives them.

import InternetMessage
import LeakSearch

extension BodyRewriter {
    // MARK: Files

    /// Octets of an encoded part that identify a picture, line breaks before it included.
    private static let pictureHead = 256
    /// Units of work for each octet of a picture.
    private static let pictureWork = 8

    /// Removes the metadata of a picture and does not search it; nil for any other part. Its octets
    /// decide, not its name or type. A logo of the team's, which programs return with an answer,
    /// may contain a guess anywhere.
    func rewritePicture(_ part: MIMEPart, in work: inout Work) -> Result? {
        let raw = work.bytes[part.bodyRange]
        guard let head = part.transferEncoding.decode(raw.prefix(Self.pictureHead)),
            PictureMetadata.kind(of: head.bytes) != nil,
            let decoded = part.transferEncoding.decode(raw)?.bytes,
            let stripped = PictureMetadata.stripped(decoded)
        else { return nil }
        budget.charge(decoded.count * Self.pictureWork)
        if stripped == decoded { return unchanged(part, .picture) }
        work.notes.hasMetadata = true
        let encoding = part.transferEncoding
        let bytes =
            encoding.isIdentity
            ? stripped : TextCoding.ending(like: raw, encoding.encode(stripped) ?? stripped)
        return Result(pieces: [bytes[...]], map: StretchMap(bytes.count, .picture))
    }

    /// Maximum octets of a part that is declared as another type and still read as text. A larger
    /// one is treated as a file: it would need twice its size in memory, and letters are smaller.
    private static let maximumDisguised = 4_000_000

    /// Keeps a part unchanged, for the check to search, unless it proves to be text under another
    /// type.
    func lookInto(
        _ part: MIMEPart, in work: inout Work, _ title: PartTitle
    ) throws(Refusal) -> Result {
        let raw = work.bytes[part.bodyRange]
        let isTextInUnknownEncoding =
            part.transferEncoding.decode([]) == nil && PartKind.isText(part.contentType)
        func disguised() -> DecodedText? {
            guard PartKind.mayBeText(part) || isTextInUnknownEncoding else { return nil }
            // A part that cannot be decoded is text only if it reads like text.
            if case .unknown(let name) = part.transferEncoding,
                UUEncoding.isMeant(by: name) || !FileSearch.isReadable(raw)
            {
                return nil
            }
            return TextCoding.disguised(raw, encoding: part.transferEncoding)
        }
        if raw.count <= Self.maximumDisguised, let decoded = disguised() {
            var place = work.place
            // A message of the team's that is declared as a file.
            if place == .body, isMessageOfTeam(decoded.bytes) { place = .quoted }
            let stretches = Stretches(decoded.bytes, syntax: .plain, place: place)
            var reading = TextCoding.Reading(
                utf8: decoded.bytes, stretches: isNeutral ? stretches.neutral : stretches)
            charge(decoded.bytes.count)
            let bytes = TextCoding.rewriteDisguised(decoded, &reading, with: text)
            var result = written(
                bytes.map { .changed($0, charset: nil, encoding: nil) } ?? .unchanged, part,
                reading, in: &work)
            result.isOfTeam = place == .quoted
            return result
        }
        files.kept.append((part, title))
        return unchanged(part, .file(part.transferEncoding, number: files.kept.count - 1))
    }

    /// Whether octets begin like a message that has an address of the relay domain in its header.
    private func isMessageOfTeam(_ octets: [UInt8]) -> Bool {
        let head = octets.prefix(MIMEPart.maximumHeaderSize)
        let header = HeaderSection.parse(head).header
        let known: FieldNameSet = [
            "from", "to", "subject", "date", "message-id", "received", "mime-version",
            "content-type",
        ]
        guard header.fields.prefix(20).count(where: known.contains) >= 2 else { return false }
        budget.charge(head.count * 4)
        return text.names.isOfTeam(header)
    }

    func refuse(_ part: MIMEPart, _ title: PartTitle, _ why: String? = nil) throws(Refusal) {
        throw refusal(part, title, why)
    }

    func refusal(_ part: MIMEPart, _ title: PartTitle, _ why: String? = nil) -> Refusal {
        .unrewritable(part: words(part, title, why), detail: detail(part, title, why))
    }

    func signed(_ part: MIMEPart, _ title: PartTitle, _ why: String? = nil) -> Refusal {
        .signedReply(part: words(part, title, why), detail: detail(part, title, why))
    }

    private func words(_ part: MIMEPart, _ title: PartTitle, _ why: String?) -> String {
        clean(title.words(part, isClean: isClean) + (why.map { ": " + $0 } ?? ""))
    }

    private func detail(_ part: MIMEPart, _ title: PartTitle, _ why: String?) -> String {
        clean(title.detail(part) + (why.map { ": " + $0 } ?? ""))
    }

    /// A message's types and charsets are used in the answer and the log, and may have any content.
    private func clean(_ words: String) -> String {
        isClean(Array(words.utf8)) ? words : "an attachment"
    }

    /// Whether a name contains nothing that the rewriting hides or the leak check finds.
    private func isClean(_ name: [UInt8]) -> Bool {
        text.rewrite(name, syntax: .fileName, place: .typed) == nil && text.rewrite(name) == nil
            && !files.isInName(name)
    }
}
