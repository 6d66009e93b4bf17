// Searches parts that cannot be rewritten: as they are, decoded, and within archives.

import InternetMessage

struct OpaqueScan {
    private let scanner: LeakScanner

    /// Octets that are unpacked for one part at most. What lies beyond is not looked into: a bomb must not cost more than the mail.
    private static let unpackedLimit = 32_000_000

    init(names: ReplyNames) { scanner = LeakScanner(names: names) }

    /// Whether a name stands in a part, in any form and encoding.
    func finds(in raw: ArraySlice<UInt8>, encoding: TransferEncoding) -> Bool {
        if search(raw) { return true }
        guard let decoded = encoding.decode(raw)?.bytes else { return false }
        if encoding == .quotedPrintable, search(decoded[...]) { return true }
        var budget = Self.unpackedLimit
        return Archive.entries(in: decoded, budget: &budget) { search($0[...]) }
    }

    private func search(_ bytes: ArraySlice<UInt8>) -> Bool {
        let feeder = scanner.feeder()
        bytes.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }
}
