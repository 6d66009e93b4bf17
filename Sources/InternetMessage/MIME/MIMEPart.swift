// The tree of a MIME message: headers parsed, bodies as ranges of the raw octets (RFC 2045, 2046,
// 6532).

/// A defect of a MIME entity, or a construct in which two programs see different parts.
package enum MIMEDefect: Sendable, Hashable, CaseIterable {
    /// More than one Content-Type; the first counts.
    case duplicateContentType
    /// More than one Content-Transfer-Encoding; the first counts.
    case duplicateTransferEncoding
    /// More than one Content-Disposition; the first counts.
    case duplicateDisposition
    /// Content-Type has no type and subtype; text/plain is assumed.
    case invalidContentType
    /// The boundary parameter occurs more than once, or plain and extended. Other programs may see
    /// other parts.
    case ambiguousBoundaryParameter
    /// multipart without a boundary parameter, or with an empty one: kept as one opaque body.
    case missingBoundary
    /// The boundary has over 70 characters, ends in a space, or contains characters that RFC 2046
    /// section 5.1.1 does not allow. It is still used.
    case invalidBoundary
    /// The multipart's boundary never occurs, so its body is one preamble.
    case noParts
    /// The closing boundary is missing. The last part ends at the end of the enclosing one.
    case missingClosingBoundary
    /// A delimiter line fits more than one open multipart (the same boundary, or one with `--` at
    /// its end). It is used for the innermost.
    case ambiguousDelimiter
    /// A line begins with a delimiter but continues. RFC 2046 allows readers to treat it as a
    /// delimiter. Here, as in most programs, it is text.
    case delimiterPrefix
    /// The boundary occurs after the closing delimiter, in the epilogue. Some programs read more
    /// parts there.
    case delimiterInEpilogue
    /// A multipart or message with an encoding other than 7bit, 8bit or binary (RFC 2045 section
    /// 6.4 forbids it). The multipart is read as if it had none; the message is left opaque.
    case encodedComposite
    /// The part ends within its header section: no empty line, no body. RFC
    /// 2046 section 5.1 allows it.
    case unterminatedHeader
    /// The header section of a part or nested message has its own defects (`headerDefects`).
    case malformedHeader
    /// Nested deeper than `MIMEPart.maximumDepth`: left opaque.
    case tooDeep
    /// More than `MIMEPart.maximumPartCount` parts: the last part's body runs to the end of the
    /// message. Reported at the root.
    case tooManyParts
    /// The transfer encoding has an unknown name.
    case unknownTransferEncoding
}

/// A MIME entity: the message itself, or a part at any depth. Bodies are not copied; all ranges are
/// indices of the parsed slice.
package struct MIMEPart: Sendable {
    /// Maximum levels of multipart and message nesting that are parsed; real mail has fewer than
    /// ten. Deeper levels are opaque (`.tooDeep`).
    package static let maximumDepth = 32
    /// Maximum parts in the whole tree, to limit memory; real mail has dozens. Beyond it, the last
    /// part contains the rest (`.tooManyParts`).
    package static let maximumPartCount = 10_000
    /// Maximum octets of a part's header section that are kept if a body comes in pieces; real ones
    /// have a few hundred. Reading stops at a longer one (`MIMEStop`).
    package static let maximumHeaderSize = 262_144
    /// Maximum octets of a line that are kept until it is known whether the line is a delimiter, if
    /// a body comes in pieces. A boundary has at most 70 characters. Reading stops at a longer
    /// delimiter (`MIMEStop`).
    package static let maximumDelimiterLine = 16_384

    /// The entity's header section. For a message/rfc822 part's only child: that message's header.
    package internal(set) var header: HeaderSection
    /// The range of the header, without the empty line after it; empty at the root, as its header
    /// is given separately.
    package internal(set) var headerRange: Range<Int>
    /// The encoded body, without the line break that belongs to the delimiter after it.
    package internal(set) var bodyRange: Range<Int>
    package internal(set) var contentType: ContentType
    /// Nil if there is no Content-Disposition.
    package internal(set) var disposition: ContentDisposition?
    package internal(set) var transferEncoding: TransferEncoding
    /// Text before the first delimiter of a multipart; nil elsewhere.
    package internal(set) var preamble: Range<Int>?
    /// Text after the closing delimiter of a multipart; nil elsewhere and if there is none.
    package internal(set) var epilogue: Range<Int>?
    /// The parts of a multipart, or the one message in message/rfc822 and message/global.
    package internal(set) var children: [MIMEPart]
    /// Defects of this entity, not those of its children, except that `.tooManyParts` is reported
    /// at the root.
    package internal(set) var defects: Set<MIMEDefect>
    /// Defects of this entity's header section; empty at the root.
    package internal(set) var headerDefects: Set<MessageDefect>
    /// 0 for the root.
    package internal(set) var depth: Int

    /// Whether the body was parsed into children.
    package var isComposite: Bool { !children.isEmpty }

    /// This entity and all below it, in the order of the message. At most `maximumPartCount` and a
    /// few more.
    package var flattened: [MIMEPart] {
        var output = [MIMEPart]()
        func visit(_ part: MIMEPart) {
            output.append(part)
            for child in part.children { visit(child) }
        }
        visit(self)
        return output
    }

    /// Parses a body. Ranges are indices of `body`. Never fails. Takes linear time, times the depth
    /// (at most 32) for lines that begin with `--`.
    package static func parse(header: HeaderSection, body: ArraySlice<UInt8>) -> MIMEPart {
        body.withUnsafeBufferPointer { buffer in
            var parser = MIMEParser(header, base: body.startIndex, visitor: MIMETree())
            _ = parser.take(buffer, at: body.startIndex, isLast: true)
            return parser.root
                ?? MIMEPart(
                    header: header, headerRange: body.startIndex..<body.startIndex,
                    bodyStart: body.startIndex, depth: 0,
                    default: .plainText)
        }
    }

    /// Parses a body; ranges are offsets in it.
    package static func parse(header: HeaderSection, body: [UInt8]) -> MIMEPart {
        parse(header: header, body: body[...])
    }

    /// Parses a message; ranges are indices of `message.bytes`.
    package static func parse(_ message: Message) -> MIMEPart {
        var root = parse(header: message.header, body: message.body)
        root.headerRange = 0..<message.headerEnd
        root.headerDefects = message.defects
        return root
    }

    /// An entity with this header, before its body is read.
    init(
        header: HeaderSection, headerRange: Range<Int>, bodyStart: Int, depth: Int,
        default contentType: ContentType
    ) {
        self.header = header
        self.headerRange = headerRange
        self.depth = depth
        bodyRange = bodyStart..<bodyStart
        children = []
        defects = []
        headerDefects = []
        let types = header.all("Content-Type")
        if types.count > 1 { defects.insert(.duplicateContentType) }
        self.contentType = types.first.map { ContentType.parse($0.rawValue) } ?? contentType
        if self.contentType.defects.contains(.invalidValue) { defects.insert(.invalidContentType) }
        let encodings = header.all("Content-Transfer-Encoding")
        if encodings.count > 1 { defects.insert(.duplicateTransferEncoding) }
        transferEncoding = encodings.first.map { TransferEncoding.parse($0.rawValue) } ?? .sevenBit
        if case .unknown = transferEncoding { defects.insert(.unknownTransferEncoding) }
        let dispositions = header.all("Content-Disposition")
        if dispositions.count > 1 { defects.insert(.duplicateDisposition) }
        disposition = dispositions.first.map { ContentDisposition.parse($0.rawValue) }
    }
}
