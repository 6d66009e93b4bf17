// Text as HTML.

package enum HTMLText {
    /// Text in a form that HTML, SVG and XML read literally, in an element and in a quoted
    /// attribute.
    ///
    /// By octets, never by `Character`: next to some marks, `<` is a part of a longer Character and
    /// would not be escaped.
    package static func escaped(_ text: String) -> String {
        guard let first = text.utf8.firstIndex(where: { reference($0) != nil }) else { return text }
        var octets = Array(text.utf8[..<first])
        octets.reserveCapacity(text.utf8.count + 16)
        append(text.utf8[first...], to: &octets)
        return String(decoding: octets, as: UTF8.self)
    }

    /// The same for octets in UTF-8 or another superset of ASCII.
    package static func escaped(_ octets: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(octets.count + 16)
        append(octets, to: &result)
        return result
    }

    private static func append(_ text: some Sequence<UInt8>, to result: inout [UInt8]) {
        for octet in text {
            if let reference = reference(octet) {
                reference.withUTF8Buffer { result.append(contentsOf: $0) }
            } else {
                result.append(octet)
            }
        }
    }

    private static func reference(_ octet: UInt8) -> StaticString? {
        switch octet {
        case UInt8(ascii: "&"): "&amp;"
        case UInt8(ascii: "<"): "&lt;"
        case UInt8(ascii: ">"): "&gt;"
        case UInt8(ascii: "\""): "&quot;"
        case UInt8(ascii: "'"): "&#39;"
        default: nil
        }
    }
}
