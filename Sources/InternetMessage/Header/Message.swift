// A message divided into header section and body (RFC 5322 section 2.1), with its raw bytes kept.

/// A defect in the lines of a header section. None of them stops the parser.
package enum MessageDefect: Sendable, Hashable, CaseIterable {
    /// A line of the header section has no colon. It is kept as a field with an empty name; some
    /// programs end the header there.
    case lineWithoutColon
    /// A field has nothing before its colon.
    case emptyName
    /// A field name contains a character that is not printable ASCII (RFC 5322 section 2.2), except
    /// 8-bit.
    case invalidName
    /// A field name contains an octet of 128 or above.
    case eightBitName
    /// White space between field name and colon (obsolete, RFC 5322 section 4.5).
    case spaceBeforeColon
    /// The first line begins with white space: a continuation without a field.
    case leadingContinuation
    /// A line of only white space continues a field (obs-FWS). Some programs take it for the end of
    /// the header.
    case whiteSpaceOnlyLine
    /// NUL in the header section.
    case nul
    /// CR without a following LF.
    case bareCR
    /// LF without a preceding CR. It counts as a line break.
    case bareLF
    /// Another control character, except tab.
    case controlCharacter
    /// An octet of 128 or above in a value that is not well-formed UTF-8 (RFC 6532).
    case notUTF8
    /// A line of more than 998 octets (RFC 5322 section 2.1.1).
    case longLine
    /// The last line of the header section has no line break.
    case unterminatedLine
}

/// A message as bytes, its parsed header section, and the start of its body. Bytes are shared, not
/// copied.
package struct Message: Sendable {
    /// The whole message.
    package let bytes: [UInt8]
    /// The header section.
    package let header: HeaderSection
    /// Index in `bytes` just after the header section, before the empty line. The fields come from
    /// the octets before it.
    package let headerEnd: Int
    /// Index in `bytes` of the first octet after the empty line; `bytes.count` if there is none.
    package let bodyStart: Int
    /// The defects of the header section.
    package let defects: Set<MessageDefect>

    /// The body, indices as in `bytes`.
    package var body: ArraySlice<UInt8> { bytes[bodyStart...] }

    /// Divides a message at its first empty line. CRLF and bare LF end lines, also mixed (reported
    /// as `.bareLF`); CR alone does not. Never fails; takes linear time.
    package static func parse(_ bytes: [UInt8]) -> Message {
        let parsed = HeaderSection.parse(bytes[...])
        return Message(
            bytes: bytes, header: parsed.header, headerEnd: parsed.headerEnd,
            bodyStart: parsed.bodyStart, defects: parsed.defects
        )
    }
}
