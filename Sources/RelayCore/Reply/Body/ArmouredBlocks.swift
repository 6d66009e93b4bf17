// Armoured blocks within a text. OpenPGP signatures and keys are removed, and blocks that a change
// would break are reported (RFC 9580 sections 6.2, 7; RFC 7468).

import InternetMessage

/// The OpenPGP blocks of one text. Only those at the beginning of a line: quoted ones belong to
/// another person, and are already broken.
struct ArmouredBlocks {
    /// Edits that remove signatures and public keys, and that convert cleartext-signed text back to
    /// plain text.
    private(set) var removals: [TextEdit] = []
    /// Whether a block contains encrypted text.
    private(set) var isEncrypted = false
    /// Whether a block has no end, so that its length is unknown.
    private(set) var isBroken = false

    /// The name that a refusal uses for a block that must not change.
    static let name = "armoured block"

    private static let begin = Array("-----BEGIN ".utf8)
    private static let end = Array("-----END ".utf8)
    private static let signedMessage = Array("PGP SIGNED MESSAGE-----".utf8)
    private static let message = Array("PGP MESSAGE".utf8)
    private static let signature = Array("PGP SIGNATURE-----".utf8)
    private static let publicKey = Array("PGP PUBLIC KEY BLOCK-----".utf8)

    /// - Parameters:
    ///   - isMarkup: whether tags represent line breaks.
    ///   - stretches: a block that the user did not write never causes a refusal.
    init(_ text: [UInt8], isMarkup: Bool, in stretches: Stretches) {
        // A local copy, as every octet is compared with it.
        let begin = Self.begin
        text.withUnsafeBufferPointer { text in
            var index = 0
            var signed: Int?
            while index + begin.count < text.count {
                guard text[index] == UInt8(ascii: "-"), Self.starts(text, at: index, with: begin)
                else {
                    index += 1
                    continue
                }
                let kind = index + begin.count
                let isAtLineStart =
                    index == 0 || text[index - 1] == 0x0A
                    || (isMarkup && text[index - 1] == UInt8(ascii: ">"))
                guard isAtLineStart else {
                    index = kind
                    continue
                }
                if Self.starts(text, at: kind, with: Self.signedMessage) {
                    let after =
                        isMarkup
                        ? kind + Self.signedMessage.count : Self.endOfArmourHeader(text, from: kind)
                    removals.append(TextEdit(range: index..<after, replacement: []))
                    signed = after
                    index = after
                } else if let name = [Self.signature, Self.publicKey].first(where: {
                    Self.starts(text, at: kind, with: $0)
                }) {
                    guard let after = Self.endOfBlock(text, from: kind, name, isMarkup: isMarkup)
                    else {
                        if stretches.standing(at: index).isTyped {
                            isBroken = true
                            return
                        }
                        index = kind
                        continue
                    }
                    if let start = signed, name == Self.signature {
                        unescape(text, start..<index)
                        signed = nil
                    }
                    removals.append(TextEdit(range: index..<after, replacement: []))
                    index = after
                } else {
                    if Self.starts(text, at: kind, with: Self.message),
                        stretches.standing(at: index).isTyped
                    {
                        isEncrypted = true
                    }
                    index = kind
                }
            }
            // Signed text without its signature.
            if let signed, stretches.standing(at: signed).isTyped { isBroken = true }
        }
        removals.sort { $0.range.lowerBound < $1.range.lowerBound }
    }

    /// Removes the dashes that the signer added before lines with a dash (RFC 9580 section 7.2).
    private mutating func unescape(_ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>) {
        var line = range.lowerBound
        while line + 1 < range.upperBound {
            if text[line] == UInt8(ascii: "-"), text[line + 1] == 0x20 {
                removals.append(TextEdit(range: line..<(line + 2), replacement: []))
            }
            while line < range.upperBound, text[line] != 0x0A { line += 1 }
            line += 1
        }
    }

    /// The index after the empty line that ends the fields of a block.
    private static func endOfArmourHeader(
        _ text: UnsafeBufferPointer<UInt8>, from start: Int
    ) -> Int {
        var index = start
        while index < text.count {
            while index < text.count, text[index] != 0x0A { index += 1 }
            index = min(index + 1, text.count)
            if index < text.count, text[index] == 0x0A { return index + 1 }
            if index + 1 < text.count, text[index] == 0x0D, text[index + 1] == 0x0A {
                return index + 2
            }
        }
        return index
    }

    /// The index after the last line of a block and its line break; nil if it has no last line.
    private static func endOfBlock(
        _ text: UnsafeBufferPointer<UInt8>, from start: Int, _ name: [UInt8], isMarkup: Bool
    ) -> Int? {
        var index = start
        while index + end.count + name.count <= text.count {
            // The end of a quoted block further down does not end this block: the user's text
            // between them would be lost.
            let isAtLineStart =
                text[index - 1] == 0x0A || (isMarkup && text[index - 1] == UInt8(ascii: ">"))
            if isAtLineStart, text[index] == UInt8(ascii: "-"), starts(text, at: index, with: end),
                starts(text, at: index + end.count, with: name)
            {
                index += end.count + name.count
                if index < text.count, text[index] == 0x0D { index += 1 }
                if index < text.count, text[index] == 0x0A { index += 1 }
                return index
            }
            index += 1
        }
        return nil
    }

    /// Whether one of these edits, which are in order, would break a block around it: a certificate
    /// or a message. A block without an end does not count, as it is already broken. Nor does a
    /// block that is removed from a reply anyway.
    static func hold(_ edits: [TextEdit], in text: [UInt8]) -> Bool {
        outside(edits, in: text, ofReply: true).count < edits.count
    }

    /// The edits, given in order, that are outside of all blocks.
    static func outside(_ edits: [TextEdit], in text: [UInt8], ofReply: Bool = false) -> [TextEdit]
    {
        text.withUnsafeBufferPointer { text in
            var rest = edits[...]
            var outside: [TextEdit] = []
            var opened: Int?
            var line = 0
            while line < text.count, !rest.isEmpty {
                if opened == nil, starts(text, at: line, with: begin),
                    !ofReply || !isRemoved(text, at: line + begin.count)
                {
                    opened = line
                }
                if let start = opened, starts(text, at: line, with: end) {
                    while let first = rest.first, first.range.upperBound <= start {
                        outside.append(rest.removeFirst())
                    }
                    while let first = rest.first, first.range.lowerBound < line {
                        rest.removeFirst()
                    }
                    opened = nil
                }
                while line < text.count, text[line] != 0x0A { line += 1 }
                line += 1
            }
            return outside + rest
        }
    }

    private static func isRemoved(_ text: UnsafeBufferPointer<UInt8>, at kind: Int) -> Bool {
        [signedMessage, signature, publicKey].contains { starts(text, at: kind, with: $0) }
    }

    private static func starts(
        _ text: UnsafeBufferPointer<UInt8>, at index: Int, with mark: [UInt8]
    ) -> Bool {
        index + mark.count <= text.count && mark.indices.allSatisfy { text[index + $0] == mark[$0] }
    }
}
