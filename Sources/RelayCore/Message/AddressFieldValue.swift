// The value of an address field, folded.

import InternetMessage

enum AddressFieldValue {
    /// Column at which the next address goes to a line of its own (RFC 5322 section 2.1.1 asks for lines of 78).
    private static let column = 78

    /// Everything after the colon: addresses separated by commas, one space before the first.
    static func write(_ addresses: [Address], nameLength: Int) -> [UInt8] {
        var value: [UInt8] = []
        var width = nameLength + 1
        for (index, address) in addresses.enumerated() {
            let text = Array(address.serialized.utf8)
            if index > 0 {
                value.append(UInt8(ascii: ","))
                if width + text.count + 2 > column {
                    value += [0x0D, 0x0A]
                    width = 0
                }
            }
            value += [0x20] + (text.count < longestAddress ? text : foldedBetweenEncodedWords(text))
            width += text.count + 2
        }
        return value
    }

    /// An address longer than this is folded by itself: only encoded words make one.
    private static let longestAddress = 900

    /// A line break before each encoded word that follows another; no reader shows the white space between them.
    private static func foldedBetweenEncodedWords(_ text: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count + text.count / 32)
        for (index, octet) in text.enumerated() {
            if octet == 0x20, text[..<index].suffix(2).elementsEqual("?=".utf8), text[(index + 1)...].prefix(2).elementsEqual("=?".utf8) {
                out += [0x0D, 0x0A]
            }
            out.append(octet)
        }
        return out
    }
}
