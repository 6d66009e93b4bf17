// Finds the account's tokens where they stand without their domain: a reverse address's local part alone tells the correspondent.

import InternetMessage
import MailCrypto

/// Finds and reads tokens of one account in text. Counts its readings, so not thread-safe: one for each message.
final class OwnTokens {
    /// What every tail of this account's tokens holds right behind the key id: purpose and account. By these a token is found.
    let anchors: [[UInt8]]
    private let names: ReplyNames
    /// Octets of a whole tail, key id included, by purpose.
    private var tails: [UInt8: Int] = [:]
    private var readings = 0

    /// Octets of an anchor: a purpose and the seven digits of an account number.
    private static let anchorLength = 8
    /// RFC 5321 section 4.5.3.1.1.
    private static let maximumLocalPart = 64
    /// Candidates that are read in one message, each for one MAC; mail that quotes a token often needs a few hundred. Beyond, every
    /// candidate counts as a token that leads nowhere.
    private static let maximumReadings = 20_000

    init(names: ReplyNames) {
        self.names = names
        var anchors: [[UInt8]] = []
        for token in names.sampleTokens {
            let local = Array(token.utf8)
            let tail = local[(local.lastIndex(of: UInt8(ascii: ".")).map { $0 + 1 } ?? 0)...].dropFirst()
            guard let purpose = tail.first, tail.count > Self.anchorLength else { continue }
            anchors.append(Array(tail.prefix(Self.anchorLength)))
            tails[purpose] = tail.count + 1
        }
        self.anchors = anchors
    }

    struct Found {
        let range: Range<Int>
        /// Whom it stands for; nil where the relay address has to come in its place.
        let correspondent: AddrSpec?
    }

    /// The token around an anchor.
    /// - Parameters:
    ///   - anchor: the index of an anchor's first octet in `text`, which is lower case.
    ///   - joins: whether an octet belongs to the same word as the one before.
    ///   - isApart: whether white space stands before an octet.
    func find(around anchor: Int, in text: UnsafeBufferPointer<UInt8>, joins: (Int) -> Bool, isApart: (Int) -> Bool) -> Found? {
        let start = anchor - 1
        guard start >= text.startIndex, let length = tails[text[anchor]], start + length <= text.endIndex else { return nil }
        let end = start + length
        guard Base32.isEncoded(text[start..<end]), (anchor..<end).allSatisfy(joins) else { return nil }
        let purpose = AddressToken.Purpose(rawValue: text[anchor])
        // The MAC of a stored one cannot be told without the address: `agaaaaaabaaaa…` within base64 is chance, as a word it is none.
        if purpose?.isStored == true {
            let isWord =
                (start == text.startIndex || isApart(start) || !Self.isBase64(text[start - 1]))
                && (end == text.endIndex || isApart(end) || !Self.isBase64(text[end]))
            guard isWord else { return nil }
        }
        guard purpose == .reverse || purpose == .forward else { return read(start..<end, text) }
        var from = start
        while from > text.startIndex, end - from < Self.maximumLocalPart, joins(from), Self.isDotAtom(text[from - 1]) { from -= 1 }
        // Longest first; the MAC says which it is.
        while from + 3 < start {
            if let found = read(from..<end, text) { return found }
            from += 1
        }
        return nil
    }

    private func read(_ range: Range<Int>, _ text: UnsafeBufferPointer<UInt8>) -> Found? {
        readings += 1
        guard readings <= Self.maximumReadings else { return Found(range: range, correspondent: nil) }
        guard let token = names.ownToken(String(decoding: UnsafeBufferPointer(rebasing: text[range]), as: UTF8.self)) else { return nil }
        return Found(range: range, correspondent: names.correspondent(of: token))
    }

    private static func isBase64(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || "+/=".utf8.contains(octet)
    }

    private static func isDotAtom(_ octet: UInt8) -> Bool {
        octet.isASCIILetter || octet.isASCIIDigit || ".!#$%&'*+-/=?^_`{|}~".utf8.contains(octet)
    }

    /// Whether one stands anywhere in a short text, such as a message id.
    func occur(in bytes: [UInt8]) -> Bool {
        let text = bytes.map(\.asciiLowercased)
        return text.withUnsafeBufferPointer { text in
            text.indices.contains { index in
                anchors.contains { text[index...].starts(with: $0) } && find(around: index, in: text, joins: { _ in true }, isApart: { _ in false }) != nil
            }
        }
    }
}
