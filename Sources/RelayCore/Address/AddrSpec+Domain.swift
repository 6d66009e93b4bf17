// The one form in which the code compares domains.

import InternetMessage
import Support

extension AddrSpec {
    /// Whether public DNS can lead mail to this address. Not for a domain literal, a host of one
    /// label (`localhost`), an IP address without brackets, or the rest of a URI (`mailto://a@b`).
    /// Postern makes no reverse address that would lead elsewhere, such as to this host.
    package var leadsSomewhere: Bool {
        guard let labels = normalized?.domain.utf8.split(separator: UInt8(ascii: ".")),
            labels.count > 1, !isDomainLiteral,
            !localPart.utf8.starts(with: "//".utf8), let last = labels.last
        else { return false }
        return !last.allSatisfy(\.isASCIIDigit) && !last.elementsEqual("localhost".utf8)
    }

    /// The domain in lower-case A-labels. An invalid domain name is only lowercased; it then
    /// matches nothing registered.
    package var asciiDomain: String { normalized?.domain ?? domain.foldedIdentity }
}
