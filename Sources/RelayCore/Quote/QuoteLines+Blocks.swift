// Separators and header blocks. Everything below them is quoted.

import InternetMessage
import Support

extension QuoteLines {
    // MARK: Separators

    /// The number of lines of a separator that begins here: `-----Original Message-----`, `Begin
    /// forwarded message:`.
    func separator(at index: Int) -> Int? {
        let line = text[lines[index].words]
        guard line.count >= 6, line.count <= 120, let first = line.first else { return nil }
        if first == UInt8(ascii: "["), line.last == UInt8(ascii: "]") {
            // `[Original Message processed by david]`
            let words = lower(lines[index].words).dropFirst().dropLast().split(separator: 0x20).map
            { Array($0) }
            return words.count > 1 && QuoteForms.namesMessage([words[0]])
                && QuoteForms.namesMessage([words[1]])
                ? 1 + attributionBlock(at: index + 1) : nil
        }
        guard
            line.last == UInt8(ascii: ":") || "-_=*".utf8.contains(first) || first == 0xE2
        else { return nil }
        let words = lower(lines[index].words)
        if words.last == UInt8(ascii: ":") {
            var line = words.dropLast()
            while line.last == 0x20 { line = line.dropLast() }
            if QuoteForms.beginsForward(Array(line)) { return 1 + attributionBlock(at: index + 1) }
        }
        func isRule(_ octet: UInt8) -> Bool { "-_=*".utf8.contains(octet) }
        let head = words.prefix { isRule($0) }.count
        let dashes = head > 0 ? head : Self.longDashes(words)
        guard dashes >= 3 else { return nil }
        if dashes == words.count {
            // Only a rule, as Outlook draws it above a header block.
            guard let next = next(after: index), let length = headerBlock(at: next) else {
                return nil
            }
            return next - index + length
        }
        let tail = words.reversed().prefix { isRule($0) || $0 == 0x20 }.count
        guard tail >= 3 || Self.longDashes(words.reversed()) >= 3 else { return nil }
        let inner = words[dashes..<max(dashes, words.count - tail)]
        guard inner.contains(where: { $0.isASCIILetter || $0 >= 0x80 }),
            !inner.starts(with: "begin ".utf8),
            !inner.starts(with: "end ".utf8)
        else { return nil }
        if QuoteForms.namesMessage(
            inner.split { $0 <= 0x20 || $0 == UInt8(ascii: "-") }.map { Array($0) })
        {
            return 1 + attributionBlock(at: index + 1)
        }
        // Unknown words count only if a block of fields follows.
        guard let next = next(after: index), let length = headerBlock(at: next) else { return nil }
        return next - index + length
    }

    /// The number of `—`, `–` and `―` at the beginning of a line.
    static func longDashes(_ words: some Collection<UInt8>) -> Int {
        let octets = Array(words.prefix(9))
        guard octets.count == 9 else { return 0 }
        return stride(from: 0, to: 9, by: 3).allSatisfy {
            octets[$0] == 0xE2 && octets[$0 + 1] == 0x80
        } ? 3 : 0
    }

    func next(after index: Int) -> Int? {
        for next in (index + 1)..<(index + 4) where next < lines.count && !lines[next].isBlank {
            return next
        }
        return nil
    }

    // MARK: Header blocks

    /// The number of lines of a mail's block of fields that begins here; nil if there is none.
    func headerBlock(at index: Int) -> Int? {
        guard field(lines[index].words) != nil else { return nil }
        let block = block(at: index)
        return block.isMail ? block.length : nil
    }

    /// The number of lines of fields that follow a separator.
    func attributionBlock(at index: Int) -> Int {
        guard index < lines.count, let first = next(after: index - 1),
            field(lines[first].words) != nil
        else { return 0 }
        return first - index + block(at: first).length
    }

    /// Maximum lines of a block that are read.
    static let blockLines = 24

    func block(at start: Int) -> (isMail: Bool, length: Int) {
        var seen: Set<QuoteForms.Field> = []
        var hasAddress = false
        var length = 0
        var blanks = 0
        var index = start
        while index < lines.count, index - start < Self.blockLines {
            let line = lines[index]
            if line.isBlank {
                blanks += 1
                if blanks > 1 { break }
                index += 1
                continue
            }
            if let field = field(line.words) {
                // The quotation may begin with fields of its own.
                if field == .from, seen.contains(.from) { break }
                seen.insert(field)
                if field == .from { hasAddress = Self.holdsAddress(lower(line.words)[...]) }
            } else {
                // A value of several lines: a list of addresses, or a long subject.
                guard blanks == 0, index > start, line.words.count <= Self.longest,
                    text[lines[index - 1].words].last == UInt8(ascii: ",")
                        || text[lines[index - 1].words].last == UInt8(ascii: ";")
                        || Self.holdsAddress(lower(line.words)[...])
                        || isFieldAlone(lines[index - 1].words)
                else { break }
                if isFieldAlone(lines[index - 1].words), Self.holdsAddress(lower(line.words)[...]) {
                    hasAddress = true
                }
            }
            blanks = 0
            index += 1
            length = index - start
        }
        return (seen.contains(.from) && (seen.count > 1 || hasAddress), max(1, length))
    }

    func isFieldAlone(_ words: Range<Int>) -> Bool {
        let last = text[words].last
        return (last == UInt8(ascii: ":") || last == UInt8(ascii: "*")) && field(words) != nil
    }

    /// The field in a line: `*Von:* Anna`, `Envoyé : lundi`, `发件人：…`.
    func field(_ words: Range<Int>) -> QuoteForms.Field? {
        let start = text[words].prefix(QuoteForms.longestField + 16)
        guard start.contains(0x3A) || start.contains(0x9A) else { return nil }
        let line = Self.lower(start)
        return field(in: line)
    }

    func field(in line: [UInt8]) -> QuoteForms.Field? {
        var start = line.startIndex
        while start < line.endIndex,
            line[start] == UInt8(ascii: "*") || line[start] == UInt8(ascii: "_")
                || line[start] == 0x20
        {
            start += 1
        }
        guard
            let colon = line[start...].indices.first(where: {
                line[$0] == 0x3A
                    || line[$0] == 0xEF && line[$0...].starts(with: [0xEF, 0xBC, 0x9A])
            })
        else { return nil }
        var end = colon
        while end > start,
            line[end - 1] == 0x20 || line[end - 1] == UInt8(ascii: "*")
                || line[end - 1] == UInt8(ascii: "_")
        {
            end -= 1
        }
        return end > start && end - start <= QuoteForms.longestField
            ? QuoteForms.field(Array(line[start..<end])) : nil
    }
}
