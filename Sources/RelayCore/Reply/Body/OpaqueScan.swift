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
        let decoded: [UInt8]
        switch encoding {
        case .quotedPrintable:
            decoded = QuotedPrintable.decode(raw).bytes
            if search(decoded[...]) { return true }
        // base64 was searched decoded already, as it went by: only an archive is worth holding whole.
        case .base64:
            guard Archive.isArchive(Base64.decode(raw.prefix(Self.signature)).bytes) else { return false }
            decoded = Base64.decode(raw).bytes
        case .sevenBit, .eightBit, .binary:
            guard Archive.isArchive(Array(raw.prefix(Self.signature))) else { return false }
            decoded = Array(raw)
        case .unknown: return false
        }
        var budget = Self.unpackedLimit
        return Archive.entries(in: decoded, budget: &budget) { search($0[...]) }
    }

    /// Raw octets from which an archive is told, line breaks before it included.
    private static let signature = 256

    private func search(_ bytes: ArraySlice<UInt8>) -> Bool {
        let feeder = scanner.feeder()
        bytes.withUnsafeBufferPointer { feeder.feed($0) }
        return feeder.finish()
    }
}
