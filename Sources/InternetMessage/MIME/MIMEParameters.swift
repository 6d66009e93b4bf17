// Parameters of Content-Type and Content-Disposition (RFC 2045 section 5.1, RFC 2231) as values.

import Support

/// A defect of a Content-Type, Content-Disposition or its parameters. All of these are tolerated.
package enum ParameterDefect: Sendable, Hashable, CaseIterable {
    /// The field has no value, or no `type/subtype`. RFC 2045 section 5.2 then means text/plain.
    case invalidValue
    /// A comment.
    case comment
    /// A parameter occurs twice; the first one counts.
    case duplicate
    /// A parameter occurs plain and in RFC 2231 form; the latter counts.
    case plainAndExtended
    /// A parameter without `=` or without a name; skipped.
    case malformed
    /// A parameter with an empty value.
    case emptyValue
    /// A value that is not a token or a quoted string: special characters or spaces without quotes.
    case unquotedSpecials
    /// A quoted string without its end.
    case unterminatedQuote
    /// A comment without its end.
    case unterminatedComment
    /// Two parameters without `;` between them.
    case missingSemicolon
    /// Text after a value; skipped.
    case trailingText
    /// No parameter between two semicolons; a single semicolon at the end is not reported.
    case emptyParameter
    /// RFC 2231: `%` without two hexadecimal digits; kept.
    case invalidPercent
    /// RFC 2231: the numbers of the sections are not 0, 1, 2, …; those present are joined in order.
    case sectionGap
    /// RFC 2231: an extended value without its two apostrophes; read without charset.
    case missingCharset
    /// The charset is unknown or the octets do not decode in it.
    case undecodable
    /// An encoded word (RFC 2047 section 5 forbids it here); it is still decoded in `value`.
    case encodedWord
    /// An octet of 128 or above.
    case rawEightBit
    /// NUL or another control character.
    case controlCharacter
    /// More parameters or sections than `MIMEParameters.maximumCount`; the rest was not read.
    case tooMany
}

/// One parameter after unquoting, percent decoding and joining of its sections.
package struct MIMEParameter: Sendable, Hashable {
    /// The name in lower case, without RFC 2231's asterisks.
    package var name: WireText
    /// The value's octets, in `charset` if that is given.
    package var bytes: [UInt8]
    /// Lower-case charset of an extended value; nil for a plain one.
    package var charset: String?
    /// Language of an extended value, if not empty.
    package var language: String?

    package init(name: WireText, bytes: [UInt8], charset: String? = nil, language: String? = nil) {
        self.name = name
        self.bytes = bytes
        self.charset = charset
        self.language = language
    }

    /// The value as text: decoded from its charset, else read as UTF-8; encoded words in a
    /// plain value are decoded.
    package var value: String {
        if let charset, let decoded = Charset.decode(bytes, charset) { return decoded }
        return charset == nil
            ? EncodedWord.decode(bytes[...]) : String(decoding: bytes, as: UTF8.self)
    }
}

/// An ordered list of parameters with distinct names.
package struct MIMEParameters: Sendable, Hashable {
    /// Maximum parameters (and sections of parameters) read from one field. Real fields have a few.
    /// The rest is not read, and that is reported.
    package static let maximumCount = 1000

    package var list: [MIMEParameter]

    package init(_ list: [MIMEParameter] = []) { self.list = list }

    /// The decoded value of a parameter; names compare case-insensitively. Setting nil removes it;
    /// a new name is added at the end.
    package subscript(name: WireText) -> String? {
        get { first(name)?.value }
        set {
            let name = WireText(name.text.asciiLowercased)
            let index = list.firstIndex { $0.name == name }
            guard let newValue else {
                if let index { list.remove(at: index) }
                return
            }
            let isASCII = newValue.utf8.allSatisfy { $0 < 0x80 }
            let parameter = MIMEParameter(
                name: name, bytes: Array(newValue.utf8), charset: isASCII ? nil : "utf-8")
            if let index { list[index] = parameter } else { list.append(parameter) }
        }
    }

    /// The parameter of this name.
    package func first(_ name: WireText) -> MIMEParameter? {
        let name = WireText(name.text.asciiLowercased)
        return list.first { $0.name == name }
    }
}
