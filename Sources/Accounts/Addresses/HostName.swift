// Domain names as the store keeps them: lower case, A-labels, checked.

import InternetMessage
import Support

/// A checked domain name.
package struct HostName: Sendable, Hashable, CustomStringConvertible {
    /// Lower case, A-labels, no final dot; at most 253 octets, labels of at most 63
    /// (RFC 1035 section 2.3.4).
    package let text: String

    package var description: String { text }
    /// The labels from left to right.
    package var labels: [Substring] { text.split(separator: ".") }

    /// Checks and normalises; labels in other scripts become A-labels. Nil for anything that is not
    /// a host name, address literals and numbers with dots included.
    package init?(_ input: String) {
        guard let ascii = DomainName.toASCII(input),
            ascii.utf8.count <= DomainName.maximumQueryLength,
            let last = ascii.split(separator: ".").last,
            !last.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
        else { return nil }
        text = ascii
    }

    /// Whether this is the other name or is below it.
    package func isWithin(_ other: HostName) -> Bool { DomainName.isEqualOrBelow(text, other.text) }
}
