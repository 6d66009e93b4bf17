// Looks into compressed data, bounded: zip (office files, archives), gzip, and the streams of PDF and PNG.

enum Archive {
    /// Levels of archives within archives that are opened.
    private static let maximumDepth = 3
    /// Octets that a stream counts for at least: to begin one costs too.
    private static let smallest = 1_024

    /// Unpacks what can be unpacked and hands each piece to `search`.
    /// - Parameter budget: octets that may still be unpacked; lowered by what was.
    /// - Returns: whether `search` found something.
    static func entries(in bytes: [UInt8], budget: inout Int, depth: Int = 0, search: ([UInt8]) -> Bool) -> Bool {
        guard depth < maximumDepth else { return false }
        for start in deflated(in: bytes) {
            guard budget > 0 else { return false }
            let unpacked = Inflate.inflate(bytes[start...], limit: budget)
            budget -= max(unpacked.count, smallest)
            if unpacked.isEmpty { continue }
            if search(unpacked) || entries(in: unpacked, budget: &budget, depth: depth + 1, search: search) { return true }
        }
        return false
    }

    /// Whether octets begin as something that is looked into.
    static func isArchive(_ bytes: [UInt8]) -> Bool { signatures.contains { bytes.starts(with: $0) } }

    private static let signatures: [[UInt8]] = [[0x50, 0x4B], [0x1F, 0x8B, 0x08], Array("%PDF".utf8), [0x89, 0x50, 0x4E, 0x47]]

    /// Offsets at which deflate streams begin.
    private static func deflated(in bytes: [UInt8]) -> [Int] {
        if bytes.starts(with: [0x50, 0x4B]) { return zip(bytes) }
        if bytes.starts(with: [0x1F, 0x8B, 0x08]) { return gzip(bytes).map { [$0] } ?? [] }
        if bytes.starts(with: Array("%PDF".utf8)) { return pdf(bytes) }
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return png(bytes) }
        return []
    }

    /// Local file headers (APPNOTE section 4.3.7), found by their signature, so that a damaged directory hides nothing.
    private static func zip(_ bytes: [UInt8]) -> [Int] {
        var starts: [Int] = []
        var index = 0
        while index + 30 < bytes.count {
            guard bytes[index] == 0x50, bytes[index + 1] == 0x4B, bytes[index + 2] == 3, bytes[index + 3] == 4 else {
                index += 1
                continue
            }
            let method = Int(bytes[index + 8]) | Int(bytes[index + 9]) << 8
            let name = Int(bytes[index + 26]) | Int(bytes[index + 27]) << 8
            let extra = Int(bytes[index + 28]) | Int(bytes[index + 29]) << 8
            // Stored entries are seen by the search of the archive itself.
            if method == 8, index + 30 + name + extra < bytes.count { starts.append(index + 30 + name + extra) }
            index += 30
        }
        return starts
    }

    /// Behind the header of RFC 1952 section 2.3.
    private static func gzip(_ bytes: [UInt8]) -> Int? {
        guard bytes.count > 18 else { return nil }
        let flags = bytes[3]
        var index = 10
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

    /// Behind `stream` and a zlib header, where the data is not a compressed picture too large to hold text.
    private static func pdf(_ bytes: [UInt8]) -> [Int] {
        let word = Array("stream".utf8)
        var starts: [Int] = []
        var index = 0
        while index + word.count + 4 < bytes.count {
            guard bytes[index] == word[0], bytes[index..<(index + word.count)].elementsEqual(word) else {
                index += 1
                continue
            }
            index += word.count
            var at = index
            while at < bytes.count, bytes[at] == 0x0D || bytes[at] == 0x0A { at += 1 }
            if at > index, at + 2 < bytes.count, isZlib(bytes[at], bytes[at + 1]) { starts.append(at + 2) }
        }
        return starts
    }

    /// Compressed text chunks (zTXt, iTXt).
    private static func png(_ bytes: [UInt8]) -> [Int] {
        var starts: [Int] = []
        var index = 8
        while index + 12 < bytes.count {
            let length =
                Int(bytes[index]) << 24 | Int(bytes[index + 1]) << 16 | Int(bytes[index + 2]) << 8 | Int(bytes[index + 3])
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

    /// RFC 1950 section 2.2: deflate with a window of at most 32 K, and a right check.
    private static func isZlib(_ first: UInt8, _ second: UInt8) -> Bool {
        first & 15 == 8 && first >> 4 <= 7 && (Int(first) << 8 | Int(second)) % 31 == 0 && second & 32 == 0
    }
}
