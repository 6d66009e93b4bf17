// The URIs that a response to an authorization request may go to.

import Database
import Support

/// A registered redirect URI: compared octet by octet (RFC 9700 section 4.1.3).
package enum RedirectURI {
    /// Maximum length in octets, which browsers and servers accept.
    package static let maximum = 2_000

    /// The text unchanged, or `invalid`: an absolute URI without fragment and user information;
    /// `https`, `http` on a loopback host (RFC 8252 section 7.3), or an app's own scheme with a dot
    /// in its name (section 7.1).
    package static func checked(_ text: String) throws(StoreFailure) -> String {
        let octets = Array(text.utf8)
        guard octets.count <= maximum,
            octets.allSatisfy({
                $0 > 0x20 && $0 < 0x7F && ![0x22, 0x3C, 0x3E, 0x5C, 0x60].contains($0)
            })
        else {
            throw .refused(
                .invalid,
                "a redirect URI must be at most \(maximum) visible ASCII characters of a URI")
        }
        guard !text.contains("#") else {
            throw .refused(.invalid, "a redirect URI must not have a fragment (#)")
        }
        guard
            octets.indices.allSatisfy({ octets[$0] != UInt8(ascii: "%") || isEscape(octets[$0...]) }
            )
        else {
            throw .refused(.invalid, "a redirect URI must have two hexadecimal digits after each %")
        }
        guard !text.contains("*") else {
            throw .refused(.invalid, "a redirect URI must be exact, without *")
        }
        guard let colon = octets.firstIndex(of: UInt8(ascii: ":")), isScheme(octets[..<colon])
        else {
            throw .refused(.invalid, "a redirect URI must begin with https://")
        }
        let scheme = String(decoding: octets[..<colon], as: UTF8.self).lowercased()
        let rest = text.utf8.dropFirst(colon + 1)
        switch scheme {
        case "https", "http":
            guard rest.starts(with: "//".utf8) else {
                throw .refused(.invalid, "a redirect URI must begin with https://")
            }
            let authority = String(
                decoding: rest.dropFirst(2).prefix {
                    $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
                }, as: UTF8.self)
            guard !authority.isEmpty, !authority.contains("@") else {
                throw .refused(.invalid, "a redirect URI must name a host, and no user")
            }
            guard isHost(authority) else {
                throw .refused(
                    .invalid,
                    "a redirect URI must name a host as in DNS, or an IP address, and a port up to 65535"
                )
            }
            guard scheme == "https" || isLoopback(authority) else {
                throw .refused(
                    .invalid,
                    "a redirect URI must use https; http is only for 127.0.0.1, [::1] and localhost"
                )
            }
        default:
            guard scheme.contains("."), !rest.isEmpty else {
                throw .refused(
                    .invalid,
                    "an app's own scheme must be named after a domain, as in com.example.app:/signed-in"
                )
            }
        }
        return text
    }

    private static func isEscape(_ octets: ArraySlice<UInt8>) -> Bool {
        octets.count > 2 && isHex(octets[octets.startIndex + 1])
            && isHex(octets[octets.startIndex + 2])
    }

    private static func isHex(_ octet: UInt8) -> Bool {
        octet.isASCIIDigit || (0x41...0x46).contains(octet) || (0x61...0x66).contains(octet)
    }

    /// A name of DNS, an IPv4 address, or an IPv6 address in brackets; and possibly a port.
    private static func isHost(_ authority: String) -> Bool {
        let octets = Array(authority.utf8)
        let end =
            octets.first == UInt8(ascii: "[") ? octets.firstIndex(of: UInt8(ascii: "]")) ?? 0 : 0
        let colon = octets[end...].firstIndex(of: UInt8(ascii: ":"))
        if let colon {
            let port = octets[(colon + 1)...]
            guard port.allSatisfy(\.isASCIIDigit), (1...5).contains(port.count),
                (1...65_535).contains(port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
            else { return false }
        }
        let host = octets[..<(colon ?? octets.count)]
        guard end == 0 else {
            return host.count == end + 1
                && host.dropFirst().dropLast().allSatisfy {
                    isHex($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
                }
        }
        return host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy
        { label in
            (1...63).contains(label.count)
                && label.allSatisfy {
                    $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-")
                        || $0 == UInt8(ascii: "_")
                }
        }
    }

    /// Whether a request may use this URI when another one is registered. They must be equal octet
    /// by octet. Only the port of an `http` URI on 127.0.0.1 or [::1] may differ, because an app on
    /// a computer uses any free port (RFC 8252 section 7.3).
    package static func matches(_ asked: String, registered: String) -> Bool {
        if asked.utf8.elementsEqual(registered.utf8) { return true }
        guard let asked = withoutPort(loopback: asked),
            let registered = withoutPort(loopback: registered)
        else { return false }
        return asked == registered
    }

    /// The URI without its port; nil if it is not `http` on a loopback address.
    package static func withoutPort(loopback uri: String) -> [UInt8]? {
        let octets = Array(uri.utf8)
        guard
            let start = ["http://127.0.0.1", "http://[::1]"].first(where: {
                octets.starts(with: $0.utf8)
            })
        else { return nil }
        var rest = octets.dropFirst(start.utf8.count)
        if rest.first == UInt8(ascii: ":") {
            let port = rest.dropFirst().prefix(while: \.isASCIIDigit)
            guard let number = Int(String(decoding: port.prefix(6), as: UTF8.self)),
                (1...65_535).contains(number)
            else {
                return nil
            }
            rest = rest.dropFirst(1 + port.count)
        }
        guard rest.isEmpty || rest.first == UInt8(ascii: "/") || rest.first == UInt8(ascii: "?")
        else { return nil }
        return Array(start.utf8) + rest
    }

    private static func isScheme(_ octets: ArraySlice<UInt8>) -> Bool {
        guard let first = octets.first, first.isASCIILetter else { return false }
        return octets.allSatisfy {
            $0.isASCIILetter || ($0 >= 0x30 && $0 <= 0x39) || [0x2B, 0x2D, 0x2E].contains($0)
        }
    }

    private static func isLoopback(_ authority: String) -> Bool {
        let authority = authority.lowercased()
        guard let host = ["127.0.0.1", "[::1]", "localhost"].first(where: authority.hasPrefix)
        else { return false }
        // Only a port may follow: some parsers read `[::1].evil.example` as another host.
        let rest = authority.dropFirst(host.count)
        return rest.isEmpty
            || rest.first == ":" && rest.dropFirst().utf8.allSatisfy { (0x30...0x39).contains($0) }
                && (Int(rest.dropFirst()) ?? 0) <= 65_535
    }
}
