// Finds the starts of deflate streams in compressed data: zip (office files, archives), gzip, PDF
// and PNG.

import Support

/// The kinds of data that are unpacked.
package enum Archive {
    case zip, gzip, pdf, png

    /// The kind with which octets begin; nil for data that is not unpacked.
    package init?(_ octets: some Collection<UInt8>) {
        var head: UInt32 = 0
        var count = 0
        for octet in octets.prefix(4) {
            head |= UInt32(octet) << UInt32(24 - 8 * count)
            count += 1
        }
        switch head {
        case _ where head >> 16 == 0x504B: self = .zip
        case _ where head >> 8 == 0x1F_8B08: self = .gzip
        case 0x2550_4446: self = .pdf
        case 0x8950_4E47: self = .png
        default: return nil
        }
    }

    /// Octets at the beginning of a file that are searched for the start of an archive. A program
    /// in front of its archive reads it there.
    private static let maximumLead = 1 << 20
    /// Octets at the end of a zip file that may contain the end of its directory, with the longest
    /// comment (APPNOTE section 4.3.16).
    private static let directoryEnd = 22 + 65_535

    /// The kinds as which octets can be read: the kind with which they begin, and zip and PDF after
    /// other octets, as unpacking programs search for them there.
    static func kinds(of octets: UnsafeBufferPointer<UInt8>) -> [Archive] {
        var kinds = Archive(octets).map { [$0] } ?? []
        let lead = UnsafeBufferPointer(rebasing: octets[..<min(octets.count, maximumLead)])
        let tail = UnsafeBufferPointer(rebasing: octets[max(0, octets.count - directoryEnd)...])
        if !kinds.contains(.zip),
            occurs([0x50, 0x4B, 3, 4], in: lead) || occurs([0x50, 0x4B, 5, 6], in: tail)
        {
            kinds.append(.zip)
        }
        if !kinds.contains(.pdf), occurs(Array("%PDF-".utf8), in: lead) { kinds.append(.pdf) }
        return kinds
    }

    private static func occurs(_ word: [UInt8], in octets: UnsafeBufferPointer<UInt8>) -> Bool {
        var from = 0
        while let index = octets.firstIndex(of: word[0], from: from),
            index + word.count <= octets.count
        {
            if octets[index..<(index + word.count)].elementsEqual(word) { return true }
            from = index + 1
        }
        return false
    }

    /// Offsets at which deflate streams begin, in order. For a gzip file, only that of the first
    /// member.
    package func deflated(in bytes: [UInt8]) -> [Int] {
        switch self {
        case .zip: Self.zip(bytes)
        case .gzip: Self.gzip(bytes, at: 0).map { [$0] } ?? []
        case .pdf: Self.pdf(bytes)
        case .png: Self.png(bytes)
        }
    }

    /// The start of the stream of the next member of a gzip file (RFC 1952 section 2.2); nil if
    /// there is none.
    /// - Parameter end: the index after the stream of the previous member.
    static func nextMember(in bytes: [UInt8], after end: Int) -> Int? {
        var start = end + 8
        while start < bytes.count, bytes[start] == 0 { start += 1 }
        guard start + 3 < bytes.count, bytes[start] == 0x1F, bytes[start + 1] == 0x8B,
            bytes[start + 2] == 8
        else { return nil }
        return gzip(bytes, at: start)
    }

    /// Local file headers (APPNOTE section 4.3.7), found by their signature, so that a damaged
    /// directory hides nothing.
    private static func zip(_ bytes: [UInt8]) -> [Int] {
        var starts: [Int] = []
        var index = 0
        while index + 30 < bytes.count {
            guard bytes[index] == 0x50, bytes[index + 1] == 0x4B, bytes[index + 2] == 3,
                bytes[index + 3] == 4
            else {
                index += 1
                continue
            }
            let method = Int(bytes[index + 8]) | Int(bytes[index + 9]) << 8
            let name = Int(bytes[index + 26]) | Int(bytes[index + 27]) << 8
            let extra = Int(bytes[index + 28]) | Int(bytes[index + 29]) << 8
            // The search of the archive itself covers stored entries.
            if method == 8, index + 30 + name + extra < bytes.count {
                starts.append(index + 30 + name + extra)
            }
            index += 30
        }
        return starts
    }

    /// The index after the header (RFC 1952 section 2.3).
    private static func gzip(_ bytes: [UInt8], at start: Int) -> Int? {
        guard bytes.count > start + 18 else { return nil }
        let flags = bytes[start + 3]
        var index = start + 10
        if flags & 4 != 0 {
            guard index + 2 < bytes.count else { return nil }
            index += 2 + Int(bytes[index]) + Int(bytes[index + 1]) << 8
        }
        for flag in [8, 16] as [UInt8] where flags & flag != 0 {
            while index < bytes.count, bytes[index] != 0 { index += 1 }
            index += 1
        }
        if flags & 2 != 0 { index += 2 }
        return index < bytes.count ? index : nil
    }

    /// After `stream` and a zlib header, except for pictures, as their pixels are not text.
    private static func pdf(_ bytes: [UInt8]) -> [Int] {
        let word = Array("stream".utf8)
        var starts: [Int] = []
        var index = 0
        // The index after the last `stream`, so that the octets up to the next one are searched
        // once.
        var last = 0
        while index + word.count + 4 < bytes.count {
            guard bytes[index] == word[0], bytes[index..<(index + word.count)].elementsEqual(word)
            else {
                index += 1
                continue
            }
            let dictionary = bytes[max(last, index - maximumDictionary)..<index]
            index += word.count
            last = index
            var at = index
            while at < bytes.count, bytes[at] == 0x0D || bytes[at] == 0x0A { at += 1 }
            guard at > index, at + 2 < bytes.count, isZlib(bytes[at], bytes[at + 1]),
                !isPicture(dictionary)
            else { continue }
            starts.append(at + 2)
        }
        return starts
    }

    /// Octets before `stream` that are searched for its dictionary. A longer dictionary does not
    /// count as that of a picture.
    private static let maximumDictionary = 1_024
    private static let subtype = Array("/Subtype".utf8)
    private static let image = Array("/Image".utf8)

    /// Whether a dictionary belongs to a picture (ISO 32000-1 section 8.9.5).
    private static func isPicture(_ dictionary: ArraySlice<UInt8>) -> Bool {
        var rest = dictionary
        while let slash = rest.firstIndex(of: subtype[0]) {
            rest = rest[slash...]
            if rest.starts(with: subtype) {
                let value = rest.dropFirst(subtype.count).drop { $0 <= 0x20 }
                if value.starts(with: image) { return true }
            }
            rest = rest.dropFirst()
        }
        return false
    }

    /// Compressed chunks that may contain text (zTXt, iTXt, iCCP).
    private static func png(_ bytes: [UInt8]) -> [Int] {
        var starts: [Int] = []
        var index = 8
        while index + 12 < bytes.count {
            let length =
                Int(bytes[index]) << 24 | Int(bytes[index + 1]) << 16 | Int(bytes[index + 2]) << 8
                | Int(bytes[index + 3])
            let type = String(decoding: bytes[(index + 4)..<(index + 8)], as: UTF8.self)
            if type == "zTXt" || type == "iTXt" || type == "iCCP" {
                let end = min(index + 8 + min(length, 400), bytes.count - 2)
                for at in (index + 8)..<max(index + 8, end) where isZlib(bytes[at], bytes[at + 1]) {
                    starts.append(at + 2)
                    break
                }
            }
            index += 12 + length
        }
        return starts
    }

    /// RFC 1950 section 2.2: deflate with a window of at most 32 K, and a correct check value.
    private static func isZlib(_ first: UInt8, _ second: UInt8) -> Bool {
        first & 15 == 8 && first >> 4 <= 7 && (Int(first) << 8 | Int(second)) % 31 == 0
            && second & 32 == 0
    }
}
