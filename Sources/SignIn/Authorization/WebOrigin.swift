// The origin of a redirect URI (RFC 6454 section 6.2): messages are sent only to a window
// of this origin. Pure.

import Support

/// `https://host:port`, without the scheme's default port, as browsers write it.
package struct WebOrigin: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    /// Nil if the scheme is not http or https, or there is no host.
    package init?(_ uri: String) {
        let octets = uri.utf8.map(\.asciiLowercased)
        guard let scheme = ["https", "http"].first(where: { octets.starts(with: "\($0)://".utf8) })
        else { return nil }
        var authority = octets.dropFirst(scheme.utf8.count + 3).prefix { !"/?#".utf8.contains($0) }
        let standardPort = scheme == "https" ? ":443" : ":80"
        if authority.suffix(standardPort.utf8.count).elementsEqual(standardPort.utf8) {
            authority.removeLast(standardPort.utf8.count)
        }
        if authority.last == UInt8(ascii: ":") { authority.removeLast() }
        guard !authority.isEmpty,
            authority.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "@") })
        else {
            return nil
        }
        description = "\(scheme)://\(String(decoding: authority, as: UTF8.self))"
    }
}
