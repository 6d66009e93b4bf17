// The fields that the signature of a finding covers.

import InternetMessage
import Support

extension DKIMFinding {
    /// Whether `h=` of the signature names a field. Also true if the header section has no such
    /// signature, for example because an upstream filter removed it: nothing then shows that the
    /// field is not covered.
    package func covers(_ name: String, in header: HeaderSection) -> Bool {
        own(in: header).allSatisfy(names(name))
    }

    /// As `covers`, but false if the header section has no such signature.
    package func provablyCovers(_ name: String, in header: HeaderSection) -> Bool {
        let own = own(in: header)
        return !own.isEmpty && own.allSatisfy(names(name))
    }

    private func own(in header: HeaderSection) -> [DKIMTagList] {
        header.all("DKIM-Signature").compactMap { try? DKIMTagList($0.rawValue) }.filter(isOfThis)
    }

    private func names(_ name: String) -> (DKIMTagList) -> Bool {
        { tags in
            guard let names = tags["h"]?.value else { return false }
            return names.split(separator: UInt8(ascii: ":")).contains {
                HeaderField.trim($0).equalsIgnoringASCIICase(name.utf8)
            }
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
