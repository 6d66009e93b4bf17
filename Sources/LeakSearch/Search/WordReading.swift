// Words of a reading that may be a local part alone: complete words, and complete parts of local
// paths.

import Support

enum WordReading {
    /// Minimum and maximum octets of a local part that is searched for alone.
    private static let lengths = 6...64
    /// Schemes of links to hosts that anyone can open.
    private static let webSchemes: [StaticString] = [
        "http", "https", "ftp", "ftps", "ws", "wss", "webcal", "git", "svn",
    ]
    /// More consonants in a row than any word has.
    private static let unspeakable = 6

    // Classes of octets.
    private static let ofLocal: UInt8 = 1
    private static let vowel: UInt8 = 2
    private static let digit: UInt8 = 4
    /// Not a letter.
    private static let other: UInt8 = 8
    /// Marks that join words: `_`, `-`, `+`, `'`.
    private static let joint: UInt8 = 16
    /// Octets that end a link.
    private static let edge: UInt8 = 32
    private static let trimmed: UInt8 = 64

    private static let classes: [UInt8] = (0..<256).map { value in
        let octet = UInt8(value)
        var kind: UInt8 = 0
        if AddressReading.isOfLocal(octet) { kind |= ofLocal }
        if AddressReading.isTrimmed(octet) { kind |= trimmed }
        switch octet {
        case 0x61, 0x65, 0x69, 0x6F, 0x75, 0x79, 0x80...0xFF: kind |= vowel
        case 0x30...0x39: kind |= digit
        case 0x5F, 0x2D, 0x2B, 0x27: kind |= joint
        case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "("),
            UInt8(ascii: ")"), UInt8(ascii: "|"),
            UInt8(ascii: ","), UInt8(ascii: ";"):
            kind |= edge
        default: break
        }
        if !octet.isASCIILetter, octet < 0x80 { kind |= other }
        return kind
    }

    /// Calls `body` with each word that looks like a local part and does not belong to an address,
    /// host or link.
    /// - Parameter range: of complete words, with white space or an end on both sides.
    static func forEach(_ text: Reading.View, in range: Range<Int>, _ body: (Range<Int>) -> Void) {
        classes.withUnsafeBufferPointer { forEach(text, range, $0, body) }
    }

    @inline(__always)
    private static func forEach(
        _ text: Reading.View, _ range: Range<Int>, _ classes: UnsafeBufferPointer<UInt8>,
        _ body: (Range<Int>) -> Void
    ) {
        var isInLink = false
        var hasSlash = false
        var index = range.lowerBound
        while index < range.upperBound {
            if text.gaps[index] != 0 { (isInLink, hasSlash) = (false, false) }
            let octet = text[index]
            var kinds = classes[Int(octet)]
            guard kinds & ofLocal != 0 else {
                if kinds & edge != 0 {
                    (isInLink, hasSlash) = (false, false)
                } else if octet == UInt8(ascii: "/") {
                    hasSlash = true
                }
                index += 1
                continue
            }
            let start = index
            index += 1
            while index < range.upperBound, text.gaps[index] == 0,
                classes[Int(text[index])] & ofLocal != 0
            {
                kinds |= classes[Int(text[index])]
                index += 1
            }
            let run = start..<index
            let next = index < text.count && text.gaps[index] == 0 ? text[index] : 0
            if next == UInt8(ascii: ":"),
                text.holds("://", at: index) || text.holds(#":\/\/"#, at: index)
            {
                // `file:` and `smb:` lead to a path on a machine, not to a host of others.
                // Within another link, they belong to that.
                isInLink =
                    isInLink
                    || webSchemes.contains {
                        run.count >= $0.utf8CodeUnitCount
                            && text.holds($0, at: index - $0.utf8CodeUnitCount)
                    }
            } else if !hasSlash,
                octet == UInt8(ascii: "w") && run.count >= 4 && text.holds("www.", at: start)
                    || next == UInt8(ascii: "/") && Domain.isComplete(text, run)
            {
                isInLink = true
            }
            guard !isInLink, run.count >= lengths.lowerBound else { continue }
            let before = start > 0 && text.gaps[start] == 0 ? text[start - 1] : 0
            if before == UInt8(ascii: "@") || before == UInt8(ascii: "%") || next == 0x40
                || next == 0x25 || next == 0x3D
            {
                continue
            }
            // `jane(at)other.example`: an address.
            if next == UInt8(ascii: "(") || next == UInt8(ascii: "[") || next == UInt8(ascii: "{"),
                text.holds("a", at: index + 1)
            {
                continue
            }
            words(text, run, kinds, classes, body)
        }
    }

    /// Calls `body` with each segment of a path that may be an address in the form of gateways:
    /// `jane_k77x_home_example`.
    /// - Parameter range: of complete words.
    static func forEachJoined(
        _ text: Reading.View, in range: Range<Int>, _ body: (Range<Int>) -> Void
    ) {
        var index = range.lowerBound
        while let slash = text.first(UInt8(ascii: "/"), in: index..<range.upperBound),
            slash + 1 < range.upperBound
        {
            index = slash + 1
            let start = index
            var marks = 0
            while index < range.upperBound, text.gaps[index] == 0,
                text[index].isASCIIAlphanumeric || text[index] == UInt8(ascii: "_")
            {
                if text[index] == UInt8(ascii: "_") { marks += 1 }
                index += 1
            }
            if marks >= 2, lengths.lowerBound...128 ~= index - start { body(start..<index) }
        }
    }

    /// - Parameter kinds: the classes of all octets of the run.
    @inline(__always)
    private static func words(
        _ text: Reading.View, _ run: Range<Int>, _ kinds: UInt8,
        _ classes: UnsafeBufferPointer<UInt8>,
        _ body: (Range<Int>) -> Void
    ) {
        func call(_ range: Range<Int>) {
            var (start, end) = (range.lowerBound, range.upperBound)
            while start < end, classes[Int(text[start])] & trimmed != 0 { start += 1 }
            while end > start, classes[Int(text[end - 1])] & trimmed != 0 { end -= 1 }
            if lengths.contains(end - start), looksLikeLocalPart(text, start..<end, classes) {
                body(start..<end)
            }
        }
        call(run)
        // The parts that a mark joins to other words. At most two of them, as each is a guess.
        guard kinds & joint != 0 else { return }
        var (first, last) = (run.lowerBound, run.upperBound - 1)
        while classes[Int(text[first])] & joint == 0 { first += 1 }
        while classes[Int(text[last])] & joint == 0 { last -= 1 }
        if first > run.lowerBound { call(run.lowerBound..<last) }
        if first + 1 < run.upperBound { call((first + 1)..<run.upperBound) }
        if last > first {
            call(run.lowerBound..<first)
            call((last + 1)..<run.upperBound)
        }
    }

    /// Whether a word does not belong to a language.
    static func looksLikeLocalPart(_ text: Reading.View, _ word: Range<Int>) -> Bool {
        classes.withUnsafeBufferPointer { looksLikeLocalPart(text, word, $0) }
    }

    /// Whether a word does not belong to a language: with a digit or a separator, or if it cannot
    /// be pronounced.
    @inline(__always)
    private static func looksLikeLocalPart(
        _ text: Reading.View, _ word: Range<Int>, _ classes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        var kinds: UInt8 = 0
        var isNumber: UInt8 = digit
        var consonants = 0
        var isSpeakable = true
        for index in word {
            let kind = classes[Int(text[index])]
            kinds |= kind
            isNumber &= kind
            consonants = kind & vowel != 0 ? 0 : consonants + 1
            if consonants == unspeakable { isSpeakable = false }
        }
        return isNumber == 0 && (kinds & other != 0 || kinds & vowel == 0 || !isSpeakable)
    }
}
