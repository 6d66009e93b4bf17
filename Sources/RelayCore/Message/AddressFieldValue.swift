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
            value += [0x20] + text
            width += text.count + 2
        }
        return value
    }
}
