// The origin of a redirect URI (RFC 6454 section 6.2): messages are sent only to a window of this origin. Pure.

/// `https://host:port`, without the scheme's default port, as browsers write it.
package struct WebOrigin: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    /// Nil if the scheme is not http or https, or there is no host.
    package init?(_ uri: String) {
        guard let mark = uri.firstRange(of: "://") else { return nil }
        let scheme = uri[..<mark.lowerBound].lowercased()
        guard scheme == "https" || scheme == "http" else { return nil }
        var authority = uri[mark.upperBound...].prefix { !"/?#".contains($0) }.lowercased()
        let standardPort = scheme == "https" ? ":443" : ":80"
        if authority.hasSuffix(standardPort) { authority.removeLast(standardPort.count) }
        if authority.hasSuffix(":") { authority.removeLast() }
        guard !authority.isEmpty, !authority.contains("@") else { return nil }
        description = "\(scheme)://\(authority)"
    }
}
