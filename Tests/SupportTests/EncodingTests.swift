// Hexadecimal digits, base32, base64url: both ways, and what is refused.

import Support
import TestSupport
import Testing

@Suite(.blocking) struct Base32Tests {
    @Test(arguments: 0...20)
    func base32_anyLength_isDecodedAgain(_ count: Int) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + 200) }
        #expect(Base32.decode(Base32.encode(bytes)) == bytes)
    }

    @Test func base32_nonCanonicalEnding_returnsNil() {
        #expect(Base32.decode(Array("ab".utf8)) == nil)
        #expect(Base32.decode(Array("a".utf8)) == nil)
        #expect(Base32.decode(Array("a1".utf8)) == nil)
    }
}

@Suite(.blocking) struct HexTests {
    @Test func hex_everyOctet_isDecodedAgain() {
        let octets = (0...255).map { UInt8($0) }
        let text = Hex.encode(octets)
        #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
        #expect(Hex.decode(text.utf8) == octets && Hex.decode(text.uppercased().utf8) == octets)
        #expect(
            octets.map { Hex.escape($0, mark: "%") }.joined().elementsEqual(
                octets.flatMap { "%\(Hex.encode([$0]).uppercased())".utf8 }))
    }

    @Test(arguments: ["0", "abc", "0g", " 00", "+1", "0x", "ａ0"])
    func hex_notPairsOfDigits_returnsNil(_ text: String) { #expect(Hex.decode(text.utf8) == nil) }
}

@Suite(.blocking) struct Base64URLTests {
    @Test(arguments: 0...20)
    func base64URL_anyLength_isDecodedAgain(_ count: Int) {
        let octets = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 59 &+ 251) }
        let text = Base64URL.encode(octets)
        #expect(text.utf8.count == (count * 4 + 2) / 3 && Base64URL.decode(text.utf8) == octets)
        let padded = String(decoding: Base64.encodeUnbroken(octets), as: UTF8.self)
        #expect(padded.utf8.count == (count + 2) / 3 * 4)
        #expect(
            padded.prefix { $0 != "=" }
                == String(text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }))
    }

    @Test(arguments: ["A", "AB", "AAB", "QQ==", "Q+", "Q/", "Q Q", "QQ\n"])
    func base64URL_otherForm_returnsNil(_ text: String) {
        #expect(Base64URL.decode(text.utf8) == nil)
    }
}
