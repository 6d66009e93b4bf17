// Comparing texts octet by octet, and making them safe to show.

extension String {
    /// Whether the text has no control character.
    package var hasNoControls: Bool { unicodeScalars.allSatisfy { $0.properties.generalCategory != .control } }

    /// The text for a terminal: control characters replaced, cut after `limit` characters.
    package func withoutControls(limit: Int) -> String {
        let scalars = unicodeScalars.prefix(limit).map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }
        return String(String.UnicodeScalarView(scalars))
    }

    /// Equality octet by octet (RFC 7519 section 7.3); `==` would treat canonically equivalent Unicode texts as equal.
    package func hasSameOctets(as other: String) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }
}
