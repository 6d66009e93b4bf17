// The kind of each stretch of an outgoing message, as the rewriting reports it. The check proves
// that the map is complete.

import InternetMessage

/// The stretches of a body, in order and without gaps.
package struct StretchMap: Sendable {
    /// The kind of a stretch of a text.
    package enum Kind: UInt8, Sendable {
        /// The user's own words. No address of the user may be in them.
        case typed
        /// Written by the team or a program. No address at all may be in it.
        case neutral
        /// Written by the relay itself: a correspondent, the relay address, an id, a mark. It is
        /// not read.
        case made
    }

    /// A stretch of one text, which begins at the end of the one before.
    package struct Stretch: Sendable, Equatable {
        /// Its end, in octets of the text after decoding of its transfer encoding, and of its
        /// charset if the form has one.
        package var end: Int
        package var kind: Kind

        package init(end: Int, kind: Kind) {
            self.end = end
            self.kind = kind
        }
    }

    /// The encoding of a text.
    package struct Form: Sendable {
        package var encoding: TransferEncoding
        /// The charset that is converted to UTF-8 before stretches are counted. Nil for a superset
        /// of ASCII, in which octets are counted unchanged.
        package var charset: String?
        package var isMarkup: Bool
        /// Whether it is not the text of a part: delimiter lines, header fields, text around parts.
        fileprivate var isStructure = false

        package init(
            encoding: TransferEncoding = .sevenBit, charset: String? = nil, isMarkup: Bool = false
        ) {
            self.encoding = encoding
            self.charset = charset
            self.isMarkup = isMarkup
        }

        fileprivate init(isStructure: Bool) {
            self.init()
            self.isStructure = isStructure
        }
    }

    package enum Content: Sendable {
        /// A text, delimiter lines or header fields of parts. A text of one stretch is completely
        /// of that kind, even if it is damaged.
        case text(Form, [Stretch])
        /// A part that is not rewritten. The number tells the caller which one it is.
        case file(TransferEncoding, number: Int)
        /// A picture without its metadata. It is not read.
        case picture
        /// An encoded attached message, with the map of its decoded octets.
        case message(TransferEncoding, StretchMap)
    }

    package struct Piece: Sendable {
        /// Its end, in octets of the body.
        package var end: Int
        package var content: Content

        package init(end: Int, content: Content) {
            self.end = end
            self.content = content
        }
    }

    package private(set) var pieces: [Piece] = []

    package init() {}

    /// The end of the last piece.
    package var end: Int { pieces.last?.end ?? 0 }

    /// Adds content of this many octets.
    package mutating func append(_ count: Int, _ content: Content) {
        pieces.append(Piece(end: end + count, content: content))
    }

    /// Adds the pieces of another map after the own ones.
    package mutating func append(_ other: StretchMap) {
        let start = end
        pieces += other.pieces.map { Piece(end: start + $0.end, content: $0.content) }
    }
}

extension [StretchMap.Stretch] {
    /// Adds a stretch of this many octets; one of the same kind continues the last one.
    package mutating func append(_ count: Int, _ kind: StretchMap.Kind) {
        guard count > 0 else { return }
        if let last, last.kind == kind {
            self[self.count - 1].end += count
        } else {
            append(StretchMap.Stretch(end: (last?.end ?? 0) + count, kind: kind))
        }
    }
}

extension StretchMap {
    /// Adds lines of this many octets that are not the text of a part.
    package mutating func append(_ count: Int, _ kind: Kind) {
        guard count > 0 else { return }
        if case .text(let form, let stretches)? = pieces.last?.content, form.isStructure,
            stretches.count == 1,
            stretches[0].kind == kind
        {
            pieces[pieces.count - 1].end += count
            pieces[pieces.count - 1].content = .text(
                form, [Stretch(end: stretches[0].end + count, kind: kind)])
        } else {
            append(count, .text(Form(isStructure: true), [Stretch(end: count, kind: kind)]))
        }
    }

    /// A map of one piece.
    package init(_ count: Int, _ content: Content) {
        self.init()
        append(count, content)
    }
}
