// Words of a reading that may be a local part alone: whole words, and whole parts of the paths of a machine.

import Support

enum WordReading {
    /// Octets of the shortest and the longest local part that is looked for alone.
    private static let lengths = 6...64
    /// Consonants in a row that no word has.
    private static let unspeakable = 6

    /// Calls with each word that looks like a local part and is part of no address, host or link.
    static func forEach(_ text: Reading.View, _ body: (Range<Int>) -> Void) {
        var isInLink = false
        var hasSlash = false
        var index = 0
        while index < text.count {
            if text.gaps[index] != 0 { (isInLink, hasSlash) = (false, false) }
            let octet = text[index]
            guard AddressReading.isOfLocal(octet) else {
                switch octet {
                case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""), UInt8(ascii: "("), UInt8(ascii: ")"),
                    UInt8(ascii: "|"),
                    UInt8(ascii: ","), UInt8(ascii: ";"):
                    (isInLink, hasSlash) = (false, false)
                case UInt8(ascii: "/"): hasSlash = true
                default: break
                }
                index += 1
                continue
            }
            let start = index
            index += 1
            while index < text.count, text.gaps[index] == 0, AddressReading.isOfLocal(text[index]) { index += 1 }
            let run = start..<index
            let next = index < text.count && text.gaps[index] == 0 ? text[index] : 0
            if next == UInt8(ascii: ":"), text[index...].starts(with: "://".utf8) || text[index...].starts(with: #":\/\/"#.utf8) {
                // `file:` leads to a machine and not to a host.
                isInLink = !text[run].elementsEqual("file".utf8)
            } else if !hasSlash, text[run].starts(with: "www.".utf8) || next == UInt8(ascii: "/") && Domain.isComplete(text, run)
            {
                isInLink = true
            }
            let before = start > 0 && text.gaps[start] == 0 ? text[start - 1] : 0
            if isInLink || before == UInt8(ascii: "@") || before == UInt8(ascii: "%") || next == 0x40 || next == 0x25
                || next == 0x3D
            {
                continue
            }
            // `jane(at)other.example`: an address.
            if "([{".utf8.contains(next), text[(index + 1)...].starts(with: "a".utf8) { continue }
            words(text, run, body)
        }
    }

    /// Calls with each segment of a path that may be an address as gateways write it: `jane_k77x_home_example`.
    static func forEachJoined(_ text: Reading.View, _ body: (Range<Int>) -> Void) {
        var index = 0
        while let slash = text.octets.firstIndex(of: UInt8(ascii: "/"), from: index), slash + 1 < text.count {
            index = slash + 1
            let start = index
            var marks = 0
            while index < text.count, text.gaps[index] == 0, text[index].isASCIIAlphanumeric || text[index] == UInt8(ascii: "_") {
                if text[index] == UInt8(ascii: "_") { marks += 1 }
                index += 1
            }
            if marks >= 2, lengths.lowerBound...128 ~= index - start { body(start..<index) }
        }
    }

    private static func words(_ text: Reading.View, _ run: Range<Int>, _ body: (Range<Int>) -> Void) {
        func call(_ range: Range<Int>) {
            var (start, end) = (range.lowerBound, range.upperBound)
            while start < end, AddressReading.isTrimmed(text[start]) { start += 1 }
            while end > start, AddressReading.isTrimmed(text[end - 1]) { end -= 1 }
            if lengths.contains(end - start), looksLikeLocalPart(text[start..<end]) { body(start..<end) }
        }
        call(run)
        // What a mark joins to other words; no more than two of them, as each is a guess.
        let first = text[run].firstIndex { $0 == 0x5F || $0 == 0x2D || $0 == 0x2B || $0 == 0x27 }
        guard let first, let last = text[run].lastIndex(where: { $0 == 0x5F || $0 == 0x2D || $0 == 0x2B || $0 == 0x27 }) else {
            return
        }
        if first > run.lowerBound { call(run.lowerBound..<last) }
        if first + 1 < run.upperBound { call((first + 1)..<run.upperBound) }
        if last > first {
            call(run.lowerBound..<first)
            call((last + 1)..<run.upperBound)
        }
    }

    private static func isVowel(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x61, 0x65, 0x69, 0x6F, 0x75, 0x79, 0x80...0xFF: true
        default: false
        }
    }

    /// Whether a word is no word of a language: with a digit or a separator, or if it cannot be pronounced.
    private static func looksLikeLocalPart(_ word: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        var (hasOther, hasNoDigit, hasVowel) = (false, false, false)
        var consonants = 0
        var isSpeakable = true
        for octet in word {
            if !octet.isASCIIDigit { hasNoDigit = true }
            if !octet.isASCIILetter, octet < 0x80 { hasOther = true }
            if isVowel(octet) {
                (hasVowel, consonants) = (true, 0)
            } else {
                consonants += 1
                if consonants == unspeakable { isSpeakable = false }
            }
        }
        return hasNoDigit && (hasOther || !hasVowel || !isSpeakable)
    }
}
