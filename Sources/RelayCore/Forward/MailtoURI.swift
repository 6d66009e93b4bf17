// mailto: URIs (RFC 6068), as they stand in List-Unsubscribe and its siblings.

import InternetMessage

/// A `mailto:` URI whose addresses can be replaced; everything else in it stays as it is.
struct MailtoURI {
    private let path: ArraySlice<UInt8>
    private let fields: [ArraySlice<UInt8>]

    /// Nil where the octets are no `mailto:` URI.
    init?(_ uri: [UInt8]) {
        let scheme = Array("mailto:".utf8)
        guard uri.count >= scheme.count, zip(uri, scheme).allSatisfy({ $0.asciiLowercased == $1 }) else { return nil }
        let rest = uri[scheme.count...]
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            path = rest[..<mark]
            fields = rest[(mark + 1)...].split(separator: UInt8(ascii: "&"))
        } else {
            path = rest
            fields = []
        }
    }

    /// The URI with every recipient replaced. Blind copies and other recipients hidden in `bcc` are dropped.
    func mapping(_ transform: (AddrSpec) -> AddrSpec) -> [UInt8] {
        var uri = Array("mailto:".utf8) + Self.map(path, transform)
        var separator = UInt8(ascii: "?")
        for field in fields {
            let name = field.prefix { $0 != UInt8(ascii: "=") }
            let value = field.dropFirst(name.count + 1)
            switch String(decoding: name, as: UTF8.self).lowercased() {
            case "bcc": continue
            case "to", "cc", "reply-to", "from": uri += [separator] + name + [UInt8(ascii: "=")] + Self.map(value, transform)
            default: uri += [separator] + field
            }
            separator = UInt8(ascii: "&")
        }
        return uri
    }

    private static func map(_ list: ArraySlice<UInt8>, _ transform: (AddrSpec) -> AddrSpec) -> [UInt8] {
        var seen: Set<AddrSpec> = []
        let addresses = AddressCandidates.find(in: percentDecoded(list)[...]).map(\.addrSpec).filter { seen.insert($0).inserted }
        return Array(addresses.map { percentEncoded(Array(transform($0).wireForm.utf8)) }.joined(separator: [UInt8(ascii: ",")]))
    }

    private static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var out: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.endIndex, let high = text[index + 1].hexValue, let low = text[index + 2].hexValue {
                out.append(high << 4 | low)
                index += 3
            } else {
                out.append(text[index])
                index += 1
            }
        }
        return out
    }

    /// Encodes what RFC 6068 section 2 wants encoded in an address: everything but letters, digits and a few marks.
    private static func percentEncoded(_ text: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return text.flatMap { octet -> [UInt8] in
            if octet.isASCIILetter || octet.isASCIIDigit || "-._~@!$'*+".utf8.contains(octet) { return [octet] }
            return [UInt8(ascii: "%"), digits[Int(octet >> 4)], digits[Int(octet & 15)]]
        }
    }
}
