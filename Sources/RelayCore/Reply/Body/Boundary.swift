// A multipart's boundary. It must change if it may contain an address or the name of a machine.

import InternetMessage
import MailCrypto
import Support

struct Boundary {
    private let old: [UInt8]
    /// Nil if the boundary stays.
    private let new: [UInt8]?
    /// The type with the new boundary; nil if it stays.
    let contentType: ContentType?

    /// - Parameter attached: a name for the place of the multipart, if it is within an attached
    ///   message. Every boundary there changes: it may be the team's, and the team's are never
    ///   compared with the inbox.
    init(_ type: ContentType, attached: String?, text: TextRewriter) {
        old = type.boundary ?? []
        guard !old.isEmpty,
            attached != nil || Self.mayTell(old, text.names)
                || text.rewrite(old, syntax: .fileName) != nil
        else {
            new = nil
            contentType = nil
            return
        }
        // The new boundary contains nothing of the old one, which may be a guess. A key makes it,
        // so that no one can test guesses of the old one.
        let seed = text.names.hide(
            id: attached.map { Array("boundary \($0)".utf8) } ?? Array("boundary ".utf8) + old)
        let made = Array("=_".utf8) + Base32.encode(SHA256.hash(seed)).prefix(32)
        new = made
        var changed = type
        changed.parameters["boundary"] = String(decoding: made, as: UTF8.self)
        contentType = changed
    }

    /// Whether it contains an address, or a host name, as some programs write the name of their
    /// machine. Any host counts, except a provider's or the team's.
    private static func mayTell(_ boundary: [UInt8], _ names: ReplyNames) -> Bool {
        if boundary.contains(UInt8(ascii: "@")) || OctetSearch.find("%40", in: boundary) != nil
            || OctetSearch.find("=40", in: boundary) != nil
        {
            return true
        }
        return boundary.split {
            !($0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: ".")
                || $0 == UInt8(ascii: "-"))
        }
        .contains {
            word in
            guard
                let last = word.split(
                    separator: UInt8(ascii: "."), omittingEmptySubsequences: false
                ).dropFirst().last
            else {
                return false
            }
            return last.count >= 2 && last.allSatisfy(\.isASCIILetter)
                && !SharedProviders.isBelow(String(decoding: word, as: UTF8.self).lowercased())
                && names.mayTell(host: word)
        }
    }

    /// Copies a range of delimiter lines, with the new boundary if there is one.
    func copy(_ range: Range<Int>, to output: inout PieceBuilder) {
        guard let new else { return output.copy(range, .made) }
        output.replace(old, by: new, in: range)
    }
}

extension PieceBuilder {
    /// Copies a range, and replaces every occurrence of `old` by `new`.
    fileprivate mutating func replace(_ old: [UInt8], by new: [UInt8], in range: Range<Int>) {
        var position = range.lowerBound
        var index = position
        while index + old.count <= range.upperBound {
            if bytes[index..<(index + old.count)].elementsEqual(old) {
                copy(position..<index, .made)
                write(new, inPlaceOf: index..<(index + old.count), .made)
                index += old.count
                position = index
            } else {
                index += 1
            }
        }
        copy(position..<range.upperBound, .made)
    }
}
