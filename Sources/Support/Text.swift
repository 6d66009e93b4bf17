// Comparing texts octet by octet, and making them safe to show.

extension Unicode.Scalar {
    /// Whether a program that folds case or compatibility forms changes it to ASCII: the Kelvin
    /// sign, the long s, the dotless i, the dotted I, full-width letters, ligatures and the like.
    /// Not `ß`, which is a letter of its own.
    package var foldsToASCII: Bool {
        guard !isASCII, self != "\u{DF}", self != "\u{1E9E}" else { return false }
        let lower = properties.lowercaseMapping.unicodeScalars
        return lower.contains(where: \.isASCII)
            || properties.uppercaseMapping.unicodeScalars.allSatisfy(\.isASCII)
            || lower.contains { $0 != "\u{3C2}" && $0.properties.changesWhenNFKCCaseFolded }
    }
}

extension String {
    /// Whether the text has no control character.
    package var hasNoControls: Bool {
        unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// The text for a terminal: control characters replaced, cut after `limit` characters.
    package func withoutControls(limit: Int) -> String {
        let scalars = unicodeScalars.prefix(limit).map {
            $0.properties.generalCategory == .control ? "\u{FFFD}" : $0
        }
        return String(String.UnicodeScalarView(scalars))
    }

    /// In lower case, for comparing identities. Letters beyond ASCII that would become ASCII
    /// letters stay: the Kelvin sign, for example, is another letter than `k` to every other
    /// program.
    package var foldedIdentity: String {
        if utf8.allSatisfy({ $0 < 0x80 }) { return asciiLowercased }
        var folded = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            let lower = scalar.properties.lowercaseMapping.unicodeScalars
            if scalar.isASCII || !lower.contains(where: \.isASCII) {
                folded.append(contentsOf: lower)
            } else {
                folded.append(scalar)
            }
        }
        return String(folded)
    }

    /// Equality octet by octet (RFC 7519 section 7.3); `==` would treat canonically
    /// equivalent Unicode texts as equal.
    package func hasSameOctets(as other: String) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}
