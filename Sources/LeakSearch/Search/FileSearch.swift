// Searches a file that is sent unchanged: its octets, their decoded content, and the contents of
// archives.

import InternetMessage
import Support

/// Receives octets in pieces and searches them in windows. Not thread-safe.
final class OctetFeeder: StreamSearch {
    private static let window = 65_536
    private static let overlap = 2_048

    private let search: StretchSearch
    private let work: WorkBudget
    private var held: [UInt8] = []
    /// Octets of `held` that were already searched.
    private var searched = 0
    private(set) var isFound = false

    init(_ search: StretchSearch, work: WorkBudget) {
        self.search = search
        self.work = work
    }

    func feed(_ octets: UnsafeBufferPointer<UInt8>) {
        var position = 0
        while position < octets.count, !isFound, !work.isSpent {
            let taken = min(octets.count - position, Self.window - held.count)
            held += octets[position..<(position + taken)]
            position += taken
            guard held.count == Self.window else { continue }
            // The text after a word decides its meaning, so the last word is read with the next
            // window.
            let end = held.lastIndex { $0 <= 0x20 } ?? held.endIndex
            look(upTo: end > Self.window - Self.overlap ? end : held.endIndex)
            held.removeFirst(Self.window - Self.overlap)
            searched = end > Self.window - Self.overlap ? 0 : held.count
        }
    }

    func finish() -> Bool {
        if held.count > searched, !isFound, !work.isSpent { look(upTo: held.endIndex) }
        held.removeAll(keepingCapacity: true)
        searched = 0
        defer { isFound = false }
        return isFound
    }

    private func look(upTo end: Int) {
        let isBinary = Self.isBinary(held)
        search.search(held[..<end], isBinary ? .binary : .file, isMarkup: false)
        if search.isFoundInFile() { isFound = true }
        guard isBinary, !isFound else { return }
        let owners = TarOwners.find(in: held[..<end])
        guard !owners.isEmpty else { return }
        search.search(owners[...], .file, isMarkup: false)
        if search.isFoundInFile() { isFound = true }
    }

    /// Whether octets are compressed data or pictures, in which no encodings of text are expected.
    /// UTF-16 has equal numbers of NULs and letters.
    private static func isBinary(_ octets: [UInt8]) -> Bool {
        octets.withUnsafeBufferPointer { octets in
            let sample = min(octets.count, 4_096)
            var (odd, nuls) = (0, 0)
            for octet in octets[(octets.count - sample)...] {
                if octet == 0 {
                    nuls += 1
                } else if octet < 0x09 || octet > 0x0D && octet < 0x20 && octet != 0x1B
                    || octet == 0x7F
                {
                    odd += 1
                }
            }
            return odd > sample / 32 || nuls > sample / 2 + 1
        }
    }
}

/// The names of users and groups in the headers of tar archives (POSIX.1-2017, ustar).
enum TarOwners {
    private static let magic = Array("ustar".utf8)
    /// The field of the user begins so many octets after the start of the magic; the group follows.
    private static let offset = 8
    private static let length = 32

    /// The names of all headers in a window, one a line, each once.
    static func find(in octets: ArraySlice<UInt8>) -> [UInt8] {
        var names: Set<[UInt8]> = []
        var index = octets.startIndex
        while let start = octets[index...].firstIndex(of: magic[0]) {
            index = start + 1
            guard octets[start...].starts(with: magic) else { continue }
            for field in 0..<2 {
                let name = octets[start...].dropFirst(offset + field * length).prefix(length)
                names.insert(Array(name.prefix { $0 != 0 }))
            }
        }
        return Array(names.joined(separator: [0x0A]))
    }
}

/// Searches the files of one message. Not thread-safe.
package final class FileSearch {
    private let feeder: OctetFeeder
    private let archives: ArchiveScan

    /// - Parameter work: the budget of the message. Once it is spent, nothing more is found, and
    ///   the message is refused.
    package convenience init(_ names: LeakNames, work: WorkBudget) {
        self.init(names, work: work, memory: SearchMemory())
    }

    init(_ names: LeakNames, work: WorkBudget, memory: SearchMemory) {
        let search = StretchSearch(names, work: work, memory: memory)
        feeder = OctetFeeder(search, work: work)
        archives = ArchiveScan(work: work) { OctetFeeder(search, work: work) }
    }

    /// Whether an address of the user is in a file, in any form and encoding.
    package func finds(in raw: ArraySlice<UInt8>, _ encoding: TransferEncoding) -> Bool {
        let decoded = encoding.isIdentity ? raw : TransferReading.decode(raw, encoding)[...]
        if search(decoded) { return true }
        if let unfolded = Self.unfolded(decoded), search(unfolded[...]) { return true }
        // Base64 text has no other meaning. In other encodings, programs that do not know them show
        // the encoded octets.
        if encoding != .base64, !encoding.isIdentity, search(raw) { return true }
        // Data that cannot be decoded may contain anything.
        if case .unknown(let name) = encoding, !UUEncoding.isMeant(by: name), !Self.isReadable(raw)
        {
            return true
        }
        let octets = Array(decoded)
        return archives.finds(in: octets) || findsInBlocks(of: octets)
    }

    /// Whether an address of the user is in a uuencoded block of a text.
    package func findsInBlocks(of text: [UInt8]) -> Bool {
        guard UUEncoding.mayHoldBlock(text) else { return false }
        let block = UUEncoding.decode(text, onlyBlocks: true)
        return search(block[...]) || archives.finds(in: block)
    }

    /// A calendar, a contact or a directory entry with its long lines joined (RFC 5545, 6350 and
    /// 2849), regardless of its declared type; nil for other files.
    private static func unfolded(_ octets: ArraySlice<UInt8>) -> [UInt8]? {
        let text = octets.starts(with: [0xEF, 0xBB, 0xBF]) ? octets.dropFirst(3) : octets
        let heads = ["BEGIN:V", "dn:", "version:"].map { Array($0.utf8) }
        guard
            heads.contains(where: {
                text.prefix($0.count).map(\.asciiLowercased) == $0.map(\.asciiLowercased)
            })
        else {
            return nil
        }
        var output: [UInt8] = []
        output.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let end =
                text[index] == 0x0D && index + 1 < text.endIndex && text[index + 1] == 0x0A
                ? index + 1 : index
            if text[end] == 0x0A, end + 1 < text.endIndex,
                text[end + 1] == 0x20 || text[end + 1] == 0x09
            {
                index = end + 2
            } else {
                output.append(text[index])
                index += 1
            }
        }
        return output
    }

    /// Fewer octets cannot contain an address in any encoding.
    private static let shortest = 8

    /// Whether octets in an unknown encoding are unchanged prose or markup, and hide nothing:
    /// mostly letters, separated by white space. Encoded data has no white space except its line
    /// breaks.
    package static func isReadable(_ raw: ArraySlice<UInt8>) -> Bool {
        guard !raw.contains(where: { $0 < 0x20 && !(0x09...0x0D).contains($0) || $0 == 0x7F }),
            Array(raw).isValidUTF8
        else {
            return false
        }
        let octets = raw.count { $0 != 0x0D }
        let blanks = raw.count { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A }
        let letters = raw.count { $0.isASCIILetter || $0 >= 0x80 }
        return octets <= shortest || blanks == octets
            || (blanks * 20 >= octets && letters * 20 >= (octets - blanks) * 9)
    }

    private func search(_ octets: ArraySlice<UInt8>) -> Bool {
        octets.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }
}
