// Metadata of pictures: data that a camera or a program wrote about its owner, or that a team wrote
// into a logo that returns. It is removed from every picture, and no picture is searched, so
// nothing depends on the content of one.

/// PNG, JPEG, GIF and WebP without metadata. The pixels stay octet for octet.
enum PictureMetadata {
    enum Kind { case png, jpeg, gif, webP }

    /// Octets that identify the kind.
    static let signature = 16

    /// The kind of picture with which octets begin, regardless of name and type; nil for all that
    /// is none of the four.
    static func kind(of octets: some Collection<UInt8>) -> Kind? {
        let head = Array(octets.prefix(signature))
        if head.starts(with: PNGMetadata.signature) { return .png }
        if head.starts(with: [0xFF, 0xD8, 0xFF]) { return .jpeg }
        // A text can begin with these words, but has no such octets after them.
        let isBinary = head.contains { $0 < 0x09 }
        if isBinary, head.starts(with: "GIF87a".utf8) || head.starts(with: "GIF89a".utf8) {
            return .gif
        }
        if isBinary, head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WEBP".utf8) {
            return .webP
        }
        return nil
    }

    /// The picture without metadata; for a damaged one, its readable part; nil for other octets.
    static func stripped(_ octets: [UInt8]) -> [UInt8]? {
        switch kind(of: octets) {
        case .png: PNGMetadata.stripped(octets)
        case .jpeg: JPEGMetadata.stripped(octets)
        case .gif: GIFMetadata.stripped(octets)
        case .webP: WebPMetadata.stripped(octets)
        case nil: nil
        }
    }
}

/// Chunks of a PNG file (W3C PNG, third edition, section 5).
enum PNGMetadata {
    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Chunks that determine how the pixels are shown, with the maximum octets of each, as anything
    /// could follow those octets.
    private static let kept = [
        ("IHDR", 13), ("PLTE", 768), ("tRNS", 256), ("IDAT", Int.max), ("gAMA", 4), ("cHRM", 32),
        ("sRGB", 1), ("sBIT", 4),
        ("bKGD", 6), ("pHYs", 9), ("hIST", 512), ("cICP", 4), ("acTL", 8), ("fcTL", 26),
        ("fdAT", Int.max),
    ].map { (type: Array($0.utf8), most: $1) }
    private static let end: [UInt8] = [0, 0, 0, 0, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82]

    static func stripped(_ octets: [UInt8]) -> [UInt8] {
        var output = Array(octets[..<signature.count])
        output.reserveCapacity(octets.count)
        var position = signature.count
        while octets.count - position >= 12 {
            let length = octets[position..<(position + 4)].reduce(0) { $0 << 8 | Int($1) }
            guard length <= octets.count - position - 12 else { break }
            let type = octets[(position + 4)..<(position + 8)]
            if type.elementsEqual("IEND".utf8) { break }
            if kept.contains(where: { type.elementsEqual($0.type) && length <= $0.most }) {
                output += octets[position..<(position + length + 12)]
            }
            position += length + 12
        }
        return output + end
    }
}

/// Blocks of a GIF file (GIF89a, sections 17 to 27).
enum GIFMetadata {
    private static let trailer: UInt8 = 0x3B

    static func stripped(_ octets: [UInt8]) -> [UInt8] {
        guard octets.count >= 13 else { return Array(octets.prefix(6)) + [trailer] }
        var position = 13 + tableLength(octets[10])
        var output = Array(octets.prefix(position))
        output += Array(repeating: 0, count: position - output.count)
        output.reserveCapacity(octets.count)
        while position < octets.count {
            let start = position
            switch octets[start] {
            case 0x2C:
                guard start + 10 <= octets.count else { return output + [trailer] }
                let data = start + 10 + tableLength(octets[start + 9]) + 1
                guard let end = blocksEnd(octets, from: data) else { return output + [trailer] }
                output += octets[start..<end]
                position = end
            case 0x21:
                guard start + 2 < octets.count, let end = blocksEnd(octets, from: start + 2) else {
                    return output + [trailer]
                }
                if octets[start + 1] == 0xF9 || isLoop(octets[start..<end]) {
                    output += octets[start..<end]
                }
                position = end
            default: return output + [trailer]
            }
        }
        return output + [trailer]
    }

    private static func tableLength(_ flags: UInt8) -> Int {
        flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
    }

    /// How often an animation repeats: the extensions of Netscape and of AnimExts, with one block
    /// of three octets.
    private static func isLoop(_ block: ArraySlice<UInt8>) -> Bool {
        let name = block.dropFirst(3).prefix(11)
        return block.count == 19 && block.dropFirst().first == 0xFF
            && (name.elementsEqual("NETSCAPE2.0".utf8) || name.elementsEqual("ANIMEXTS1.0".utf8))
    }

    /// The index after the empty block that ends a row of blocks; nil if the file ends earlier.
    private static func blocksEnd(_ octets: [UInt8], from start: Int) -> Int? {
        var position = start
        while position < octets.count {
            let length = Int(octets[position])
            position += length + 1
            if length == 0 { return position }
        }
        return nil
    }
}

/// Chunks of a WebP file (RFC 9649 section 2).
enum WebPMetadata {
    static func stripped(_ octets: [UInt8]) -> [UInt8] {
        let chunks = chunks(octets[12...], isFrame: false)
        return Array("RIFF".utf8) + size(chunks.count + 4) + Array("WEBP".utf8) + chunks
    }

    private static func size(_ count: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) }
    }

    private static func chunks(_ octets: ArraySlice<UInt8>, isFrame: Bool) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(octets.count)
        var position = octets.startIndex
        while octets.endIndex - position >= 8 {
            let length = (0..<4).reduce(0) { $0 | Int(octets[position + 4 + $1]) << (8 * $1) }
            guard length <= octets.endIndex - position - 8 else { break }
            let data = octets[(position + 8)..<(position + 8 + length)]
            let name = octets[position..<(position + 4)]
            func add(_ content: some Collection<UInt8>) {
                output += name
                output += size(content.count)
                output += content
                if content.count % 2 == 1 { output.append(0) }
            }
            switch String(decoding: name, as: UTF8.self) {
            case "VP8 ", "VP8L", "ALPH": add(data)
            case "ANIM" where !isFrame && length == 6: add(data)
            case "VP8X" where !isFrame && length == 10:
                // No ICC profile, Exif or XMP follows.
                add([data[data.startIndex] & ~0x2C] + data.dropFirst())
            case "ANMF" where !isFrame && length >= 16:
                add(data.prefix(16) + chunks(data.dropFirst(16), isFrame: true))
            default: break
            }
            position += 8 + length + length % 2
        }
        return output
    }
}
