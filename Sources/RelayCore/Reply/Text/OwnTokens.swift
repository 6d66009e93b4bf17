// Finds the account's reverse addresses without their domain: the local part alone reveals the
// correspondent. A return path reveals nothing.

import InternetMessage
import MailCrypto

/// Finds and reads tokens of one account in text. Not thread-safe, as it counts its readings: make
/// one for each message.
final class OwnTokens {
    /// The octets after the key id in every tail of this account's reverse addresses: letter and
    /// account. They are searched for to find tokens.
    let anchors: [[UInt8]]
    private let names: ReplyNames
    private var readings = 0
    /// The results for runs of octets that were already read; nil if the run is not our token.
    private var known: [[UInt8]: Reading?] = [:]
    private let maximumReadings: Int

    /// RFC 5321 section 4.5.3.1.1.
    private static let maximumLocalPart = 64
    /// Maximum MACs computed for one message. Mail that quotes many tokens needs a few hundred, as
    /// each is read once.
    static let maximumReadings = 4_000

    /// Whether the limit of readings is exceeded. Every later candidate then counts as a token that
    /// leads nowhere.
    var isExhausted: Bool { readings > maximumReadings }

    init(names: ReplyNames, maximumReadings: Int = OwnTokens.maximumReadings) {
        self.names = names
        self.maximumReadings = maximumReadings
        anchors = names.tokenAnchors
    }

    struct Found {
        let range: Range<Int>
        /// The correspondent behind it; nil if the relay address must replace it.
        let correspondent: AddrSpec?
    }

    /// The length of the token in a run, measured from the end, and its meaning.
    private struct Reading {
        let length: Int
        let correspondent: AddrSpec?
    }

    /// The token around an anchor.
    /// - Parameters:
    ///   - joins: whether an octet belongs to the same word as the one before.
    ///   - isApart: whether white space is before an octet.
    func find(
        around anchor: Int, in text: UnsafeBufferPointer<UInt8>, joins: (Int) -> Bool,
        isApart: (Int) -> Bool
    ) -> Found? {
        let start = anchor - 1
        guard start >= text.startIndex, let form = AddressToken.Form(rawValue: text[anchor]),
            start + form.length <= text.endIndex
        else { return nil }
        let end = start + form.length
        // Base32 in lower case. Tested here, as this runs for every anchor.
        for index in start..<end
        where
            !(text[index] >= 0x61 && text[index] <= 0x7A
            || text[index] >= 0x32 && text[index] <= 0x37)
        { return nil }
        for index in anchor..<end where !joins(index) { return nil }
        // A MAC over a stored address cannot be checked without that address. So its form within
        // base64 may be chance, but not as a separate word.
        func isWord() -> Bool {
            (start == text.startIndex || isApart(start) || !Self.isBase64(text[start - 1]))
                && (end == text.endIndex || isApart(end) || !Self.isBase64(text[end]))
        }
        if form.isCheckedByAddress, !isWord() { return nil }
        guard form.hasAddress else { return found(start, end, text) { read(start..<end, text) } }
        // A dot follows the address in the token.
        guard start > text.startIndex, text[start - 1] == UInt8(ascii: "."), joins(start) else {
            return nil
        }
        var from = start
        while from > text.startIndex, end - from < Self.maximumLocalPart, joins(from),
            Self.isDotAtom(text[from - 1])
        {
            from -= 1
        }
        return found(from, end, text) {
            // Longest first; the MAC shows which one is the token.
            for from in from..<max(from, start - 3) {
                if let reading = read(from..<end, text) { return reading }
            }
            return nil
        }
    }

    /// The known result for a run of octets, or the result of reading it now.
    private func found(
        _ from: Int, _ end: Int, _ text: UnsafeBufferPointer<UInt8>, _ read: () -> Reading?
    ) -> Found? {
        let run = Array(UnsafeBufferPointer(rebasing: text[from..<end]))
        let reading: Reading?
        if let before = known[run] {
            reading = before
        } else {
            reading = read()
            if !isExhausted { known[run] = .some(reading) }
        }
        return reading.map {
            Found(range: (end - $0.length)..<end, correspondent: $0.correspondent)
        }
    }

    private func read(_ range: Range<Int>, _ text: UnsafeBufferPointer<UInt8>) -> Reading? {
        readings += 1
        guard readings <= maximumReadings else {
            return Reading(length: range.count, correspondent: nil)
        }
        guard
            let token = names.ownToken(
                String(decoding: UnsafeBufferPointer(rebasing: text[range]), as: UTF8.self))
        else {
            return nil
        }
        return Reading(length: range.count, correspondent: names.correspondent(of: token))
    }

    private static func isBase64(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || "+/=".utf8.contains(octet)
    }

    private static func isDotAtom(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || ".!#$%&'*+-/=?^_`{|}~".utf8.contains(octet)
    }

    /// Whether a token is anywhere in a short text, such as a message id.
    func occur(in bytes: [UInt8]) -> Bool {
        let text = bytes.map(\.asciiLowercased)
        return text.withUnsafeBufferPointer { text in
            text.indices.contains { index in
                anchors.contains { text[index...].starts(with: $0) }
                    && find(around: index, in: text, joins: { _ in true }, isApart: { _ in false })
                        != nil
            }
        }
    }
}
