// The value of an address field, folded.

import InternetMessage

enum AddressFieldValue {
    /// Column after which the next address goes to a new line (RFC 5322 section 2.1.1 recommends
    /// lines of 78).
    private static let column = 78

    /// Octets of a written display name. A longer one is written in encoded words, with folds
    /// between them. The value leaves enough of the 998 octets of a line for the address.
    private static let longestName = 800

    /// Everything after the colon: addresses separated by commas, one space before the first.
    static func write(_ addresses: [Address], nameLength: Int) -> [UInt8] {
        var value: [UInt8] = []
        var width = nameLength + 1
        func add(_ text: [UInt8]) {
            if !value.isEmpty, width + text.count + 2 > column {
                value += [0x0D, 0x0A]
                width = 0
            }
            value += [0x20] + foldedBetweenEncodedWords(text)
            width += text.count + 2
        }
        for (index, address) in addresses.enumerated() {
            if index > 0 { value.append(UInt8(ascii: ",")) }
            switch address {
            case .mailbox(let mailbox): add(text(mailbox))
            case .group(let name, let members):
                // A group must have a name; an empty name replaces a missing one.
                add(phrase(name.isEmpty ? nil : name, else: "\"\"") + [UInt8(ascii: ":")])
                for (index, member) in members.enumerated() {
                    if index > 0 { value.append(UInt8(ascii: ",")) }
                    add(text(member))
                }
                value.append(UInt8(ascii: ";"))
            }
        }
        return value
    }

    private static func text(_ mailbox: Mailbox) -> [UInt8] {
        guard let ascii = mailbox.addrSpec.asciiWireForm else {
            // A non-ASCII address can only be shown, as an empty group (RFC 6857 section 3.1).
            let shown = [mailbox.displayName ?? "", mailbox.addrSpec.wireForm].filter {
                !$0.utf8.isEmpty
            }.joined(separator: " ")
            return Array(EncodedWord.encode(shown).utf8) + Array(":;".utf8)
        }
        let address = Array(ascii.utf8)
        let name = phrase(mailbox.displayName, else: "")
        return name.isEmpty
            ? address : name + [0x20, UInt8(ascii: "<")] + address + [UInt8(ascii: ">")]
    }

    private static func phrase(_ name: String?, else missing: String) -> [UInt8] {
        let phrase = Array(name.map(Mailbox.phrase)?.utf8 ?? "".utf8)
        guard !phrase.isEmpty else { return Array(missing.utf8) }
        return phrase.count <= longestName ? phrase : Array(EncodedWord.encode(name ?? "").utf8)
    }

    /// Inserts a line break before each encoded word that follows another if the text is long.
    /// Readers do not show the white space between them.
    private static func foldedBetweenEncodedWords(_ text: [UInt8]) -> [UInt8] {
        guard text.count > longestName else { return text }
        var out: [UInt8] = []
        out.reserveCapacity(text.count + text.count / 32)
        for (index, octet) in text.enumerated() {
            if octet == 0x20, text[..<index].suffix(2).elementsEqual("?=".utf8),
                text[(index + 1)...].prefix(2).elementsEqual("=?".utf8)
            {
                out += [0x0D, 0x0A]
            }
            out.append(octet)
        }
        return out
    }
}
