// Texts compared octet by octet, and made fit to be shown.

extension String {
    /// Whether there is no control character in it.
    package var hasNoControls: Bool { unicodeScalars.allSatisfy { $0.properties.generalCategory != .control } }

    /// The text as it may be shown on a terminal: control characters replaced, cut after `limit` characters.
    package func withoutControls(limit: Int) -> String {
        let scalars = unicodeScalars.prefix(limit).map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Equality octet by octet (RFC 7519 section 7.3), where `==` would take Unicode's canonically equivalent texts for equal.
    package func hasSameOctets(as other: String) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}
