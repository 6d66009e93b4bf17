// The possible defects of an address field, and the severity of each.

/// A departure of an address field from the syntax that RFC 5322 section 3.4
/// lets programs generate.
package enum AddressDefect: Sendable, Hashable, CaseIterable {
    // MARK: Allowed, but read differently by some programs
    /// A comment, anywhere.
    case comment
    /// A domain literal `[…]`.
    case domainLiteral
    /// A local part in quotes.
    case quotedLocalPart
    /// An address literal that is not in RFC 5321 section 4.1.3, in a domain literal.
    case unknownAddressLiteral

    // MARK: Obsolete (RFC 5322 section 4): must be read, must not be written
    /// A source route `<@a,@b:c@d>`.
    case obsoleteRoute
    /// A local part of several words, at least one of which is quoted or separated from its dot.
    case obsoleteLocalPart
    /// White space or a comment around `@` or the dots of a domain.
    case obsoleteDomain
    /// A dot outside quotes in a display name.
    case dotInPhrase
    /// Nothing between two commas, or at the beginning or end of the list.
    case emptyElement
    /// A fold with only white space in its continuation.
    case obsoleteFold
    /// A control character (not NUL, CR or LF) in a quoted string or comment, or a
    /// quoted pair of one of these.
    case obsoleteText
    /// A backslash in a domain literal.
    case obsoleteDomainLiteral

    // MARK: Invalid: no grammar allows it
    /// A phrase without an address.
    case phraseWithoutAddress
    /// `<>` or an empty local part or domain.
    case emptyAddress
    /// Two addresses without a comma between them, or a second `<…>` in one element.
    case missingSeparator
    /// Text before or after the address that is neither display name nor comment.
    case trailingText
    /// A quoted string that does not end; its `"` is read as an ordinary character.
    case unterminatedQuote
    /// A comment that does not end; its `(` is read as an ordinary character.
    case unterminatedComment
    /// `<` without `>`.
    case unterminatedAngle
    /// `[` without `]`.
    case unterminatedDomainLiteral
    /// A group without its `;`.
    case unterminatedGroup
    /// `;` outside a group. Read as a comma, since some programs write it so.
    case semicolonSeparator
    /// A group inside a group. Read as if the inner one began after the outer one.
    case nestedGroup
    /// More than one `@` outside quotes in one address.
    case multipleAt
    /// `@` in a display name outside quotes.
    case atInPhrase
    /// An addr-spec that is not a dot-atom, quoted string or domain literal: dots in wrong places,
    /// words without dots, specials.
    case malformedAddrSpec
    /// A special character in a place that does not allow it.
    case strayCharacter
    /// An encoded word in an addr-spec or in place of one.
    case encodedWordInAddress
    /// An encoded word in a quoted string; it is still decoded for the display name.
    case encodedWordInQuotes
    /// NUL.
    case nul
    /// CR or LF that is not a fold, or a fold without CR.
    case bareLineBreak
    /// A control character outside quotes and comments.
    case controlCharacter
    /// Octets of 128 and above that are not well-formed UTF-8.
    case notUTF8
    /// A domain label that begins or ends with a hyphen, is empty, or exceeds 63
    /// octets, or a domain of over 255.
    case invalidDomain

    /// Whether RFC 5322 has a grammar for this, current or obsolete. A list with only such
    /// defects has one meaning.
    package var isLegal: Bool { isCurrent || isObsolete }

    /// Whether the current grammar (RFC 5322 section 3) allows it.
    package var isCurrent: Bool {
        switch self {
        case .comment, .domainLiteral, .quotedLocalPart, .unknownAddressLiteral: true
        default: false
        }
    }

    /// Whether only the obsolete grammar (RFC 5322 section 4) allows it.
    package var isObsolete: Bool {
        switch self {
        case .obsoleteRoute, .obsoleteLocalPart, .obsoleteDomain, .dotInPhrase, .emptyElement,
            .obsoleteFold, .obsoleteText,
            .obsoleteDomainLiteral:
            true
        default: false
        }
    }
}
