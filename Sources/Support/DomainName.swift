// Domain names in one comparable form: lower case, A-labels (RFC 5890, and UTS 46 as far as the
// standard library supports it).
@_spi(_Unicode) import Swift

/// Normalisation of domain names.
///
/// Mapping: ASCII and simple Unicode lower-casing, NFC, and U+3002, U+FF0E and U+FF61 as dots. This
/// module has no IDNA tables, so characters with compatibility mappings (full-width letters,
/// ligatures) are refused instead of mapped. `ß`, `ς` and the joiners are kept (non-transitional).
/// Contextual rules are checked for the joiners only, and the Bidi rule (RFC 5893) is not checked.
package enum DomainName {
    /// Octets in a label (RFC 1035 section 2.3.4).
    package static let maximumLabelLength = 63
    /// Octets in a domain name of a mail address, without its final dot (RFC
    /// 5321 section 4.5.3.1.2).
    package static let maximumLength = 255

    /// The name in lower-case A-labels, without a final dot; nil if it is not a valid domain name
    /// of letters, digits, hyphens and underscores.
    ///
    /// Domain literals are refused. A-labels are decoded, and must be the encoding of the result.
    package static func toASCII(_ domain: String) -> String? {
        var domain = domain
        switch domain.withUTF8(letters) {
        case .lower: return domain
        case .mixed: return domain.asciiLowercased
        case .other: break
        }
        guard let labels = labels(of: domain) else { return nil }
        var output = [UInt8]()
        for (number, label) in labels.enumerated() {
            guard let ascii = asciiLabel(label) else { return nil }
            if number > 0 { output.append(UInt8(ascii: ".")) }
            output.append(contentsOf: ascii)
        }
        guard !output.isEmpty, output.count <= maximumLength else { return nil }
        return String(decoding: output, as: UTF8.self)
    }

    /// The name in lower case with A-labels decoded to U-labels; labels that do not decode stay
    /// unchanged. Nil if `toASCII` gives nil.
    package static func toUnicode(_ domain: String) -> String? {
        guard let ascii = toASCII(domain) else { return nil }
        // Without an A-label, both forms are the same.
        guard ascii.utf8.contains(UInt8(ascii: "-")) else { return ascii }
        return ascii.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map
        { label in
            decodedLabel(label) ?? String(decoding: label, as: UTF8.self)
        }.joined(separator: ".")
    }

    private enum Letters { case lower, mixed, other }

    /// Whether a name needs only case folding: its labels consist of letters, digits, inner hyphens
    /// and underscores, and none has a special meaning. This is true for nearly every name.
    private static func letters(_ name: UnsafeBufferPointer<UInt8>) -> Letters {
        guard name.count <= maximumLength else { return .other }
        var result = Letters.lower
        var start = 0
        for index in 0...name.count {
            guard index == name.count || name[index] == UInt8(ascii: ".") else {
                let octet = name[index]
                guard
                    octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "-")
                        || octet == UInt8(ascii: "_")
                else {
                    return .other
                }
                if octet.asciiLowercased != octet { result = .mixed }
                continue
            }
            guard index > start, index - start <= maximumLabelLength,
                name[start] != UInt8(ascii: "-"),
                name[index - 1] != UInt8(ascii: "-"),
                index - start < 4 || name[start + 2] != UInt8(ascii: "-")
                    || name[start + 3] != UInt8(ascii: "-")
            else { return .other }
            start = index + 1
        }
        return result
    }

    /// Splits at dots, including those of East Asian input methods. Nil if a label is empty;
    /// one final dot is dropped.
    private static func labels(of domain: String) -> [[Unicode.Scalar]]? {
        // Longer text cannot become a domain name of 255 octets. This limit keeps the work on
        // invalid input small.
        guard domain.utf8.count <= 4 * maximumLength else { return nil }
        var labels: [[Unicode.Scalar]] = [[]]
        for scalar in domain.unicodeScalars {
            switch scalar {
            case ".", "\u{3002}", "\u{FF0E}", "\u{FF61}": labels.append([])
            default: labels[labels.count - 1].append(scalar)
            }
        }
        if labels.count > 1, labels[labels.count - 1].isEmpty { labels.removeLast() }
        return labels.contains(where: \.isEmpty) ? nil : labels
    }

    private static func asciiLabel(_ label: [Unicode.Scalar]) -> [UInt8]? {
        if label.allSatisfy(\.isASCII) {
            let ascii = label.map { UInt8(truncatingIfNeeded: $0.value).asciiLowercased }
            guard isHostLabel(ascii) else { return nil }
            if ascii.starts(with: "xn--".utf8), decodedLabel(ascii[...]) == nil { return nil }
            return ascii
        }
        guard let mapped = mapped(label), !mapped.starts(with: "xn--".unicodeScalars) else {
            return nil
        }
        if mapped.allSatisfy(\.isASCII) { return asciiLabel(mapped) }
        guard isValidUnicodeLabel(mapped), let encoded = Punycode.encode(mapped) else { return nil }
        let ascii = Array("xn--".utf8) + encoded
        return ascii.count <= maximumLabelLength ? ascii : nil
    }

    /// Lower-cases the label and normalizes it to NFC.
    private static func mapped(_ label: [Unicode.Scalar]) -> [Unicode.Scalar]? {
        var lowered = String.UnicodeScalarView()
        for scalar in label {
            // UTS 46 removes the soft hyphen and the variation selectors; here they are refused
            // with all default-ignorables.
            if scalar == "\u{1E9E}" {
                lowered.append("\u{DF}")
            } else {
                lowered.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
            }
        }
        return Array(String(lowered)._nfc)
    }

    /// The U-label of a lower-case `xn--` label, if it is valid.
    private static func decodedLabel(_ label: ArraySlice<UInt8>) -> String? {
        guard label.starts(with: "xn--".utf8), let scalars = Punycode.decode(label.dropFirst(4)),
            scalars.contains(where: { !$0.isASCII }), isValidUnicodeLabel(scalars),
            let again = mapped(scalars), again == scalars,
            Punycode.encode(scalars) == Array(label.dropFirst(4))
        else { return nil }
        var view = String.UnicodeScalarView()
        view.append(contentsOf: scalars)
        return String(view)
    }

    private static func decodedLabel(_ label: Substring.UTF8View) -> String? {
        decodedLabel(Array(label)[...])
    }

    /// LDH (RFC 5890 section 2.3.1), and the underscore, because domains use it.
    private static func isHostLabel(_ label: [UInt8]) -> Bool {
        guard !label.isEmpty, label.count <= maximumLabelLength, label.first != UInt8(ascii: "-"),
            label.last != UInt8(ascii: "-")
        else { return false }
        return label.allSatisfy {
            $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-")
                || $0 == UInt8(ascii: "_")
        }
    }

    /// UTS 46 section 4.1, as far as scalar properties allow.
    static func isValidUnicodeLabel(_ label: [Unicode.Scalar]) -> Bool {
        guard let first = label.first, let last = label.last, first != "-", last != "-" else {
            return false
        }
        if label.count >= 4, label[2] == "-", label[3] == "-" { return false }
        switch first.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return false
        default: break
        }
        for (index, scalar) in label.enumerated() where !isValid(scalar, in: label, at: index) {
            return false
        }
        return true
    }

    private static func isValid(
        _ scalar: Unicode.Scalar, in label: [Unicode.Scalar], at index: Int
    ) -> Bool {
        if scalar.isASCII {
            let octet = UInt8(truncatingIfNeeded: scalar.value)
            return octet.isASCIIDigit || (octet.isASCIILetter && octet == octet.asciiLowercased)
                || octet == UInt8(ascii: "-")
        }
        switch scalar {
        case "\u{DF}", "\u{3C2}": return true
        // RFC 5892 appendix A.1 and A.2: after a virama. The joining-type rule for ZWNJ
        // needs tables and is not supported.
        case "\u{200C}", "\u{200D}":
            return index > 0 && label[index - 1].properties.canonicalCombiningClass == .virama
        default: break
        }
        let properties = scalar.properties
        if properties.changesWhenNFKCCaseFolded || properties.isDefaultIgnorableCodePoint
            || properties.isNoncharacterCodePoint
        {
            return false
        }
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
            .paragraphSeparator, .spaceSeparator:
            return false
        default: return true
        }
    }
}
