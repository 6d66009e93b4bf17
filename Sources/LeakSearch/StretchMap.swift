// What each stretch of an outgoing message is, as the rewriting hands it over. The check proves that nothing is left out.

import InternetMessage

/// The stretches of a body, in order and without gaps.
package struct StretchMap: Sendable {
    /// What a stretch of a text is.
    package enum Kind: UInt8, Sendable {
        /// The user's own words: no address of the user may be in them.
        case typed
        /// What the team or a program wrote: no address at all may be in it.
        case neutral
        /// Written by the relay itself: a correspondent, the relay address, an id, a mark. It is not read.
        case made
    }

    /// A stretch of one text, from the end of the one before.
    package struct Stretch: Sendable, Equatable {
        /// Where it ends, in octets of the text: its transfer encoding is decoded, and its charset where the form has one.
        package var end: Int
        package var kind: Kind

        package init(end: Int, kind: Kind) {
            self.end = end
            self.kind = kind
        }
    }

    /// How a text is written.
    package struct Form: Sendable {
        package var encoding: TransferEncoding
        /// By which octets become UTF-8 before stretches are counted; nil where ASCII is ASCII, and octets are counted as they
        /// are.
        package var charset: String?
        package var isMarkup: Bool
        /// Whether it is no part's text: delimiter lines, header fields, what is around parts.
        fileprivate var isStructure = false

        package init(encoding: TransferEncoding = .sevenBit, charset: String? = nil, isMarkup: Bool = false) {
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
        /// A text, delimiter lines or header fields of parts. A text of one stretch is that as a whole, also if it is damaged.
        case text(Form, [Stretch])
        /// A part that is not rewritten; the number is for the caller, to say which one.
        case file(TransferEncoding, number: Int)
        /// A picture without its metadata: it is not read.
        case picture
        /// An encoded attached message, with the map of what it decodes to.
        case message(TransferEncoding, StretchMap)
    }

    package struct Piece: Sendable {
        /// Where it ends, in octets of the body.
        package var end: Int
        package var content: Content

        package init(end: Int, content: Content) {
            self.end = end
            self.content = content
        }
    }

    package private(set) var pieces: [Piece] = []

    package init() {}

    /// Where the last piece ends.
    package var end: Int { pieces.last?.end ?? 0 }

    /// Adds what follows, of this many octets.
    package mutating func append(_ count: Int, _ content: Content) { pieces.append(Piece(end: end + count, content: content)) }

    /// Adds the pieces of another map behind the own ones.
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
    /// Adds lines of this many octets that are no part's text.
    package mutating func append(_ count: Int, _ kind: Kind) {
        guard count > 0 else { return }
        if case .text(let form, let stretches)? = pieces.last?.content, form.isStructure, stretches.count == 1,
            stretches[0].kind == kind
        {
            pieces[pieces.count - 1].end += count
            pieces[pieces.count - 1].content = .text(form, [Stretch(end: stretches[0].end + count, kind: kind)])
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
