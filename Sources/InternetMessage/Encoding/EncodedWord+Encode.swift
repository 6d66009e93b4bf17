// Writes encoded words (RFC 2047), in UTF-8.

import Support

extension EncodedWord {
    /// Octets of an encoded word with its delimiters (RFC 2047 section 2).
    package static let maximumLength = 75
    /// Octets of encoded text that fit between `=?utf-8?q?` and `?=`.
    private static let room = maximumLength - 12
    /// A plain word longer than this is encoded, because a line of 998 octets could
    /// not be folded around it.
    static let longestPlainWord = 900

    /// Encodes all of `text` as encoded words with one space between them; empty for an empty text.
    ///
    /// Safe in phrases, comments and unstructured text. No word splits a character (a very
    /// long grapheme is split between scalars); B or Q is chosen by length. Control
    /// characters become spaces.
    package static func encode(_ text: String) -> String {
        let clean = withoutControls(text)
        let octets = clean.utf8.count
        guard octets > 0 else { return "" }
        let escaped = clean.utf8.count { !isPlainInQ($0) && $0 != 0x20 }
        let usesQ = octets + 2 * escaped <= (octets + 2) / 3 * 4
        var words = [String]()
        var current = [UInt8]()
        var length = 0
        func flush() {
            guard !current.isEmpty else { return }
            let text =
                usesQ ? q(current) : String(decoding: Base64.encodeUnbroken(current), as: UTF8.self)
            words.append((usesQ ? "=?utf-8?q?" : "=?utf-8?b?") + text + "?=")
            current.removeAll(keepingCapacity: true)
            length = 0
        }
        func add(_ piece: some Sequence<UInt8>) {
            let piece = Array(piece)
            let width =
                usesQ
                ? piece.reduce(0) { $0 + (isPlainInQ($1) || $1 == 0x20 ? 1 : 3) } : piece.count
            // 45 octets make 60 characters of base64, the most that fit
            // in `room` in groups of four.
            if length + width > (usesQ ? room : room / 4 * 3) { flush() }
            current.append(contentsOf: piece)
            length += width
        }
        for character in clean {
            if character.utf8.count <= room / 3 {
                add(character.utf8)
            } else {
                for scalar in character.unicodeScalars { add(String(scalar).utf8) }
            }
        }
        flush()
        return words.joined(separator: " ")
    }

    /// Encodes only a part of unstructured text: from the first word that is not plain ASCII to the
    /// last one.
    package static func encodeWhereNeeded(_ text: String) -> String {
        let clean = withoutControls(text)
        let words = clean.utf8.split(separator: 0x20, omittingEmptySubsequences: false)
        func isPlain(_ word: Substring.UTF8View) -> Bool {
            word.count <= longestPlainWord && word.allSatisfy { $0 < 0x7F && $0 >= 0x20 }
                && !Array(word).holdsEncodedWordMark
        }
        guard let first = words.firstIndex(where: { !isPlain($0) }),
            let last = words.lastIndex(where: { !isPlain($0) })
        else {
            return clean
        }
        func join(_ words: ArraySlice<Substring.UTF8View>) -> String {
            String(decoding: Array(words.joined(separator: [0x20])), as: UTF8.self)
        }
        var pieces = [String]()
        if first > 0 { pieces.append(join(words[..<first])) }
        pieces.append(encode(join(words[first...last])))
        if last + 1 < words.count { pieces.append(join(words[(last + 1)...])) }
        return pieces.joined(separator: " ")
    }

    /// Control characters, C1 and Unicode line separators included, become spaces, so that the
    /// written text cannot break a line.
    static func withoutControls(_ text: String) -> String {
        var view = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029: view.append(" ")
            default: view.append(scalar)
            }
        }
        return String(view)
    }

    /// The octets that need no encoding in a phrase (RFC 2047 section 5 (3)).
    private static func isPlainInQ(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "!")
            || octet == UInt8(ascii: "*")
            || octet == UInt8(ascii: "+") || octet == UInt8(ascii: "-")
            || octet == UInt8(ascii: "/")
    }

    private static func q(_ octets: [UInt8]) -> String {
        var output = [UInt8]()
        for octet in octets {
            if octet == 0x20 {
                output.append(UInt8(ascii: "_"))
            } else if isPlainInQ(octet) {
                output.append(octet)
            } else {
                QuotedPrintable.appendEscape(octet, to: &output)
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}

extension Collection where Element == UInt8 {
    /// Whether `=?` occurs, which a reader could take for the beginning of an encoded word.
    var holdsEncodedWordMark: Bool {
        zip(self, dropFirst()).contains { $0 == UInt8(ascii: "=") && $1 == UInt8(ascii: "?") }
    }
}
