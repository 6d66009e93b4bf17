// mailto: URIs (RFC 6068), as found in List-Unsubscribe and similar fields, in
// texts and in calendars.

import InternetMessage
import Support

/// A `mailto:` URI whose addresses can be replaced.
struct MailtoURI {
    private let path: ArraySlice<UInt8>
    private let fields: [ArraySlice<UInt8>]

    /// Nil if the octets are not a `mailto:` URI.
    init?(_ uri: [UInt8]) {
        let scheme = Array("mailto:".utf8)
        guard uri.count >= scheme.count, zip(uri, scheme).allSatisfy({ $0.asciiLowercased == $1 })
        else { return nil }
        let rest = uri[scheme.count...]
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            path = rest[..<mark]
            fields = rest[(mark + 1)...].split(separator: UInt8(ascii: "&"))
        } else {
            path = rest
            fields = []
        }
    }

    /// Whether it has header fields or a body.
    var hasFields: Bool { !fields.isEmpty }

    /// Whether it has recipients.
    var hasRecipients: Bool {
        !path.isEmpty
            || fields.contains {
                ["to", "cc"].contains(Self.name($0)) && $0.last != UInt8(ascii: "=")
            }
    }

    var hasBody: Bool { fields.contains { Self.name($0) == "body" } }

    /// The URI with every recipient replaced. Only the header fields named here stay, without blind
    /// copies. RFC 6068 section 4: a program need not, and should not, use arbitrary fields.
    ///
    /// - Parameters:
    ///   - keepsEquals: keeps `=` in an address: calendar programs compare addresses with
    ///     or without decoding.
    ///   - transform: nil for an address that is removed.
    func mapping(
        keepsEquals: Bool = false, words: MailtoWords, _ transform: (AddrSpec) -> AddrSpec?
    ) -> [UInt8] {
        write(path: Self.map(path, keepsEquals, transform), words) {
            Self.map($0, keepsEquals, transform)
        }
    }

    /// The same for a URI without an address: its empty list of recipients stays as written.
    func keepingRecipients(words: MailtoWords) -> [UInt8] {
        write(path: Array(path), words) { Array($0) }
    }

    private func write(
        path: [UInt8], _ words: MailtoWords, recipients: (ArraySlice<UInt8>) -> [UInt8]
    ) -> [UInt8] {
        var uri = Array("mailto:".utf8) + path
        var separator = UInt8(ascii: "?")
        for field in fields {
            let name = Self.name(field)
            let field = Self.withoutReference(field)
            let value = field.drop { $0 != UInt8(ascii: "=") }.dropFirst()
            switch name {
            case "to", "cc":
                uri += [separator] + name.utf8 + [UInt8(ascii: "=")] + recipients(value)
            case "body" where !words.keepsBody || !MailtoWords.isPlain(Self.percentDecoded(value)):
                continue
            case "subject", "body":
                let neutral = words.neutral(Self.percentDecoded(value))
                uri +=
                    [separator]
                    + (neutral.map { Array("\(name)=".utf8) + Self.percentEncoded($0) }
                        ?? Array(field))
            case "in-reply-to", "references": uri += [separator] + field
            default: continue
            }
            separator = UInt8(ascii: "&")
        }
        return uri
    }

    /// The name of a field, in lower case.
    private static func name(_ field: ArraySlice<UInt8>) -> String {
        let name = percentDecoded(withoutReference(field).prefix { $0 != UInt8(ascii: "=") })
        return String(decoding: name.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Without the rest of `&amp;`, which some programs copy from HTML.
    private static func withoutReference(_ field: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        field.prefix(4).equalsIgnoringASCIICase("amp;".utf8) ? field.dropFirst(4) : field
    }

    /// Commas between addresses stay unchanged; commas within one are encoded (RFC 6068 section 2).
    /// Some programs encode both.
    private static func map(
        _ list: ArraySlice<UInt8>, _ keepsEquals: Bool, _ transform: (AddrSpec) -> AddrSpec?
    ) -> [UInt8] {
        var seen: Set<AddrSpec> = []
        let addresses = list.split(separator: UInt8(ascii: ",")).flatMap { element in
            let text = percentDecoded(element)
            return AddressList.parse(text).mailboxes.map(\.addrSpec)
        }
        return Array(
            addresses.filter { seen.insert($0).inserted }.compactMap(transform)
                .map { percentEncoded(Array($0.wireForm.utf8), keepsEquals) }
                .joined(separator: [UInt8(ascii: ",")]))
    }

    /// Decodes `%XX` (RFC 3986 section 2.1). Text that is not an escape stays.
    static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var out: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.endIndex,
                let high = text[index + 1].hexValue,
                let low = text[index + 2].hexValue
            {
                out.append(high << 4 | low)
                index += 3
            } else {
                out.append(text[index])
                index += 1
            }
        }
        return out
    }

    /// Encodes the octets that RFC 6068 section 2 requires in an address: all but letters, digits
    /// and a few marks.
    static func percentEncoded(_ text: [UInt8], _ keepsEquals: Bool = false) -> [UInt8] {
        text.flatMap { octet -> [UInt8] in
            if octet.isASCIILetter || octet.isASCIIDigit || "-._~@!$'*+".utf8.contains(octet)
                || (keepsEquals && octet == UInt8(ascii: "="))
            {
                return [octet]
            }
            return Hex.escape(octet, mark: "%")
        }
    }
}
