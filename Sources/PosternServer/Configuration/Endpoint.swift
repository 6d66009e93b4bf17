// A host and a port as they stand in the configuration.

/// `HOST:PORT`; an IPv6 address stands in brackets.
package struct Endpoint: Sendable, Hashable {
    /// A name or an address, without brackets.
    package let host: String
    package let port: UInt16

    /// Nil where the text is neither.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        guard !host.isEmpty, host.utf8.count <= 253, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }) else { return nil }
        self.host = String(host)
        self.port = port
    }
}
