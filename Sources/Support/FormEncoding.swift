// application/x-www-form-urlencoded (WHATWG URL section 5), read strictly and
// always written in one form.

package enum FormEncoding {
    /// The longest name of a parameter, in octets: longer ones make the whole
    /// query or form unreadable.
    package static let nameLimit = 64

    /// Decodes `+` and `%XX`; nil for a broken escape, a NUL, or text that is not UTF-8.
    package static func decode(_ octets: some Collection<UInt8>) -> WireText? {
        // An array, because requests of apps are long and generic collections are slow.
        let octets = Array(octets)
        var result: [UInt8] = []
        result.reserveCapacity(octets.count)
        var place = 0
        while place < octets.count {
            switch octets[place] {
            case UInt8(ascii: "+"): result.append(0x20)
            case UInt8(ascii: "%"):
                guard place + 2 < octets.count, let high = octets[place + 1].hexValue,
                    let low = octets[place + 2].hexValue,
                    high | low != 0
                else { return nil }
                result.append(high << 4 | low)
                place += 2
            case 0: return nil
            case let octet: result.append(octet)
            }
            place += 1
        }
        return WireText(validating: result)
    }

    /// Names and values in their order; a name without `=` has an empty value. Nil for
    /// a broken escape, text that is not UTF-8, a name of over `nameLimit` octets, or
    /// more than `maximum` pairs.
    package static func pairs(
        _ octets: some Collection<UInt8>, maximum: Int
    ) -> [(name: WireText, value: WireText)]? {
        let octets = Array(octets)
        let parts = octets.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: true)
        guard parts.count <= maximum else { return nil }
        var result: [(name: WireText, value: WireText)] = []
        for part in parts {
            let mark = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
            guard let name = decode(part[..<mark]), name.octets.count <= nameLimit,
                let value = decode(part[mark...].dropFirst())
            else { return nil }
            result.append((name, value))
        }
        return result
    }

    /// The text with every octet except the unreserved ones (RFC 3986 section 2.3) as `%XX`. The
    /// result is the same for a query, a fragment and a form. It contains nothing that could end a
    /// header field.
    package static func encode(_ text: String) -> String {
        var result: [UInt8] = []
        for octet in text.utf8 {
            let isUnreserved =
                octet.isASCIILetter || (0x30...0x39).contains(octet)
                || [0x2D, 0x2E, 0x5F, 0x7E].contains(octet)
            if isUnreserved { result.append(octet) } else { result += Hex.escape(octet, mark: "%") }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Pairs joined by `&`, each name and value encoded.
    package static func encode(_ pairs: [(name: String, value: String)]) -> String {
        pairs.map { "\(encode($0.name))=\(encode($0.value))" }.joined(separator: "&")
    }
}
