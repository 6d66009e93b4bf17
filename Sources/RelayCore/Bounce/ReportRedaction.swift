// What a server said, without anything that names a mailbox, a machine or a way.

import InternetMessage

struct ReportRedaction {
    /// The only address that may stand.
    private let relayAddress: AddrSpec
    /// Lower-case words that name a mailbox: local parts and whole addresses of the user and of the report.
    private let words: Set<String>
    private let text: TextRewriter

    /// Octets of a diagnostic that are passed on; servers write whole help pages.
    private static let limit = 400

    /// - Parameter addresses: as the report writes its recipients.
    init(names: ReplyNames, addresses: [String]) {
        relayAddress = names.relayAddress
        text = TextRewriter(names: names)
        var words: Set<String> = []
        let own =
            names.hidden.map(\.revealed.localPart) + addresses.compactMap { $0.split(separator: "@").first.map(String.init) }
        for local in own {
            let local = Self.core(local.lowercased()[...])
            if local.count >= 3 { words.insert(String(local)) }
        }
        self.words = words
    }

    /// The diagnostic as one line of printable ASCII; words that could tell are replaced by `[...]`.
    func redact(_ diagnostic: String) -> String {
        let plain = text.rewrite(Array(diagnostic.utf8)).map { String(decoding: $0, as: UTF8.self) } ?? diagnostic
        var output: [String] = []
        var length = 0
        for word in plain.split(whereSeparator: { $0.isWhitespace || $0 == "\u{0}" }) {
            let kept = isHarmless(word) ? String(word) : Self.mark(around: word)
            if kept == "[...]", output.last == kept { continue }
            length += kept.utf8.count + 1
            guard length <= Self.limit else { break }
            output.append(kept)
        }
        return output.joined(separator: " ")
    }

    /// The replaced word with the punctuation that ended it.
    private static func mark(around word: Substring) -> String { word.hasSuffix(":") ? "[...]:" : "[...]" }

    private static func core(_ word: Substring) -> Substring {
        var word = word
        while let first = word.first, !(first.isLetter || first.isNumber) { word = word.dropFirst() }
        while let last = word.last, !(last.isLetter || last.isNumber) { word = word.dropLast() }
        return word
    }

    private func isHarmless(_ word: Substring) -> Bool {
        guard word.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), word.utf8.count <= 60 else { return false }
        let lower = word.lowercased()
        let core = Self.core(lower[...])
        if core == relayAddress.wireForm.lowercased() { return true }
        if lower.contains("@") || lower.contains("=") || lower.contains("%") || lower.contains("//") || lower.contains("\\")
            || lower.contains("&#")
        {
            return false
        }
        // `MSEXCH:IMS:ORGANISATION:SITE:SERVER`, and IPv6.
        if lower.filter({ $0 == ":" }).count >= 2 { return false }
        // The name of a mailbox, also as a part of the word.
        for piece in lower.split(whereSeparator: {
            !($0.isLetter || $0.isNumber || $0 == "." || $0 == "_" || $0 == "-" || $0 == "+")
        }) {
            let piece = Self.core(piece)
            if words.contains(String(piece)) { return false }
            if isHostOrAddress(piece) { return false }
        }
        return !words.contains { $0.utf8.count >= 6 && lower.contains($0) }
    }

    /// A host name, an IP address or an opaque id; status codes and the ends of sentences are neither.
    private func isHostOrAddress(_ piece: Substring) -> Bool {
        // `550-5.1.1`: reply code and status of a reply of several lines.
        if let hyphen = piece.firstIndex(of: "-"), piece[..<hyphen].allSatisfy(\.isNumber), piece[..<hyphen].utf8.count == 3 {
            return isHostOrAddress(piece[piece.index(after: hyphen)...])
        }
        if StatusCodes.enhanced(in: String(piece)).map({ $0.description == piece }) == true { return false }
        let labels = piece.split(separator: ".")
        if labels.count >= 2 {
            return labels.contains { $0.contains { $0.isNumber } } || labels.last.map { $0.count >= 2 } ?? false
        }
        if piece.filter({ $0 == ":" }).count >= 2 { return true }
        // `f12-20020a05si123`, `DESKTOP-7F3K2`: letters and digits mixed.
        return piece.utf8.count >= 10 && piece.contains { $0.isNumber } && piece.contains { $0.isLetter }
    }
}
