// The URL of an event endpoint. Strict parsing ensures that the checked URL is the one that Postern
// connects to.

import Database
import InternetMessage

/// An absolute `https` or `http` URL without user, password and fragment (RFC 3986).
package struct EndpointURL: Sendable, Hashable, CustomStringConvertible {
    package let isSecure: Bool
    /// Lower case: a name in A-labels, an IPv4 address, or an IPv6 address without brackets.
    package let host: String
    /// Whether `host` is an address, which needs no lookup.
    package let isAddress: Bool
    /// 1 … 65535.
    package let port: Int
    /// Path and query as sent, beginning with `/`.
    package let target: String

    /// The text that is stored and shown.
    package let description: String

    /// Maximum length in octets.
    private static let maximumLength = 2_000

    /// Parses an administrator's input. Throws `invalid` with the reason.
    /// - Parameter name: the name of the URL in the message.
    package init(_ text: String, name: String = "the endpoint's URL") throws(StoreFailure) {
        func invalid(_ message: String) -> StoreFailure { .refused(.invalid, "\(name) \(message)") }
        guard text.utf8.count <= Self.maximumLength else {
            throw invalid("is longer than \(Self.maximumLength) octets")
        }
        let unsafe: [UInt8] = Array("\"<>\\^`{|}".utf8)
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !unsafe.contains($0) }) else {
            throw invalid(
                "may contain only printable ASCII: write other characters as %XX, and domains in A-labels"
            )
        }
        let scheme = text.prefix { $0 != ":" }
        switch scheme.lowercased() {
        case "https": isSecure = true
        case "http": isSecure = false
        default: throw invalid("must begin with https://")
        }
        let afterScheme = text[scheme.endIndex...]
        guard afterScheme.hasPrefix("://") else { throw invalid("must begin with https://") }
        let rest = afterScheme.dropFirst(3)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        var authority = rest[..<end]
        guard !rest.contains("#") else { throw invalid("must not contain a fragment (#)") }
        guard !authority.contains("@") else { throw invalid("must not contain a user or password") }
        var digits: Substring?
        if authority.first == "[" {
            guard let close = authority.firstIndex(of: "]") else {
                throw invalid("contains an address without ]")
            }
            let after = authority[authority.index(after: close)...]
            guard after.isEmpty || after.first == ":" else {
                throw invalid("contains unexpected text after ]")
            }
            digits = after.isEmpty ? nil : after.dropFirst()
            let literal = authority[authority.index(after: authority.startIndex)..<close]
            let isPlain = literal.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
            guard isPlain, literal.contains(":") else {
                throw invalid("has no IPv6 address in its brackets")
            }
            host = literal.lowercased()
            isAddress = true
        } else {
            if let colon = authority.firstIndex(of: ":") {
                digits = authority[authority.index(after: colon)...]
                authority = authority[..<colon]
            }
            if let address = Self.ipv4(authority) {
                host = address
                isAddress = true
            } else if let name = HostName(String(authority)) {
                host = name.text
                isAddress = false
            } else {
                throw invalid("has no host name")
            }
        }
        if let digits {
            guard (1...5).contains(digits.utf8.count),
                digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
                let number = Int(digits), (1...65_535).contains(number)
            else { throw invalid("must have a port from 1 to 65535") }
            port = number
        } else {
            port = isSecure ? 443 : 80
        }
        let path = rest[end...]
        target = path.first == "/" ? String(path) : "/" + path
        let shownHost = isAddress && host.contains(":") ? "[\(host)]" : host
        let shownPort = port == (isSecure ? 443 : 80) ? "" : ":\(port)"
        description = "\(isSecure ? "https" : "http")://\(shownHost)\(shownPort)\(target)"
    }

    /// Four decimal numbers of 0 … 255 without leading zeros; other forms of an IPv4 address
    /// are not accepted as hosts.
    private static func ipv4(_ text: Substring) -> String? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        for part in parts {
            guard (1...3).contains(part.utf8.count),
                part.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
                part == "0" || part.first != "0", let number = Int(part), number <= 255
            else { return nil }
        }
        return String(text)
    }
}
