// Addresses as an administrator types them.

import InternetMessage

extension AddrSpec {
    /// Reads `local@domain`: a dot-atom (RFC 5322 section 3.2.3, with RFC 6532 letters) or quoted local part, a host name
    /// as the domain, in lower-case A-labels afterwards. No display name, no comments, no address literal.
    /// Throws `StoreRefusal` (`invalid`) that says what is wrong without repeating the address.
    package static func typed(_ text: String) throws -> AddrSpec {
        guard let at = text.lastIndex(of: "@") else {
            throw StoreRefusal(.invalid, "an address is needed, as in name@example.com")
        }
        guard let domain = HostName(String(text[text.index(after: at)...])), domain.labels.count > 1 else {
            throw StoreRefusal(.invalid, "what follows the @ is no domain name")
        }
        guard let local = localPart(text[..<at]), !local.isEmpty, local.utf8.count <= 64 else {
            throw StoreRefusal(.invalid, "what stands before the @ is no local part of at most 64 octets")
        }
        guard local.utf8.count + domain.text.utf8.count < 254 else {
            throw StoreRefusal(.invalid, "the address is longer than 254 octets")
        }
        return AddrSpec(localPart: local, domain: domain.text)
    }

    private static func localPart(_ text: Substring) -> String? {
        if text.first == "\"" {
            guard text.count >= 2, text.last == "\"" else { return nil }
            var result = ""
            var isEscaped = false
            for scalar in text.dropFirst().dropLast().unicodeScalars {
                guard scalar.value >= 0x20, scalar.value != 0x7F else { return nil }
                if !isEscaped, scalar == "\\" {
                    isEscaped = true
                    continue
                }
                if !isEscaped, scalar == "\"" { return nil }
                result.unicodeScalars.append(scalar)
                isEscaped = false
            }
            return isEscaped ? nil : result
        }
        let atoms = text.split(separator: ".", omittingEmptySubsequences: false)
        guard atoms.allSatisfy({ !$0.isEmpty && $0.unicodeScalars.allSatisfy(isAtomText) }) else { return nil }
        return String(text)
    }

    private static func isAtomText(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.value >= 0x80 { return scalar.value >= 0xA0 && !scalar.properties.isWhitespace }
        return (scalar.value >= 0x30 && scalar.value <= 0x39) || (scalar.value >= 0x41 && scalar.value <= 0x5A)
            || (scalar.value >= 0x61 && scalar.value <= 0x7A) || "!#$%&'*+-/=?^_`{|}~".unicodeScalars.contains(scalar)
    }
}
