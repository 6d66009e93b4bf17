// Base32 in lower case without padding (RFC 4648 section 6), for everything random that stands in an address or an identifier.

package enum Base32 {
    /// a–z and 2–7.
    package static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Whether the octet is one of the 32 characters.
    package static func isCharacter(_ octet: UInt8) -> Bool {
        (octet >= 0x61 && octet <= 0x7A) || (octet >= 0x32 && octet <= 0x37)
    }

    /// As many characters as there are random octets, each of 5 unbiased bits.
    package static func characters(fromRandom octets: [UInt8]) -> String {
        String(decoding: octets.map { alphabet[Int($0 & 31)] }, as: UTF8.self)
    }
}
