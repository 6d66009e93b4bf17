// Searches parts that cannot be rewritten: unchanged, decoded, and within archives.

import InternetMessage
import LeakSearch
import Support

/// Not thread-safe: one for each message.
final class OpaqueScan {
    private let names: ReplyNames
    private let work: WorkBudget
    private lazy var scanner = LeakScanner(names: names)
    /// One for all parts of a message: there may be thousands. Made for the first such part: most replies are plain text.
    private lazy var feeder = scanner.feeder(work)
    /// Stretches of the message's body in which nothing was found, in the order in which they were searched.
    private(set) var searched: [SearchedStretch] = []
    /// Pieces of the outgoing body in which nothing is looked for, as they are written: pictures, and text that was not typed
    /// alone.
    private(set) var unsearched: [[UInt8]] = []
    /// What was typed within such texts, as it is sent. Each is searched alone.
    private(set) var typed: [[UInt8]] = []
    private lazy var archives = ArchiveScan(work: work) { [scanner, work] in scanner.feeder(work) }

    /// - Parameter work: the budget of the message. Once it is spent, nothing more is found, and the caller must
    ///   refuse, or say that it lets parts through unread.
    init(names: ReplyNames, work: WorkBudget) {
        self.names = names
        self.work = work
    }

    /// Whether a name is in a part, in any form and encoding.
    /// - Parameter isOfMessage: whether the octets are a stretch of the message's own body, and not of something decoded.
    func finds(in raw: ArraySlice<UInt8>, encoding: TransferEncoding, isOfMessage: Bool = false) -> Bool {
        if isOfMessage && raw.count >= SearchedStretch.minimumLength ? searchStretch(raw) : search(raw) { return true }
        let decoded: [UInt8]
        switch encoding {
        case .quotedPrintable:
            decoded = QuotedPrintable.decode(raw).bytes
            if search(decoded[...]) { return true }
        // The search already decoded base64.
        case .base64: decoded = Base64.decode(raw).bytes
        case .sevenBit, .eightBit, .binary: decoded = Array(raw)
        case .unknown(let name):
            guard UUEncoding.isMeant(by: name) else { return !Self.isReadable(raw) }
            decoded = UUEncoding.decode(raw, onlyBlocks: false)
            if search(decoded[...]) { return true }
        }
        return archives.finds(in: decoded)
    }

    /// Notes a stretch of the message's own body in which nothing is looked for: a picture without metadata, or text.
    func passOver(stretch: Range<Int>) {
        if !stretch.isEmpty { searched.append(SearchedStretch(range: stretch, end: nil)) }
    }

    /// The same for octets that are written again.
    func passOver(written: [UInt8]) { if !written.isEmpty { unsearched.append(written) } }

    /// Notes text that was typed, within what is passed over.
    func note(typed text: [UInt8]) { typed.append(text) }

    /// Whether a name is in the name of a file, whatever work is left.
    func finds(inName name: [UInt8]) -> Bool {
        let feeder = scanner.feeder()
        name.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }

    /// Whether a name is in a uuencoded block within a text.
    func findsInBlocks(of text: [UInt8]) -> Bool {
        guard UUEncoding.mayHoldBlock(text) else { return false }
        let decoded = UUEncoding.decode(text, onlyBlocks: true)
        return search(decoded[...]) || archives.finds(in: decoded)
    }

    /// Whether octets in an unknown encoding are unchanged prose or markup, and hide nothing: mostly letters, and separated by
    /// white space. Encoded data has no white space but its line breaks. Data that is not readable may hold a name, and is
    /// refused.
    private static func isReadable(_ raw: ArraySlice<UInt8>) -> Bool {
        guard !raw.contains(where: { $0 < 0x20 && !(0x09...0x0D).contains($0) || $0 == 0x7F }), Array(raw).isValidUTF8 else {
            return false
        }
        let octets = raw.count { $0 != 0x0D }
        let blanks = raw.count { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A }
        let letters = raw.count { $0.isASCIILetter || $0 >= 0x80 }
        return octets <= shortest || blanks == octets || (blanks * 20 >= octets && letters * 20 >= (octets - blanks) * 9)
    }

    /// Fewer octets hold no address in any encoding.
    private static let shortest = 8

    private func searchStretch(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.withUnsafeBufferPointer { feeder.feed($0) }
        let end = feeder.pause()
        if feeder.finish() { return true }
        // Only a whole search counts; where the budget ended before, nothing is known.
        if !work.isSpent, end.count <= bytes.count / 2 { searched.append(SearchedStretch(range: bytes.indices, end: end)) }
        return false
    }

    private func search(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }
}
