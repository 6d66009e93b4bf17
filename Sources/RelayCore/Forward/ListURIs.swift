// The value of a mailing-list field (RFC 2369): URIs between angle brackets, and the text around
// them.

import InternetMessage
import Support

struct ListURIs {
    /// Without brackets and white space. An address alone gets a scheme.
    private(set) var uris: [[UInt8]] = []
    private var outside: [UInt8] = []

    /// - Parameter value: unfolded.
    init(_ value: [UInt8]) {
        var current: [UInt8]?
        for octet in value {
            switch octet {
            case UInt8(ascii: "<"):
                // Brackets do not nest. Text after a bracket without an end is outside.
                outside += current ?? []
                current = []
            case UInt8(ascii: ">"):
                if let uri = current {
                    let isBare = !uri.contains(UInt8(ascii: ":")) && uri.contains(UInt8(ascii: "@"))
                    uris.append(isBare ? Array("mailto:".utf8) + uri : uri)
                }
                current = nil
            case 0x20, 0x09:
                if current == nil { outside.append(octet) }
            default:
                if current == nil { outside.append(octet) } else { current?.append(octet) }
            }
        }
        outside += current ?? []
    }

    /// Whether a word outside brackets could be read as an address or a `mailto:`. The `@` of a web
    /// address does not count.
    var holdsAddressOutside: Bool {
        outside.split { ", \t".utf8.contains($0) }.contains { word in
            let word = String(decoding: MailtoURI.percentDecoded(word), as: UTF8.self)
                .asciiLowercased
            return word.contains("mailto:")
                || word.utf8.contains(UInt8(ascii: "@")) && !word.contains("://")
        }
    }
}
