// Plain text after the padding of a base64 body. Mailing lists and virus scanners append it without
// decoding the text.

import InternetMessage
import Support

enum TextBehind {
    /// A base64 text and the plain text after its padding, as one base64 text. Nil if the body is
    /// not such a text, or if its charset is not a superset of ASCII.
    static func joined(_ decoded: DecodedText, charset: String?) -> DecodedText? {
        guard decoded.encoding == .base64, !decoded.defects.isSubset(of: TextCoding.harmless) else {
            return nil
        }
        let raw = decoded.raw
        guard var end = raw.firstIndex(of: UInt8(ascii: "=")), TextCoding.isLikeASCII(charset)
        else { return nil }
        while end < raw.endIndex, raw[end] == UInt8(ascii: "=") { end += 1 }
        let first = DecodedText(base64: raw[..<end])
        let rest = raw[end...].drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        guard first.defects.isSubset(of: TextCoding.harmless), first.bytes.isValidUTF8,
            !first.bytes.contains(0),
            rest.first == 0x0A, rest.allSatisfy({ $0 < 0x7F && !$0.isForbiddenControl })
        else { return nil }
        let text = first.bytes + (first.bytes.last == 0x0A ? [] : [0x0D, 0x0A]) + rest.dropFirst()
        return DecodedText(base64: TextCoding.ending(like: raw, Base64.encode(text))[...])
    }
}
