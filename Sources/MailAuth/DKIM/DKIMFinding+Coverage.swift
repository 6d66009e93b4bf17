// The fields that the signature of a finding covers.

import InternetMessage
import Support

extension DKIMFinding {
    /// Whether `h=` of the signature names a field as often as the header section has it. Also true
    /// if the header section has no such signature, for example because an upstream filter removed
    /// it: nothing then shows that the field is not covered.
    package func covers(_ name: String, in header: HeaderSection) -> Bool {
        own(in: header).allSatisfy(names(name, in: header))
    }

    /// As `covers`, but false if the header section has no such signature.
    package func provablyCovers(_ name: String, in header: HeaderSection) -> Bool {
        let own = own(in: header)
        return !own.isEmpty && own.allSatisfy(names(name, in: header))
    }

    private func own(in header: HeaderSection) -> [DKIMTagList] {
        header.all("DKIM-Signature").compactMap { try? DKIMTagList($0.rawValue) }.filter(isOfThis)
    }

    /// A signature covers the lowest of several fields first (RFC 6376 section 5.4.2): one that was
    /// added above is not covered.
    private func names(_ name: String, in header: HeaderSection) -> (DKIMTagList) -> Bool {
        let needed = max(1, header.all(name).count)
        return { tags in
            guard let names = tags["h"]?.value else { return false }
            return names.split(separator: UInt8(ascii: ":")).count {
                HeaderField.trim($0).equalsIgnoringASCIICase(name.utf8)
            } >= needed
        }
    }

    private func isOfThis(_ tags: DKIMTagList) -> Bool {
        guard let value = tags["d"]?.value, let signer = DKIMSyntax.domain(value),
            signer.hasSameOctets(as: domain)
        else {
            return false
        }
        let signature = (tags["b"]?.value ?? []).filter { !$0.isFoldingWhiteSpace }
        return signature.starts(with: signaturePrefix.utf8)
    }
}
