// Addresses as an administrator types them.

import InternetMessage

extension AddrSpec {
    /// Reads `local@domain` with a host name of two labels or more, which comes out in lower-case A-labels. No display name,
    /// no comments, no address literal.
    /// Throws `StoreRefusal` (`invalid`) that says what is wrong without repeating the address.
    package static func typed(_ text: String) throws -> AddrSpec {
        guard text.contains("@") else {
            throw StoreRefusal(.invalid, "an address is needed, as in name@example.com")
        }
        guard let address = AddrSpec(envelope: text) else {
            throw StoreRefusal(.invalid, "the address is malformed: it is needed alone, as in name@example.com")
        }
        guard let domain = HostName(address.domain), domain.labels.count > 1 else {
            throw StoreRefusal(.invalid, "what follows the @ of the address is no domain name")
        }
        let normal = AddrSpec(localPart: address.localPart, domain: domain.text)
        guard normal.fitsSMTPLimits else {
            throw StoreRefusal(.invalid, "the address is too long: 64 octets before the @ and 254 in all are the most")
        }
        return normal
    }
}
