// The body of a forward: calendars and links are rewritten so that answers go through the relay.
// All else stays octet for octet.

import InternetMessage

extension ForwardRewriting {
    /// Octets of one encoded part that can be rewritten. Larger calendars are refused, and the
    /// links of larger texts stay.
    private static let maximumText = 8_000_000
    /// Octets of a line (RFC 5322 section 2.1.1). Postfix breaks longer lines, which breaks our
    /// signature.
    private static let maximumLine = 998

    /// Addresses of one part that are replaced. A calendar with more is refused, and so is one with
    /// more to store than a message may have. Further links stay.
    private static let maximumAddresses = 5_000

    /// Reverse addresses that were made for one part.
    private struct Made {
        var addresses: [AddrSpec: AddrSpec] = [:]
        /// Whether there were too many.
        var isFull = false
    }

    private mutating func reverse(_ address: AddrSpec, _ made: inout Made) -> AddrSpec? {
        if let known = made.addresses[address] { return known }
        guard made.addresses.count < Self.maximumAddresses,
            toStore.count < engine.settings.limits.storedAddresses
        else {
            made.isFull = true
            return nil
        }
        let new = reverse(address)
        made.addresses[address] = new
        return new
    }

    /// An outgoing body.
    struct Body {
        /// Consecutive pieces; nil if the body is unchanged.
        var pieces: [ArraySlice<UInt8>]?
        /// Links that had to stay unchanged.
        var linksLeft = 0
    }

    /// - Parameters:
    ///   - inbox: the address of the user in the user's calendar.
    /// - Throws: if a calendar cannot be rewritten.
    mutating func rewriteBody(
        _ header: HeaderSection, _ body: [UInt8], inbox: InboxAddress
    ) throws(Refusal) -> Body {
        var result = Body()
        var output = PieceBuilder(body)
        var position = 0
        try rewrite(
            MIMEPart.parse(header: header, body: body), of: body, inbox: inbox, into: &result
        ) { range, new in
            output.copy(position..<range.lowerBound, .made)
            output.write(new, inPlaceOf: range, .made)
            position = range.upperBound
        }
        output.copy(position..<body.count, .made)
        result.pieces = output.pieces
        return result
    }

    private mutating func rewrite(
        _ part: MIMEPart, of body: [UInt8], inbox: InboxAddress, into result: inout Body,
        write: (Range<Int>, [UInt8]) -> Void
    ) throws(Refusal) {
        let type = part.contentType
        // A signed part stays unchanged, and an encrypted part cannot be read.
        guard !type.matches("multipart", "signed"), !type.matches("multipart", "encrypted") else {
            return
        }
        for child in part.children {
            try rewrite(child, of: body, inbox: inbox, into: &result, write: write)
        }
        guard !part.isComposite, !part.bodyRange.isEmpty else { return }
        let isCalendar = PartKind.isCalendar(part)
        guard isCalendar || PartKind.isShown(part) else { return }
        let raw = body[part.bodyRange]
        guard raw.count <= Self.maximumText, let decoded = part.transferEncoding.decode(raw) else {
            if isCalendar {
                throw .malformedBody("a calendar that is too large, or in an unknown encoding")
            }
            result.linksLeft += 1
            return
        }
        var left = 0
        var made = Made()
        let outcome = TextCoding.rewrite(decoded, part: part) { text in
            isCalendar
                ? calendarEdits(text, inbox: inbox, &made)
                : linkEdits(text, part: part, &made, left: &left)
        }
        if isCalendar, made.isFull { throw .malformedBody("a calendar with too many addresses") }
        result.linksLeft += left
        switch outcome {
        case .unchanged: return
        case .changed(let new, charset: nil, encoding: nil): write(part.bodyRange, new)
        case .changed, .impossible, .opaque:
            if isCalendar { throw .malformedBody("a calendar in a damaged encoding") }
            result.linksLeft += 1
        }
    }

    /// The user's own address becomes the inbox, as the user's calendar looks for the inbox among
    /// the attendees.
    private mutating func calendarEdits(
        _ text: [UInt8], inbox: InboxAddress, _ made: inout Made
    ) -> [TextEdit] {
        withoutActuallyEscaping({ (address: AddrSpec, isParticipant: Bool) -> AddrSpec in
            if isRelayAddress(address) { return isParticipant ? inbox.revealed : address }
            return reverse(address, &made) ?? address
        }) { CalendarAddresses(text, words: words, transform: $0).edits }
    }

    private mutating func linkEdits(
        _ text: [UInt8], part: MIMEPart, _ made: inout Made, left: inout Int
    ) -> [TextEdit] {
        let isMarkup = PartKind.syntax(part.contentType) == .markup
        let links = MailtoLinks(text, syntax: isMarkup ? .markup : .plain, words: words) {
            address in
            isRelayAddress(address) ? address : reverse(address, &made)
        }
        // A signed block within the text stays unchanged.
        let edits = ArmouredBlocks.outside(links.edits, in: text)
        guard part.transferEncoding.isIdentity else {
            left = links.left
            return edits
        }
        let fitting = Self.keepingLines(edits, in: text, isMarkup: isMarkup, cuts: links.cuts)
        left = links.left + fitting.left
        return fitting.edits
    }

    /// The edits without those that make a line too long. In HTML, a line break is inserted before
    /// the attribute instead.
    /// - Parameter cuts: the edits to use if a line break does not help either.
    /// - Returns: the edits, and the number of links that had to stay.
    private static func keepingLines(
        _ edits: [TextEdit], in text: [UInt8], isMarkup: Bool, cuts: [Int: TextEdit]
    ) -> (edits: [TextEdit], left: Int) {
        var kept: [TextEdit] = []
        var left = 0
        var index = 0
        while index < edits.count {
            let line = line(around: edits[index].range, in: text)
            var inside: [TextEdit] = []
            while index < edits.count, edits[index].range.lowerBound < line.upperBound {
                inside.append(edits[index])
                index += 1
            }
            let longest = longest(line, inside)
            guard longest > maximumLine, longest > line.count else {
                kept += inside
                continue
            }
            let broken = inside.flatMap { edit in
                (isMarkup && !edit.replacement.isEmpty ? lineBreak(before: edit, in: text) : nil)
                    .map { [$0, edit] } ?? [edit]
            }
            if isMarkup, Self.longest(line, broken) <= max(maximumLine, line.count) {
                kept += broken
            } else {
                // Edits that only shorten are already cuts.
                let lengthening = inside.filter { !$0.replacement.isEmpty }
                left += lengthening.count
                kept += inside.compactMap {
                    $0.replacement.isEmpty ? $0 : cuts[$0.range.lowerBound]
                }
            }
        }
        return (kept, left)
    }

    private static func line(around range: Range<Int>, in text: [UInt8]) -> Range<Int> {
        var start = range.lowerBound
        while start > 0, text[start - 1] != 0x0A { start -= 1 }
        var end = range.upperBound
        while end < text.count, text[end] != 0x0A { end += 1 }
        return start..<end
    }

    /// Octets of the longest line that results from the edits of one line.
    private static func longest(_ line: Range<Int>, _ edits: [TextEdit]) -> Int {
        var longest = 0
        var current = 0
        var position = line.lowerBound
        for edit in edits {
            current += edit.range.lowerBound - position
            if edit.replacement.starts(with: [0x0D, 0x0A]) {
                longest = max(longest, current)
                current = 0
            } else {
                current += edit.replacement.count
            }
            position = edit.range.upperBound
        }
        return max(longest, current + line.upperBound - position)
    }

    /// A line break that replaces the white space before an attribute.
    private static func lineBreak(before edit: TextEdit, in text: [UInt8]) -> TextEdit? {
        var index = edit.range.lowerBound - 1
        while index > 0, text[index].isASCIILetter || "=\"'".utf8.contains(text[index]) {
            index -= 1
        }
        guard index > 0, text[index].isWhiteSpace, index + 1 < edit.range.lowerBound else {
            return nil
        }
        return TextEdit(range: index..<(index + 1), replacement: [0x0D, 0x0A])
    }
}
