// Decodes a text body from its transfer encoding and charset, and encodes it again, with all
// other octets unchanged.

import InternetMessage
import LeakSearch
import Support

enum TextCoding {
    enum Outcome {
        case unchanged
        /// The new encoded body; charset and transfer encoding are set if they could not be kept.
        case changed([UInt8], charset: String?, encoding: TransferEncoding?)
        /// It contains a name that cannot be replaced; the text says why.
        case impossible(String)
        /// Not text.
        case opaque
    }

    /// Defects that still leave only one way to decode the body.
    static let harmless: Set<TransferDefect> = [
        .trailingWhiteSpace, .lowercaseEscape, .longLine, .rawOctet, .trailingSoftBreak,
        .invalidEscape, .incompleteGroup,
        .nonZeroPaddingBits,
    ]

    /// A decoded text of a reply, the origin of each stretch, and its edits.
    struct Reading {
        let utf8: [UInt8]
        let stretches: Stretches
        var edits: [TextEdit] = []

        /// The typed text as it is sent, without correspondents, which are sent in any case.
        var typed: [[UInt8]] {
            let text = edits.applied(to: utf8)
            var made: [Range<Int>] = []
            var shift = 0
            for edit in edits {
                let start = edit.range.lowerBound + shift
                if edit.isMade { made.append(start..<(start + edit.replacement.count)) }
                shift += edit.replacement.count - edit.range.count
            }
            var typed: [[UInt8]] = []
            var next = made[...]
            stretches.moved(by: edits).forEach(upTo: text.count) { range, standing in
                guard standing.isTyped else { return }
                var start = range.lowerBound
                while let first = next.first, first.lowerBound < range.upperBound {
                    if first.lowerBound > start {
                        typed.append(Array(text[start..<first.lowerBound]))
                    }
                    start = max(start, first.upperBound)
                    next.removeFirst()
                }
                if start < range.upperBound { typed.append(Array(text[start..<range.upperBound])) }
            }
            return typed
        }

        /// The kind of each stretch of the text, as it is sent.
        var kinds: [StretchMap.Stretch] {
            var kinds: [StretchMap.Stretch] = []
            var (position, next) = (0, edits[...])
            stretches.forEach(upTo: utf8.count) { range, standing in
                let kind = standing.isTyped ? StretchMap.Kind.typed : .neutral
                position = max(position, range.lowerBound)
                while let edit = next.first, edit.range.lowerBound < range.upperBound {
                    next.removeFirst()
                    guard edit.range.lowerBound >= position else { continue }
                    kinds.append(edit.range.lowerBound - position, kind)
                    kinds.append(edit.replacement.count, edit.isMade ? .made : kind)
                    position = edit.range.upperBound
                }
                kinds.append(range.upperBound - position, kind)
            }
            for edit in next { kinds.append(edit.replacement.count, edit.isMade ? .made : .typed) }
            return kinds
        }

        /// Whether it shows nothing to a reader.
        func isBlank(_ syntax: TextSyntax) -> Bool {
            guard syntax == .markup else { return utf8.allSatisfy { $0 <= 0x20 } }
            return utf8.withUnsafeBufferPointer { Elements($0).text.allSatisfy { $0 <= 0x20 } }
        }

        /// The number of letters and digits in typed text, without tags.
        func typedLetters(_ syntax: TextSyntax) -> Int {
            var letters = 0
            stretches.forEach(upTo: utf8.count) { range, standing in
                guard standing.isTyped else { return }
                var isInTag = false
                for octet in utf8[range] {
                    switch octet {
                    case UInt8(ascii: "<") where syntax == .markup: isInTag = true
                    case UInt8(ascii: ">") where isInTag: isInTag = false
                    default:
                        if !isInTag, octet.isASCIIAlphanumeric || octet >= 0x80 { letters += 1 }
                    }
                }
            }
            return letters
        }
    }

    /// A text in its place.
    /// - Parameter isNeutral: whether typed text is treated like quoted text.
    static func read(
        _ decoded: DecodedText, part: MIMEPart, place: TextPlace, isNeutral: Bool = false
    ) -> Reading {
        let utf8 = readable(decoded.bytes, part: part)
        let stretches = stretches(of: utf8, part: part, place: place)
        return Reading(utf8: utf8, stretches: isNeutral ? stretches.neutral : stretches)
    }

    private static func stretches(of utf8: [UInt8], part: MIMEPart, place: TextPlace) -> Stretches {
        if PartKind.isHeaderFields(part.contentType) { return ReportFields.stretches(of: utf8) }
        guard place == .body else { return Stretches(utf8, syntax: .plain, place: place) }
        if PartKind.isWrittenByProgram(part.contentType) { return Stretches(.program) }
        // A card, or a calendar that is not an answer, is the user's own.
        if PartKind.isContentLines(part) { return Stretches(.typed) }
        return Stretches(utf8, syntax: PartKind.syntax(part.contentType), place: .body)
    }

    /// The outgoing content of a text, with the kind of each stretch.
    /// - Parameters:
    ///   - body: as it is sent.
    ///   - charset: a new one, which is a superset of ASCII.
    ///   - encoding: a new one.
    static func content(
        of part: MIMEPart, in body: ArraySlice<UInt8>, _ reading: Reading, charset: String? = nil,
        encoding: TransferEncoding? = nil
    ) -> StretchMap.Content {
        var form = StretchMap.Form(
            encoding: encoding ?? part.transferEncoding,
            isMarkup: PartKind.syntax(part.contentType) == .markup)
        if form.encoding.decode([]) == nil { form.encoding = .binary }
        if charset == nil, let decoded = form.encoding.decode(body)?.bytes,
            case .other(let label) = Family(part.contentType.charset, bytes: decoded)
        {
            form.charset = label
        }
        return .text(form, fitted(reading.kinds, to: body, form))
    }

    /// Stretches of a text, adjusted to the line break at the end of the sent body. One stretch
    /// covers all of it.
    static func fitted(
        _ kinds: [StretchMap.Stretch], to body: ArraySlice<UInt8>, _ form: StretchMap.Form
    ) -> [StretchMap.Stretch] {
        guard let last = kinds.last else { return [StretchMap.Stretch(end: 0, kind: .made)] }
        guard kinds.count > 1, var decoded = form.encoding.decode(body)?.bytes else { return kinds }
        if let charset = form.charset, let text = Charset.decode(decoded, charset) {
            decoded = Array(text.utf8)
        }
        var fitted = kinds
        let difference = decoded.count - last.end
        if difference > 0, difference <= 2 { fitted[fitted.count - 1].end = decoded.count }
        while difference < 0, difference >= -2, let end = fitted.last?.end, end > decoded.count {
            let previous = fitted.count > 1 ? fitted[fitted.count - 2].end : 0
            if previous < decoded.count {
                fitted[fitted.count - 1].end = decoded.count
            } else {
                fitted.removeLast()
            }
        }
        return fitted
    }

    /// - Parameter reading: receives the edits.
    static func rewrite(
        _ decoded: DecodedText, part: MIMEPart, place: TextPlace, _ reading: inout Reading,
        with text: TextRewriter
    ) -> Outcome {
        let known = reading
        var found: [TextEdit]?
        let outcome = rewrite(
            decoded, part: part, in: known.stretches,
            isLeft: {
                !edits($0, part: part, in: stretches(of: $0, part: part, place: place), with: text)
                    .isEmpty
            }
        ) { utf8 in
            let isKnown = utf8 == known.utf8
            let edits = edits(
                utf8, part: part,
                in: isKnown ? known.stretches : stretches(of: utf8, part: part, place: place),
                with: text)
            if isKnown, found == nil { found = edits }
            return edits
        }
        reading.edits = found ?? []
        return outcome
    }

    /// - Parameters:
    ///   - stretches: damage in text that was not typed does not cause a refusal; that text is
    ///     written again as it was read.
    ///   - isLeft: whether another reading of an edited text still contains something to replace.
    ///   - find: finds what must be replaced in a text in UTF-8 or another superset of ASCII; in
    ///     order, without overlaps.
    static func rewrite(
        _ decoded: DecodedText, part: MIMEPart, in stretches: Stretches = Stretches(.typed),
        isLeft: ([UInt8]) -> Bool = { _ in false }, finding find: ([UInt8]) -> [TextEdit]
    ) -> Outcome {
        let isDamaged = !decoded.defects.isSubset(of: harmless)
        // Decoders differ about base64url, so that the text leaves in base64, changed or not.
        let isWrittenAgain =
            isDamaged && decoded.defects.isSubset(of: harmless.union([.otherAlphabet]))
        let isTyped = stretches.isTyped
        func breaks(_ edits: [TextEdit], _ text: [UInt8]) -> Bool {
            let typed =
                isTyped
                ? edits : edits.filter { stretches.standing(at: $0.range.lowerBound).isTyped }
            return ArmouredBlocks.hold(typed, in: text)
        }
        switch Family(part.contentType.charset, bytes: decoded.bytes) {
        case .ascii:
            let edits = find(decoded.bytes)
            if isWrittenAgain, !breaks(edits, decoded.bytes) {
                return encoded(
                    edits.applied(to: decoded.bytes), like: decoded, part: part, charset: nil)
            }
            if edits.isEmpty, isTyped || !isDamaged { return .unchanged }
            if isDamaged, isTyped { return .impossible("damaged \(part.transferEncoding.name)") }
            if breaks(edits, decoded.bytes) { return .impossible(ArmouredBlocks.name) }
            if isDamaged {
                return encoded(
                    edits.applied(to: decoded.bytes), like: decoded, part: part, charset: nil)
            }
            return splice(edits, into: decoded, part: part)
        case .other(let charset):
            guard let reading = Charset.decodeCheckingLoss(decoded.bytes, charset) else {
                return .opaque
            }
            let plain = reading.text
            let utf8 = Array(plain.utf8)
            let edits = find(utf8)
            if isWrittenAgain, !breaks(edits, utf8) {
                return encoded(edits.applied(to: utf8), like: decoded, part: part, charset: "utf-8")
            }
            if edits.isEmpty, isTyped || !isDamaged && reading.isLossless { return .unchanged }
            if isDamaged, isTyped { return .impossible("damaged \(part.transferEncoding.name)") }
            if breaks(edits, utf8) { return .impossible(ArmouredBlocks.name) }
            if !isTyped, isDamaged || !reading.isLossless {
                return encoded(edits.applied(to: utf8), like: decoded, part: part, charset: "utf-8")
            }
            return recode(
                edits, utf8: utf8, decoded: decoded, charset: charset,
                isDecodable: reading.isLossless, part: part, finding: find)
        case .unknown(let charset, let isSuperset):
            let edits = find(decoded.bytes)
            // The meaning of the octets is known only if they are written like ASCII and mean
            // nothing else in any other reading.
            guard UnknownCharset.isLikeASCII(decoded.bytes),
                !UnknownCharset.readings(of: edits.applied(to: decoded.bytes)).contains(
                    where: isLeft)
            else { return .impossible("text in an unknown charset") }
            if edits.isEmpty { return .unchanged }
            guard !isDamaged, isSuperset || decoded.bytes.allSatisfy({ $0 < 0x80 }) else {
                return .impossible("unknown charset \(charset)")
            }
            return splice(edits, into: decoded, part: part)
        }
    }

    /// A text in UTF-8 or another superset of ASCII, in the form that `rewrite` reads.
    /// - Parameter decoded: from the transfer encoding.
    static func readable(_ decoded: [UInt8], part: MIMEPart) -> [UInt8] {
        guard case .other(let charset) = Family(part.contentType.charset, bytes: decoded),
            let read = Charset.decode(decoded, charset)
        else {
            return decoded
        }
        return Array(read.utf8)
    }

    /// An opaque part with text as its content; nil if the content is not text.
    static func disguised(_ raw: ArraySlice<UInt8>, encoding: TransferEncoding) -> DecodedText? {
        // A program that does not know an encoding shows the octets unchanged.
        let decoded = encoding.decode(raw) ?? DecodedText(identity: raw)
        guard decoded.defects.isSubset(of: harmless), decoded.bytes.isValidUTF8,
            !decoded.bytes.contains(where: \.isForbiddenControl)
        else { return nil }
        return decoded
    }

    /// Rewrites such a part; nil if it needs no edit.
    static func rewriteDisguised(
        _ decoded: DecodedText, _ reading: inout Reading, with text: TextRewriter
    ) -> [UInt8]? {
        reading.edits = text.edits(decoded.bytes, syntax: .plain, in: reading.stretches)
        if ContentLines.begin(decoded.bytes) {
            reading.edits = lines(
                reading.edits, decoded.bytes, syntax: .plain, in: reading.stretches, with: text)
        }
        return reading.edits.isEmpty ? nil : encode(reading.edits, into: decoded)
    }

    /// Replaces a complete text by another, in UTF-8.
    static func replaced(by text: [UInt8], _ decoded: DecodedText, part: MIMEPart) -> Outcome {
        encoded(text, like: decoded, part: part, charset: "utf-8")
    }

    private static func edits(
        _ bytes: [UInt8], part: MIMEPart, in stretches: Stretches, with text: TextRewriter
    ) -> [TextEdit] {
        let syntax = PartKind.syntax(part.contentType)
        let removals = ArmouredBlocks(bytes, isMarkup: syntax == .markup, in: stretches).removals
        let found = found(bytes, part: part, syntax: syntax, in: stretches, with: text)
        let edits = removals.isEmpty ? found : (found + removals).reconciled
        if PartKind.isHeaderFields(part.contentType) {
            return ReportFields.edits(
                bytes, adding: edits, isOfMessage: !PartKind.isReport(part.contentType), text: text)
        }
        guard PartKind.isContentLines(part) || ContentLines.begin(bytes) else { return edits }
        let folded = lines(edits, bytes, syntax: syntax, in: stretches, with: text)
        let keys = PartKind.isVCard(part.contentType) ? ContentLines.keys(in: bytes) : []
        return keys.isEmpty ? folded : (folded + keys).reconciled
    }

    /// Adds the edits of content lines with words that a fold divides. Changed lines are folded
    /// again.
    private static func lines(
        _ edits: [TextEdit], _ bytes: [UInt8], syntax: TextSyntax, in stretches: Stretches,
        with text: TextRewriter
    ) -> [TextEdit] {
        let all =
            (edits
            + ContentLines.unfoldedEdits(of: bytes) {
                text.edits($0, syntax: syntax, in: stretches)
            }).reconciled
        return all.isEmpty ? [] : ContentLines.refolding(all, in: bytes)
    }

    /// The edits of a text as its reader sees it: lines without the breaks that programs inserted.
    private static func found(
        _ bytes: [UInt8], part: MIMEPart, syntax: TextSyntax, in stretches: Stretches,
        with text: TextRewriter
    ) -> [TextEdit] {
        let breaks = softBreaks(bytes, part)
        if breaks.isEmpty { return text.edits(bytes, syntax: syntax, in: stretches) }
        let joined = ContentLines.Unfolded(bytes, without: breaks)
        let moved = stretches.moved(by: breaks.map { TextEdit(range: $0, replacement: []) })
        return text.edits(joined.octets, syntax: syntax, in: moved).map {
            $0.range.isEmpty ? $0 : joined.folded($0)
        }
    }

    /// The breaks of a flowed text that do not belong to it (RFC 3676 section 4.2, DelSp), outside
    /// of quotations.
    private static func softBreaks(_ bytes: [UInt8], _ part: MIMEPart) -> [Range<Int>] {
        guard part.contentType.matches("text", "plain"),
            let flag = part.contentType.parameters["delsp"],
            Array(flag.utf8).equalsIgnoringASCIICase("yes".utf8)
        else { return [] }
        var breaks: [Range<Int>] = []
        var line = 0
        for end in bytes.indices where bytes[end] == 0x0A {
            let last = end > line && bytes[end - 1] == 0x0D ? end - 1 : end
            let isSignature = bytes[line..<last].elementsEqual("-- ".utf8)
            let next = end + 1 < bytes.count ? bytes[end + 1] : 0x0A
            if last > line, bytes[last - 1] == 0x20, bytes[line] != UInt8(ascii: ">"), !isSignature,
                next != UInt8(ascii: ">"),
                next != 0x0A, next != 0x0D
            {
                breaks.append((last - 1)..<(end + 1))
            }
            line = end + 1
        }
        return breaks
    }

    // MARK: Charsets

    /// Whether every ASCII octet means itself in a charset.
    static func isLikeASCII(_ charset: String?) -> Bool {
        if case .ascii = Family(charset, bytes: []) { true } else { false }
    }

    /// How the octets of a charset relate to ASCII.
    private enum Family {
        /// Every ASCII octet means itself, and no other octet does.
        case ascii
        /// Must be decoded first.
        case other(String)
        /// An unknown label, and whether it begins like the labels of supersets of ASCII.
        case unknown(String, isSuperset: Bool)

        init(_ label: String?, bytes: [UInt8]) {
            let name = label.flatMap { $0.isEmpty ? nil : $0 } ?? "us-ascii"
            if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
                self = .other(
                    name.hasPrefix("utf-16") || name.hasPrefix("utf-32") ? name : "utf-16")
            } else if Self.isSuperset(name) {
                // Non-ASCII characters may belong to a name, or be invisible within one, and must
                // be read correctly.
                let isPlain =
                    name.hasPrefix("utf-8") || name.hasPrefix("utf8")
                    || !bytes.contains { $0 >= 0x80 } || bytes.isValidUTF8
                if let wide = Self.wide(bytes) {
                    self = .other(wide)
                } else {
                    self =
                        isPlain
                        ? .ascii
                        : Charset.isKnown(name)
                            ? .other(name) : .unknown(String(name.prefix(40)), isSuperset: true)
                }
            } else if Charset.isKnown(name) {
                self = .other(name)
            } else {
                self =
                    Self.wide(bytes).map { .other($0) }
                    ?? .unknown(String(name.prefix(40)), isSuperset: false)
            }
        }

        /// UTF-16 under another name: nearly every second octet is NUL.
        private static func wide(_ bytes: [UInt8]) -> String? {
            let sample = min(bytes.count, 2_000) / 2
            guard sample >= 8, bytes.count % 2 == 0, bytes[0] == 0 || bytes[1] == 0 else {
                return nil
            }
            var nuls = (0, 0)
            for index in 0..<sample {
                if bytes[2 * index] == 0 { nuls.0 += 1 }
                if bytes[2 * index + 1] == 0 { nuls.1 += 1 }
            }
            if nuls.1 * 10 >= sample * 9, nuls.0 == 0 { return "utf-16le" }
            return nuls.0 * 10 >= sample * 9 && nuls.1 == 0 ? "utf-16be" : nil
        }

        private static func isSuperset(_ name: String) -> Bool {
            let prefixes = [
                "utf-8", "utf8", "us-ascii", "ascii", "ansi_x3.4", "iso-8859-", "iso8859",
                "iso_8859", "latin", "windows-125",
                "windows-874",
                "cp125", "win-125", "x-cp125", "koi8", "euc-", "x-euc", "tis-620", "macintosh",
                "x-mac", "unknown-8bit",
                "x-unknown", "8bit", "default",
            ]
            return prefixes.contains { name.hasPrefix($0) }
        }
    }

    /// A text in a charset that is not a superset of ASCII. It stays in its charset if that can
    /// express the edits; otherwise it becomes UTF-8.
    private static func recode(
        _ edits: [TextEdit], utf8: [UInt8], decoded: DecodedText, charset: String,
        isDecodable: Bool, part: MIMEPart,
        finding find: ([UInt8]) -> [TextEdit]
    ) -> Outcome {
        let wanted = String(decoding: edits.applied(to: utf8), as: UTF8.self)
        // The octets around a name stay unchanged if the names are in plain ASCII, as in
        // ISO-2022-JP.
        let rawEdits = find(decoded.bytes)
        if !rawEdits.isEmpty, Charset.decode(rawEdits.applied(to: decoded.bytes), charset) == wanted
        {
            return splice(rawEdits, into: decoded, part: part)
        }
        let isWide =
            charset.hasPrefix("utf-16") || charset.hasPrefix("utf16") || charset.hasPrefix("utf-32")
        var mark: [UInt8] = []
        var target = charset
        if isWide, charset == "utf-16" || charset == "utf16" {
            if decoded.bytes.starts(with: [0xFF, 0xFE]) {
                mark = [0xFF, 0xFE]
                target = "utf-16le"
            } else {
                if decoded.bytes.starts(with: [0xFE, 0xFF]) { mark = [0xFE, 0xFF] }
                target = "utf-16be"
            }
        }
        let plain = mark.isEmpty ? wanted : String(wanted.drop { $0 == "\u{FEFF}" })
        if isDecodable, let bytes = Charset.encode(plain, target) {
            return encoded(mark + bytes, like: decoded, part: part, charset: nil)
        }
        guard isDecodable else { return .impossible("damaged \(charset)") }
        return encoded(Array(wanted.utf8), like: decoded, part: part, charset: "utf-8")
    }

    // MARK: Transfer encodings

    /// The body with only the edited stretches re-encoded.
    private static func splice(
        _ edits: [TextEdit], into decoded: DecodedText, part: MIMEPart
    ) -> Outcome {
        let isASCII = edits.allSatisfy { $0.replacement.allSatisfy { $0 < 0x80 } }
        if part.transferEncoding == .sevenBit, !isASCII, decoded.bytes.allSatisfy({ $0 < 0x80 }) {
            return encoded(
                edits.applied(to: decoded.bytes), like: decoded, part: part, charset: "utf-8")
        }
        return .changed(encode(edits, into: decoded), charset: nil, encoding: nil)
    }

    private static func encode(_ edits: [TextEdit], into decoded: DecodedText) -> [UInt8] {
        switch decoded.encoding {
        case .quotedPrintable: QuotedPrintableSplice.apply(edits, to: decoded)
        case .base64: ending(like: decoded.raw, Base64.encode(edits.applied(to: decoded.bytes)))
        default: edits.applied(to: decoded.bytes)
        }
    }

    /// The complete text, encoded again.
    private static func encoded(
        _ bytes: [UInt8], like decoded: DecodedText, part: MIMEPart, charset: String?
    ) -> Outcome {
        if part.transferEncoding == .sevenBit, bytes.contains(where: { $0 >= 0x80 || $0 == 0 }) {
            return .changed(
                ending(like: decoded.raw, Base64.encode(bytes)), charset: charset, encoding: .base64
            )
        }
        // Quoted-printable is for lines: an LF that is half of a character would become a line
        // break.
        if part.transferEncoding == .quotedPrintable, bytes.contains(0) {
            return .changed(
                ending(like: decoded.raw, Base64.encode(bytes)), charset: charset, encoding: .base64
            )
        }
        guard let body = part.transferEncoding.encode(bytes) else { return .opaque }
        return .changed(ending(like: decoded.raw, body), charset: charset, encoding: nil)
    }

    /// The body, with a line break at its end only where `raw` has one.
    static func ending(like raw: ArraySlice<UInt8>, _ body: [UInt8]) -> [UInt8] {
        var body = body
        if raw.last == 0x0A {
            if body.last != 0x0A { body += [0x0D, 0x0A] }
        } else {
            while let last = body.last, last == 0x0A || last == 0x0D { body.removeLast() }
        }
        return body
    }
}

/// Changes stretches of a quoted-printable body and leaves every other octet unchanged.
enum QuotedPrintableSplice {
    private static let lineLength = 76

    static func apply(_ edits: [TextEdit], to decoded: DecodedText) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(decoded.raw.count + edits.count * 16)
        var position = decoded.raw.startIndex
        var touched: [Int] = []
        for edit in edits {
            let raw = decoded.rawRange(of: edit.range).raw
            guard raw.lowerBound >= position else { continue }
            output += decoded.raw[position..<raw.lowerBound]
            touched.append(output.count)
            output += escaped(edit.replacement)
            position = raw.upperBound
        }
        output += decoded.raw[position...]
        return wrapped(output, at: touched)
    }

    private static func escaped(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count + 8)
        var index = 0
        while index < bytes.count {
            let octet = bytes[index]
            if octet == 0x0D, index + 1 < bytes.count, bytes[index + 1] == 0x0A {
                output.append(0x0D)
                output.append(0x0A)
                index += 2
                continue
            }
            if octet == UInt8(ascii: "=") || octet >= 0x7F || octet < 0x20 {
                output += Hex.escape(octet, mark: "=")
            } else {
                output.append(octet)
            }
            index += 1
        }
        return output
    }

    /// Inserts soft line breaks into edited lines that became too long.
    private static func wrapped(_ body: [UInt8], at touched: [Int]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(body.count + body.count / 16 + touched.count * 3)
        body.withUnsafeBufferPointer { body in
            var position = 0
            for place in touched where place >= position {
                var start = place
                while start > position, body[start - 1] != 0x0A { start -= 1 }
                var end = place
                while end < body.count, body[end] != 0x0A { end += 1 }
                output += body[position..<start]
                append(UnsafeBufferPointer(rebasing: body[start..<end]), to: &output)
                position = end
            }
            output += body[position...]
        }
        return output
    }

    private static func append(_ line: UnsafeBufferPointer<UInt8>, to output: inout [UInt8]) {
        let count = line.last == 0x0D ? line.count - 1 : line.count
        guard count > lineLength else {
            output += line
            return
        }
        var column = 0
        var index = 0
        // The start of the octets that are not yet copied.
        var begin = 0
        while index < count {
            let width =
                line[index] == UInt8(ascii: "=") && index + 2 < count
                    && line[index + 1].hexValue != nil ? 3 : 1
            let isLast = index + width >= count
            if column + width > (isLast ? lineLength : lineLength - 1) {
                output += line[begin..<index]
                output.append(UInt8(ascii: "="))
                output.append(0x0D)
                output.append(0x0A)
                begin = index
                column = 0
            }
            column += width
            index += width
        }
        output += line[begin...]
    }
}
