// Attachments made to take hours: archives with streams over the same octets, or that unpack to a
// thousand times their size.

import InternetMessage
import Support

extension Hostile {
    /// Bombs found by an attack, of 0.4 to 19 MB.
    package static var bombs: [Hostile] {
        [(400, 400_000), (4_300, 400_000), (1_000, 4_000_000), (4_300, 19_000_000)].flatMap {
            zipHeaders($0.0, size: $0.1)
        }
            + others(size: 2_000_000)
            + contents(size: 1_000_000)
    }

    /// The slowest of these: nearly two seconds on an idle machine.
    package static var dearest: Hostile? {
        zipHeaders(4_300, size: 19_000_000).first { $0.name.hasSuffix("of stored noise") }
    }

    /// Smaller forms of the same.
    package static var smallBombs: [Hostile] {
        zipHeaders(400, size: 40_000) + zipHeaders(4_300, size: 200_000) + others(size: 100_000)
            + contents(size: 60_000)
    }

    private static func attachment(
        _ name: String, _ type: String, _ content: @autoclosure @escaping () -> [UInt8]
    ) -> Hostile {
        Hostile(name, type, Base64.encode(content()), encoding: "base64")
    }

    // MARK: Files that are not bombs

    /// The sheet of an office file that unpacks to this size.
    package static func spreadsheet(octets: Int) -> Hostile {
        Hostile(
            "spreadsheet", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Base64.encode(local(name: 0, extra: 0) + Deflate.packed(Array(row.utf8), octets)),
            encoding: "base64")
    }

    private static let row =
        "<row r=\"17\" spans=\"1:12\"><c r=\"B17\" s=\"3\" t=\"s\"><v>1284</v></c></row>"

    /// A PDF of one white picture of this size.
    package static func scannedPage(octets: Int) -> Hostile {
        attachment(
            "scanned page", "application/pdf",
            Array(
                "%PDF-1.7\n4 0 obj\n<</Type /XObject /Subtype /Image /Filter /FlateDecode>>\nstream\r\n"
                    .utf8) + [0x78, 0x9C]
                + Deflate.packed([0xFF], octets)
                + Array("\nendstream\nendobj\n".utf8))
    }

    // MARK: Streams over the same octets

    /// Local headers that all state that their data begins after the last of them. The blocks there
    /// are read completely by each attempt.
    private static func zipHeaders(_ count: Int, size: Int) -> [Hostile] {
        let blocks: [(String, (Int) -> [UInt8])] = [
            ("empty stored blocks", { times([0, 0, 0, 0xFF, 0xFF], $0) }),
            ("empty blocks", { Deflate.repeated($0) { $0.emptyFixedBlock() } }),
            ("blocks of codes alone", { Deflate.repeated($0) { $0.emptyDynamicBlock() } }),
            ("stored noise", { stored(noise($0), isLast: true) }),
            ("zeros", { Deflate.packed([0], 100 * $0) }),
        ]
        return blocks.map { name, make in
            attachment(
                "\(count) zip headers before \(size / 1_000) kB of \(name)", "application/zip",
                headers(count) + make(size * 3 / 4))
        }
    }

    private static func headers(_ count: Int) -> [UInt8] {
        (0..<count).reduce(into: []) { zip, index in
            // The name and the extra field extend over the headers after this one.
            let rest = 30 * (count - index - 1)
            let (name, extra) = (min(rest, 65_535), max(0, rest - 65_535))
            zip += local(name: name, extra: extra)
        }
    }

    private static func local(name: Int, extra: Int) -> [UInt8] {
        [0x50, 0x4B, 3, 4, 20, 0, 0, 0, 8, 0] + Array(repeating: 0, count: 16)
            + [UInt8(name & 255), UInt8(name >> 8), UInt8(extra & 255), UInt8(extra >> 8)]
    }

    private static func stored(_ content: [UInt8], isLast: Bool) -> [UInt8] {
        var blocks: [UInt8] = []
        var at = 0
        repeat {
            let end = min(at + 65_535, content.count)
            let length = UInt16(end - at)
            blocks += [
                isLast && end == content.count ? 1 : 0, UInt8(length & 255), UInt8(length >> 8),
                UInt8(~length & 255),
                UInt8(~length >> 8),
            ]
            blocks += content[at..<end]
            at = end
        } while at < content.count
        return blocks
    }

    private static func others(size: Int) -> [Hostile] {
        let zlib: [UInt8] = [0x78, 0x9C]
        // The beginning of the next stream is the content of a stored block of this one, so each
        // continues to the end of the file.
        let pdf = stored(
            Array("\nendstream\nendobj\n1 0 obj<<>>\nstream\r\n".utf8) + zlib, isLast: false)
        let png =
            stored([0, 0, 0, 12] + Array("zTXt".utf8) + zlib, isLast: false) + [
                0, 0, 0, 0xFF, 0xFF,
            ]
        let million = Deflate.packed([0], 1_000_000)
        return [
            attachment(
                "pdf streams within streams", "application/pdf",
                Array("%PDF-1.7\nstream\r\n".utf8) + zlib + times(pdf, size * 3 / 4)),
            attachment(
                "png chunks within chunks", "image/png",
                [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 12] + Array("zTXt".utf8)
                    + zlib
                    + times(png, size * 3 / 4)),
            attachment(
                "pdf of hexadecimal", "application/pdf",
                Array("%PDF-1.7\n".utf8) + times("[<61> -1 <6e>]TJ <6>", size * 3 / 4)),
            attachment(
                "pdf of dictionaries", "application/pdf",
                Array("%PDF-1.7\n".utf8)
                    + times(
                        Array("/Subtype/Subtype/Image//stream\n".utf8) + zlib + [0x4B], size * 3 / 4
                    )),
            attachment(
                "gzip in gzip in gzip", "application/gzip", gzip(gzip(gzipped([0], size * 3_000)))),
            attachment("gzip of a large gzip", "application/gzip", gzip(gzipped([0], size * 100))),
            Hostile(
                "100 parts of small zips", "multipart/mixed; boundary=b",
                (0..<100).flatMap { _ in
                    Array(
                        "--b\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\n"
                            .utf8)
                        + Base64.encode(local(name: 0, extra: 0) + million) + [0x0D, 0x0A]
                } + Array("--b--\r\n".utf8)),
            Hostile(
                "many zips of nothing", "multipart/mixed; boundary=b",
                times(
                    "--b\r\nContent-Type: application/zip\r\n\r\nPK\u{3}\u{4}aaaa\u{8}\u{0}"
                        + String(repeating: "\u{0}", count: 20) + "KL\u{4}\r\n", size)),
        ]
    }

    private static let gzipHeader: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]

    private static func gzipped(_ text: [UInt8], _ unpacked: Int) -> [UInt8] {
        gzipHeader + Deflate.packed(text, unpacked) + Array(repeating: 0, count: 8)
    }

    /// A gzip of one of these. Its repeated unit is 13 octets long.
    private static func gzip(_ content: [UInt8]) -> [UInt8] {
        gzipHeader + Deflate.packed(content, content.count, distance: 13 * 2_500)
            + Array(repeating: 0, count: 8)
    }

    // MARK: Costly contents

    /// Texts that are costly to search, a hundred octets for each of the archive.
    private static func contents(size: Int) -> [Hostile] {
        [
            ("base64 words", "QWxsZXMgR3V0ZSB6 dW0gR2VidXJ0c3RhZyE= "),
            ("base64 of percent", "JTYxJTZFJTZFJTYxJTQw "),
            ("every mark", "%61&#110;=6E+61 "),
            ("hexadecimal", "<616e6e61>"), ("a spreadsheet", row),
            ("tags before domains", "anna+a+b+c+d+e+f+g+h+i@home.example "),
            (
                "base64 in base64",
                String(
                    decoding: Base64.encodeUnbroken(
                        Base64.encodeUnbroken(Array("anna bergstroem, home example".utf8))),
                    as: UTF8.self) + " "
            ),
        ].map { name, text in
            attachment(
                "zip of \(name)", "application/zip",
                local(name: 0, extra: 0) + Deflate.packed(Array(text.utf8), size * 75))
        } + [
            attachment(
                "zip of noise", "application/zip",
                local(name: 0, extra: 0) + Deflate.packed(noise(30_000), size * 75))
        ]
    }
}

/// Writes deflate (RFC 1951) by hand.
private struct Deflate {
    private var octets: [UInt8] = []
    private var hold: UInt64 = 0
    private var held: UInt64 = 0

    private mutating func put(_ value: UInt64, _ count: UInt64) {
        hold |= value << held
        held += count
        while held >= 8 {
            octets.append(UInt8(truncatingIfNeeded: hold))
            hold >>= 8
            held -= 8
        }
    }

    /// A Huffman code, which is written with its highest bit first.
    private mutating func code(_ value: UInt64, _ count: UInt64) {
        for bit in (0..<count).reversed() { put(value >> bit & 1, 1) }
    }

    mutating func emptyFixedBlock() {
        put(0b010, 3)
        put(0, 7)
    }

    /// Codes for one symbol, and only the end.
    mutating func emptyDynamicBlock() {
        put(0b100, 3)
        put(0, 5)
        put(0, 5)
        put(14, 4)
        for index in 0..<18 { put(index == 2 || index == 17 ? 1 : 0, 3) }
        put(1, 1)
        put(127, 7)
        put(1, 1)
        put(107, 7)
        put(0, 3)
    }

    /// Blocks up to this number of octets.
    static func repeated(_ size: Int, _ block: (inout Deflate) -> Void) -> [UInt8] {
        var writer = Deflate()
        while writer.octets.count < size { block(&writer) }
        return writer.octets
    }

    /// A text of at most 32,768 octets repeated until it would unpack to this size: 13 to 26 bits
    /// for each 258.
    /// - Parameter distance: how far back the repeated text is; nil for the length of the text.
    static func packed(_ text: [UInt8], _ unpacked: Int, distance: Int? = nil) -> [UInt8] {
        var writer = Deflate()
        writer.put(0b011, 3)
        let text = Array(text.prefix(max(1, min(unpacked, 32_768))))
        for octet in text {
            if octet < 144 {
                writer.code(UInt64(octet) + 0x30, 8)
            } else {
                writer.code(UInt64(octet) - 144 + 0x190, 9)
            }
        }
        let distance = min(distance ?? text.count, text.count)
        var bits: UInt64 = 0
        var base = 1
        var symbol: UInt64 = 0
        while base + (1 << bits) <= distance {
            base += 1 << bits
            symbol += 1
            if symbol >= 4, symbol % 2 == 0 { bits += 1 }
        }
        var count = text.count
        while count < unpacked {
            writer.code(0b1100_0101, 8)
            writer.code(symbol, 5)
            writer.put(UInt64(distance - base), bits)
            count += 258
        }
        writer.put(0, 7)
        writer.put(0, 8)
        return writer.octets
    }
}
