// Addresses as an administrator types them.

import Database
import InternetMessage
import Support

extension AddrSpec {
    /// Reads `local@domain` with a host name of two labels or more, which is returned in lower-case
    /// A-labels. No display name, no comments, no address literal. Throws `invalid` with the
    /// reason, without repeating the address.
    package static func typed(_ text: String) throws(StoreFailure) -> AddrSpec {
        guard text.contains("@") else {
            throw .refused(.invalid, "must be an address, as in name@example.com")
        }
        guard IdentifierText.isPlain(text) else {
            throw .refused(
                .invalid, "the address has an invisible character or a lone combining mark")
        }
        guard let address = AddrSpec(envelope: text) else {
            throw .refused(
                .invalid, "the address is malformed: give only the address, as in name@example.com")
        }
        guard let domain = HostName(address.domain), domain.labels.count > 1 else {
            throw .refused(
                .invalid, "the part after the @ of the address is not a valid domain name")
        }
        let normal = AddrSpec(localPart: address.localPart, domain: domain.text)
        guard normal.fitsSMTPLimits else {
            throw .refused(
                .invalid, "the address is too long: at most 64 octets before the @ and 254 in total"
            )
        }
        return normal
    }
}
