// The reasons why a message has no single author address on which every program agrees.

/// The reason why a From is refused. The raw value is a stable code for logs and counters. No text
/// quotes the message.
package enum AuthorDefect: String, Error, Sendable, Hashable, CaseIterable {
    /// No From field.
    case missingFrom
    /// More than one From field.
    case multipleFrom
    /// A field or line that some programs read as From: `From` with control or 8-bit characters or
    /// inner white space in its name, or `From:` after a bare CR or LF in another field.
    case disguisedFrom
    /// White space between `From` and its colon (obsolete).
    case spaceBeforeColon
    /// Only white space and comments.
    case empty
    /// More than one mailbox: `a@b, c@d`.
    case multipleMailboxes
    /// A second address without a comma: `<a@b><c@d>`, `a@b <c@d>` after `>`, `a@b (x) c@d`.
    case missingSeparator
    /// A group (RFC 6854), or a colon or semicolon outside quotes.
    case group
    /// An empty list element: `a@b,`.
    case emptyElement
    /// Unquoted `@` before `<`: `a@b <c@d>`.
    case atInDisplayName
    /// A source route: `<@x:a@b>`.
    case sourceRoute
    /// No `@`, or nothing before or after it.
    case noAddress
    /// More than one `@` in the address.
    case multipleAt
    /// A comment, white space or fold inside the address.
    case whiteSpaceInAddress
    /// A comment that contains specials, encoded words or other comments. A program that does not
    /// recognise comments finds an address there.
    case ambiguousComment
    /// A quoted string, comment, `<` or `[` that does not end.
    case unterminated
    /// Text after the address that is not a comment, or words before an address without `<…>`.
    case strayText
    /// A special character in a place that does not allow it.
    case strayCharacter
    /// An encoded word as the address or within it.
    case encodedWordInAddress
    /// An encoded word (in the display name or in quotes) that cannot be decoded, or whose text
    /// contains control characters or an address with its punctuation.
    case ambiguousEncodedWord
    /// NUL, or another control character; also NEL, and the Unicode line and paragraph separators.
    case controlCharacter
    /// CR or LF that is not a fold, or a fold without CR.
    case bareLineBreak
    /// A fold followed only by white space (obsolete).
    case obsoleteFold
    /// A quoted pair of a character that needs none, or an obsolete one.
    case quotedPair
    /// A domain literal. No mechanism can prove it as the sender.
    case domainLiteral
    /// The local part is quoted and contains specials, has characters that look like `@` or ASCII
    /// letters, or is partly invisible.
    case ambiguousLocalPart
    /// Local part of several words, or dots in wrong places.
    case malformedLocalPart
    /// Not a domain name of letters, digits, hyphens and underscores, or a malformed or
    /// non-canonical internationalised one.
    case invalidDomain
    /// Not well-formed UTF-8.
    case notUTF8
}

extension AuthorDefect {
    /// Whether the defect is outside the address. The octets are sound, and the field may still
    /// have one address.
    var isBesideAddress: Bool {
        switch self {
        case .multipleMailboxes, .emptyElement, .atInDisplayName, .ambiguousComment, .strayText,
            .strayCharacter,
            .ambiguousEncodedWord, .quotedPair, .group:
            true
        default: false
        }
    }
}

extension AuthorDefect: CustomStringConvertible {
    package var description: String {
        switch self {
        case .missingFrom: "no From field"
        case .multipleFrom: "more than one From field"
        case .disguisedFrom: "a header line that some programs would take for a From field"
        case .spaceBeforeColon: "white space before the colon of From"
        case .empty: "empty From field"
        case .multipleMailboxes: "more than one address in From"
        case .missingSeparator: "two addresses without a comma in From"
        case .group: "a group in From"
        case .emptyElement: "an empty list element in From"
        case .atInDisplayName: "an unquoted @ in the display name of From"
        case .sourceRoute: "a source route in From"
        case .noAddress: "no address in From"
        case .multipleAt: "more than one @ in the address of From"
        case .whiteSpaceInAddress: "white space or a comment inside the address of From"
        case .ambiguousComment: "a comment in From that could be read as an address"
        case .unterminated: "an unterminated quote, comment or bracket in From"
        case .strayText: "text next to the address of From"
        case .strayCharacter: "a special character out of place in From"
        case .encodedWordInAddress: "an encoded word in the address of From"
        case .ambiguousEncodedWord:
            "an encoded word in From that could be read as an address or does not decode"
        case .controlCharacter: "a control character in From"
        case .bareLineBreak: "a bare line break in From"
        case .obsoleteFold: "an empty continuation line in From"
        case .quotedPair: "a needless or obsolete quoted pair in From"
        case .domainLiteral: "a domain literal in From"
        case .ambiguousLocalPart: "an ambiguous local part in From"
        case .malformedLocalPart: "a malformed local part in From"
        case .invalidDomain: "an invalid domain in From"
        case .notUTF8: "octets in From that are not UTF-8"
        }
    }
}
