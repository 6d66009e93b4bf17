// `mailto:` URIs in texts: in plain text and anywhere in HTML, including attributes, scripts, and
// conditional comments that only some programs read.

import InternetMessage
import Support

/// The links of one text.
struct MailtoLinks {
    enum Syntax {
        case plain
        case markup
        /// A value of a content line (RFC 5545).
        case calendar
    }

    /// Links of one text that are rewritten. Further links stay, except for their words, and are
    /// counted.
    static let maximumCount = 2_000

    private static let scheme = Array("mailto:".utf8)

    let syntax: Syntax
    /// The replacements, in order.
    private(set) var edits: [TextEdit] = []
    /// Links that had to stay.
    private(set) var left = 0
    /// The edits that remove the words from a link that cannot be rewritten, by the start of the
    /// link. No text becomes longer by them.
    private(set) var cuts: [Int: TextEdit] = [:]

    /// Finds the links of a text.
    /// - Parameters:
    ///   - words: decides what happens to subject and body.
    ///   - transform: returns the replacement address; nil if there is none, and
    ///     then the link stays.
    init(_ text: [UInt8], syntax: Syntax, words: MailtoWords, transform: (AddrSpec) -> AddrSpec?) {
        self.syntax = syntax
        text.withUnsafeBufferPointer { text in
            var position = 0
            var count = 0
            while let found = Self.next(in: text, from: position, syntax) {
                let end = end(of: found, in: text)
                position = max(end, found.upperBound)
                let uri = uri(text, found.lowerBound..<position)
                guard let mailto = MailtoURI(uri), mailto.hasFields || Self.holdsAddress(uri) else {
                    continue
                }
                let cut = mailto.hasFields ? cut(text, found.upperBound..<position) : nil
                var isLeft = false
                let new: [UInt8]
                if !Self.holdsAddress(uri) {
                    new = mailto.keepingRecipients(words: words)
                } else if count < Self.maximumCount {
                    new = mailto.mapping(keepsEquals: syntax == .calendar, words: words) {
                        address in
                        guard address.leadsSomewhere else { return nil }
                        if let other = transform(address) { return other }
                        isLeft = true
                        return address
                    }
                } else {
                    (new, isLeft) = (uri, true)
                }
                if isLeft {
                    left += 1
                    if let cut { edits.append(cut) }
                } else if new != uri {
                    let written = syntax == .markup ? HTMLText.escaped(new) : new
                    count += 1
                    cuts[found.lowerBound] = cut
                    edits.append(TextEdit(range: found.lowerBound..<position, replacement: written))
                }
            }
        }
    }

    /// Whether a stretch of text contains anything that may be such a link.
    static func occur(in stretch: TextStretch) -> Bool {
        let isMarkup = PartKind.syntax(stretch.part.contentType) == .markup
        func occur(_ text: [UInt8]) -> Bool {
            text.withUnsafeBufferPointer {
                next(in: $0, from: 0, isMarkup ? .markup : .plain) != nil
            }
        }
        if occur(stretch.octets) || isMarkup && holdsLongGap(stretch.octets) { return true }
        // In UTF-16 and similar charsets, regardless of the charset that the part declares.
        guard stretch.octets.contains(0) else { return false }
        return occur(stretch.octets.filter { $0 != 0 })
    }

    /// Octets of zeros, tabs or line breaks that a browser skips within a scheme. A scheme with
    /// more may be longer than the overlap of two stretches, so it is searched for in the whole
    /// text.
    private static let longGap = 32

    private static func holdsLongGap(_ text: [UInt8]) -> Bool {
        var (zeros, breaks) = (0, 0)
        return text.contains { octet in
            zeros = octet == UInt8(ascii: "0") ? zeros + 1 : 0
            breaks = isPassedOver(UInt32(octet)) ? breaks + 1 : 0
            return zeros >= longGap || breaks >= longGap
        }
    }

    private static func holdsAddress(_ uri: [UInt8]) -> Bool {
        uri.indices.contains { uri[$0] == UInt8(ascii: "@") || uri[$0...].starts(with: "%40".utf8) }
    }

    // MARK: Where a link begins

    /// The next scheme with its colon.
    private static func next(
        in text: UnsafeBufferPointer<UInt8>, from: Int, _ syntax: Syntax
    ) -> Range<Int>? {
        let colon = UInt8(ascii: ":")
        var position = from
        while true {
            position = text.first(
                colon, or: syntax == .markup ? UInt8(ascii: "&") : colon, from: position)
            guard position < text.count else { return nil }
            if text[position] == colon {
                if let start = start(text, before: position, floor: from, syntax) {
                    return start..<(position + 1)
                }
            } else if let reference = HTMLReference.read(text, at: position),
                isOfScheme(reference.scalar)
            {
                for start in max(from, position - scheme.count + 1)...position {
                    if let end = end(text, schemeAt: start) { return start..<end }
                }
            }
            position += 1
        }
    }

    /// The start of the letters before a colon; nil if they are not those of the scheme.
    private static func start(
        _ text: UnsafeBufferPointer<UInt8>, before colon: Int, floor: Int, _ syntax: Syntax
    ) -> Int? {
        var index = colon
        for letter in scheme.dropLast().reversed() {
            index -= 1
            // A browser skips tabs and line breaks in a URI.
            while syntax == .markup, index >= floor, isPassedOver(UInt32(text[index])) {
                index -= 1
            }
            guard index >= floor, text[index].asciiLowercased == letter else { return nil }
        }
        return index
    }

    /// The end of a scheme that begins here and is written with references.
    private static func end(_ text: UnsafeBufferPointer<UInt8>, schemeAt start: Int) -> Int? {
        var index = start
        for (number, letter) in scheme.enumerated() {
            var next = read(text, at: index)
            while number > 0, let passed = next, isPassedOver(passed.scalar) {
                index = passed.end
                next = read(text, at: index)
            }
            guard let next, next.scalar < 0x80, UInt8(next.scalar).asciiLowercased == letter else {
                return nil
            }
            index = next.end
        }
        return index
    }

    private static func read(
        _ text: UnsafeBufferPointer<UInt8>, at index: Int
    ) -> (scalar: UInt32, end: Int)? {
        guard index < text.count else { return nil }
        return HTMLReference.read(text, at: index) ?? (UInt32(text[index]), index + 1)
    }

    private static func isOfScheme(_ scalar: UInt32) -> Bool {
        scalar < 0x80 && (scheme.contains(UInt8(scalar).asciiLowercased) || isPassedOver(scalar))
    }

    private static func isPassedOver(_ scalar: UInt32) -> Bool {
        scalar == 0x09 || scalar == 0x0A || scalar == 0x0D
    }

    // MARK: Where it ends

    private func end(of found: Range<Int>, in text: UnsafeBufferPointer<UInt8>) -> Int {
        var before = found.lowerBound
        while before > 0, found.lowerBound - before < 16, text[before - 1].isFoldingWhiteSpace {
            before -= 1
        }
        let quote = before > 0 ? text[before - 1] : 0
        if syntax == .markup, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"), before > 1,
            text[before - 2] == UInt8(ascii: "=") || text[before - 2].isFoldingWhiteSpace
        {
            // An attribute ends at its quote, regardless of its content.
            let end = text.first(quote, or: quote, from: found.upperBound)
            if end < text.count { return end }
        }
        let opener = found.lowerBound > 0 ? text[found.lowerBound - 1] : 0
        let closer: UInt8 =
            switch opener {
            case UInt8(ascii: "("): UInt8(ascii: ")")
            case UInt8(ascii: "["): UInt8(ascii: "]")
            case UInt8(ascii: "'"): opener
            default: 0
            }
        var end = found.upperBound
        while end < text.count, !isEnd(text, end), closer == 0 || text[end] != closer { end += 1 }
        guard opener != UInt8(ascii: "=") else { return end }
        // This punctuation belongs to the sentence, not to the link.
        while end > found.upperBound, ".,;:!?".utf8.contains(text[end - 1]) { end -= 1 }
        return end
    }

    private func isEnd(_ text: UnsafeBufferPointer<UInt8>, _ index: Int) -> Bool {
        let octet = text[index]
        switch octet {
        case 0...0x20, 0x7F, UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""): return true
        case UInt8(ascii: "\\"), UInt8(ascii: ";"): return syntax == .calendar
        case UInt8(ascii: "&") where syntax == .markup:
            guard let reference = HTMLReference.read(text, at: index) else { return false }
            return [0x22, 0x27, 0x3C, 0x3E, 0xA0].contains(reference.scalar)
        default: return false
        }
    }

    /// Removes everything from the question mark on.
    private func cut(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> TextEdit? {
        let mark = range.first { index in
            text[index] == UInt8(ascii: "?")
                || (syntax == .markup && HTMLReference.read(text, at: index)?.scalar == 0x3F)
        }
        return mark.map { TextEdit(range: $0..<range.upperBound, replacement: []) }
    }

    /// The URI with references decoded, without tabs and line breaks.
    private func uri(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) -> [UInt8] {
        guard syntax == .markup else { return Array(text[range]) }
        var uri: [UInt8] = []
        var index = range.lowerBound
        while index < range.upperBound {
            guard let reference = HTMLReference.read(text, at: index),
                reference.end <= range.upperBound
            else {
                if !Self.isPassedOver(UInt32(text[index])) { uri.append(text[index]) }
                index += 1
                continue
            }
            index = reference.end
            guard let scalar = Unicode.Scalar(reference.scalar),
                !Self.isPassedOver(reference.scalar)
            else { continue }
            // The charset of the text is not known here.
            uri +=
                reference.scalar < 0x80
                ? [UInt8(reference.scalar)]
                : MailtoURI.percentEncoded(Array(String(Character(scalar)).utf8))
        }
        while let last = uri.last, last.isWhiteSpace { uri.removeLast() }
        return uri
    }
}
