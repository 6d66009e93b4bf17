// Content-Transfer-Encoding (RFC 2045 section 6).

import Support

package enum TransferEncoding: Sendable, Hashable {
    case sevenBit
    case eightBit
    case binary
    case quotedPrintable
    case base64
    /// Any other name, in lower case. Its body cannot be decoded.
    case unknown(String)

    /// Reads the raw value of the field. Comments and white space are skipped; letter case does not
    /// matter. An empty value is `sevenBit`.
    package static func parse(_ value: ArraySlice<UInt8>) -> TransferEncoding {
        var parser = ParameterParser(HeaderField.unfold(value)[...])
        let name = String(decoding: parser.token(), as: UTF8.self).asciiLowercased
        switch name {
        case "7bit", "7-bit", "7bits", "": return .sevenBit
        case "8bit", "8-bit", "8bits": return .eightBit
        case "binary": return .binary
        case "quoted-printable", "quoted_printable": return .quotedPrintable
        case "base64", "base-64": return .base64
        default: return .unknown(name)
        }
    }

    /// Reads a value; see the version for octets.
    package static func parse(_ value: String) -> TransferEncoding { parse(Array(value.utf8)[...]) }

    /// Whether the encoding leaves the octets unchanged: 7bit, 8bit and binary.
    package var isIdentity: Bool {
        switch self {
        case .sevenBit, .eightBit, .binary: true
        case .quotedPrintable, .base64, .unknown: false
        }
    }

    /// The name as written in a header.
    package var name: String {
        switch self {
        case .sevenBit: "7bit"
        case .eightBit: "8bit"
        case .binary: "binary"
        case .quotedPrintable: "quoted-printable"
        case .base64: "base64"
        case .unknown(let name): name
        }
    }

    /// Decodes a body with a map back to the raw octets; nil if the encoding is unknown.
    package func decode(_ body: ArraySlice<UInt8>) -> DecodedText? {
        switch self {
        case .sevenBit, .eightBit, .binary: DecodedText(identity: body)
        case .quotedPrintable: DecodedText(quotedPrintable: body)
        case .base64: DecodedText(base64: body)
        case .unknown: nil
        }
    }

    /// Encodes octets; nil if the encoding is unknown. The identity encodings
    /// return the octets unchanged.
    package func encode(_ bytes: [UInt8]) -> [UInt8]? {
        switch self {
        case .sevenBit, .eightBit, .binary: bytes
        case .quotedPrintable: QuotedPrintable.encode(bytes)
        case .base64: Base64.encode(bytes)
        case .unknown: nil
        }
    }
}
