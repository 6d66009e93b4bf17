// Writes tar archives (POSIX.1-2001 ustar), for reports of several small files.

/// An archive in memory of regular files that only their owner may read.
package struct TarArchive: Sendable {
    private static let block = 512
    private var contents: [UInt8] = []

    package init() {}

    /// Adds a file.
    /// - Parameters:
    ///   - name: 1 to 100 octets of ASCII.
    ///   - time: of its last change, in seconds since 1970; 0 … 8589934591.
    /// - Returns: whether name, size and time fit into the header; if not, nothing is added.
    package mutating func add(_ name: String, _ octets: [UInt8], time: Int64) -> Bool {
        guard (1...100).contains(name.utf8.count), name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let size = Self.octal(Int64(octets.count), digits: 11),
            let time = Self.octal(time, digits: 11)
        else { return false }
        var header = [UInt8](repeating: 0, count: Self.block)
        func put(_ text: some Sequence<UInt8>, at place: Int) {
            for (offset, octet) in text.enumerated() { header[place + offset] = octet }
        }
        put(name.utf8, at: 0)
        put("0000600".utf8, at: 100)
        put("0000000".utf8, at: 108)
        put("0000000".utf8, at: 116)
        put(size, at: 124)
        put(time, at: 136)
        // The checksum counts itself as spaces.
        put(repeatElement(0x20, count: 8), at: 148)
        put("0".utf8, at: 156)
        put("ustar".utf8, at: 257)
        put("00".utf8, at: 263)
        let sum = header.reduce(0 as Int64) { $0 + Int64($1) }
        put((Self.octal(sum, digits: 6) ?? []) + [0, 0x20], at: 148)
        contents += header + octets
        contents += repeatElement(0, count: (Self.block - octets.count % Self.block) % Self.block)
        return true
    }

    /// The whole archive, with the two empty blocks at its end.
    package var octets: [UInt8] { contents + [UInt8](repeating: 0, count: 2 * Self.block) }

    /// The number in octal digits, with zeros in front; nil if it does not fit.
    private static func octal(_ number: Int64, digits: Int) -> [UInt8]? {
        guard number >= 0 else { return nil }
        let text = Array(String(number, radix: 8).utf8)
        guard text.count <= digits else { return nil }
        return [UInt8](repeating: 0x30, count: digits - text.count) + text
    }
}
