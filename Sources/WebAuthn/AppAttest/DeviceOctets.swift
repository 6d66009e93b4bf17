// Octets as Apple's interfaces write them.

import Support

package enum DeviceOctets {
    /// Decodes base64 (RFC 4648 section 4), as from `DCAppAttestService`. Base64url and missing
    /// padding are accepted too. Nil for anything else.
    package static func base64(_ text: String) -> [UInt8]? {
        var octets = Array(text.utf8)
        if octets.count % 4 == 0 {
            for _ in 0..<2 where octets.last == UInt8(ascii: "=") { octets.removeLast() }
        }
        return Base64URL.decode(
            octets.map { octet in
                switch octet {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: octet
                }
            })
    }
}
