// Compares typed text with the user's addresses: complete candidates, found without knowing a name,
// and counted first.

import InternetMessage
import LeakSearch
import Support

/// The candidates in the typed text of one reply: counted in a first pass, compared in a second
/// one. A text is never searched for a name, so a candidate that was not counted is not compared.
/// Not thread-safe: make one for each message.
final class TypedSearch {
    /// Whether candidates are only counted.
    private(set) var isCounting = false
    /// How typed text is treated. Texts that were not counted are read in full.
    private(set) var mode = TypedBounds.Mode.full
    private var bounds = TypedBounds()
    private var noted: Set<[UInt8]> = []
    /// The counted candidates, as `local@domain` without tags. The check need not count them again.
    private(set) var seen: Set<[UInt8]> = []
    private let names: ReplyNames

    init(names: ReplyNames) { self.names = names }

    /// Begins to count all typed text of the reply.
    func beginCounting() { isCounting = true }

    /// Ends the counting. From now on the text is rewritten.
    func endCounting() {
        isCounting = false
        noted = []
        mode = bounds.mode
    }

    /// Whether the limit is already exceeded, so that counting can stop.
    var isCounted: Bool { isCounting && bounds.mode == .neutral }

    /// Whether words alone are examined, and whether those in links are.
    var readsWords: Bool { isCounting ? bounds.mode == .full : mode == .full }
    var readsLinks: Bool { isCounting || bounds.readsLinks }

    /// Local parts of a candidate: with and without a possible tag.
    static func locals(_ local: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        guard let plus = local.dropFirst().firstIndex(of: UInt8(ascii: "+")) else { return [local] }
        return [local, local[..<plus]]
    }

    func note(local: ArraySlice<UInt8>, domain: [UInt8]) {
        guard bounds.mode != .neutral, noted.insert(local + [UInt8(ascii: "@")] + domain).inserted
        else { return }
        for local in Self.locals(local) {
            seen.insert(local + [UInt8(ascii: "@")] + domain)
            let address = names.providers.canonical(
                AddrSpec(
                    localPart: String(decoding: local, as: UTF8.self),
                    domain: String(decoding: domain, as: UTF8.self)))
            bounds.note(address: Array(address.wireForm.utf8))
        }
    }

    /// - Parameter isLinked: whether it is in a link. It is then searched for only if the host is
    ///   the user's.
    func note(word: [UInt8], isLinked: Bool) { bounds.note(word: word, isLinked: isLinked) }
}

extension MentionScanner {
    /// Maximum pieces of a word, divided by marks, that may be one local part.
    private static let mostPieces = 4

    /// Examines the candidates with a separator or a first octet in a range of the text.
    func typed(
        _ window: DecodedWindow, text: UnsafeBufferPointer<UInt8>, lens: DecodingPass,
        syntax: TextSyntax, range: Range<Int>,
        search: TypedSearch, into edits: inout [TextEdit]
    ) {
        if search.isCounted { return }
        let units = window.octets
        func source(_ range: Range<Int>) -> Range<Int> {
            window.start(range.lowerBound)..<window.end(range.upperBound - 1)
        }
        var finder = AddressFinder(window, of: text, lens: lens)
        finder.forEach(in: range) { candidate in
            guard Self.isRead(candidate, units), !isInOwn(candidate, units) else { return }
            let domain = Array(units[candidate.domain])
            // Octets that are not valid UTF-8 are an artefact of another reading, and not an
            // address.
            guard Array(units[candidate.whole]).isValidUTF8 else { return }
            guard !names.relayDomains.contains(where: { domain.elementsEqual($0.utf8) }) else {
                return
            }
            for local in Self.locals(candidate, units, syntax) {
                if search.isCounting {
                    search.note(local: Array(units[local])[...], domain: domain)
                } else if index.hides(local: Array(units[local])[...], at: domain) {
                    edits.append(TextEdit(range: source(local), replacement: relayLocal))
                    edits.append(
                        TextEdit(range: source(candidate.domain), replacement: relayDomain))
                }
            }
        }
        if search.readsWords {
            words(window, syntax: syntax, range: range, search: search, into: &edits)
        }
    }

    /// Whether a candidate is compared. Not every `=` in a query and every "at" in a sentence marks
    /// an address.
    private static func isRead(
        _ candidate: AddressFinder.Candidate, _ units: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        switch candidate.form {
        case .at, .gateway: !candidate.isDoubtful
        case .spelled, .verp, .reversed: candidate.isComplete
        }
    }

    /// Whether a candidate is within the local part of an address of the relay, which is read as a
    /// unit.
    private func isInOwn(
        _ candidate: AddressFinder.Candidate, _ units: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard candidate.form == .verp || candidate.form == .reversed else { return false }
        var end = candidate.whole.upperBound
        while end < units.count, end - candidate.whole.upperBound < 64,
            Self.isOfPiece(units[end]) || "._-=+".utf8.contains(units[end])
        {
            end += 1
        }
        guard end < units.count, units[end] == UInt8(ascii: "@") else { return false }
        return names.relayDomains.contains { units[(end + 1)...].starts(with: $0.utf8) }
    }

    /// The possible local parts of a candidate. In a file name, and within another address, other
    /// text may be directly before it.
    private static func locals(
        _ candidate: AddressFinder.Candidate, _ units: UnsafeBufferPointer<UInt8>,
        _ syntax: TextSyntax
    ) -> [Range<Int>] {
        guard syntax == .fileName || candidate.form == .verp else { return [candidate.local] }
        var locals = [candidate.local]
        for start in candidate.local.dropFirst() where locals.count < 8 {
            if "_-+".utf8.contains(units[start - 1]), units[start].isASCIIAlphanumeric {
                locals.append(start..<candidate.local.upperBound)
            }
        }
        return locals
    }

    // MARK: Words

    /// Words that may be a local part alone: pieces of letters and digits, and some combinations of
    /// them with the marks between them.
    private func words(
        _ window: DecodedWindow, syntax: TextSyntax, range: Range<Int>, search: TypedSearch,
        into edits: inout [TextEdit]
    ) {
        let units = window.octets
        var surroundings = Surroundings(
            window: window, isFileName: syntax == .fileName, hiddenDomains: index.hiddenDomains)
        // The pieces of one run, without white space between them.
        var pieces: [Range<Int>] = []
        func endRun() {
            if pieces.count > 2, let last = pieces.last, TopLevelDomains.contains(units[last]) {
                lookAtGateways(pieces[0].lowerBound..<last.upperBound)
            }
            for (number, first) in pieces.enumerated()
            where range.contains(window.start(first.lowerBound)) {
                for last in pieces[number..<min(number + Self.mostPieces, pieces.count)] {
                    look(first.lowerBound..<last.upperBound)
                }
            }
            pieces.removeAll(keepingCapacity: true)
        }
        func look(_ place: Range<Int>) {
            guard place.count >= LocalPartGuard.minimumLength, place.count <= 64 else { return }
            let word = Array(units[place])
            guard
                search.isCounting
                    ? TypedBounds.counts(word)
                    : index.bareLocals.contains(word) && TypedBounds.counts(word)
            else {
                return
            }
            let surrounding = surroundings.surrounding(place)
            if search.isCounting {
                if surrounding != .another {
                    search.note(word: word, isLinked: surrounding != .nothing)
                }
            } else if surrounding == .nothing || surrounding == .ownLink && search.readsLinks {
                edits.append(
                    TextEdit(
                        range: window.start(place.lowerBound)..<window.end(place.upperBound - 1),
                        replacement: relayLocal))
            }
        }
        /// A complete address as gateways write it in a path.
        func lookAtGateways(_ place: Range<Int>) {
            guard range.contains(window.start(place.lowerBound)), place.count <= 128,
                place.lowerBound > 0,
                units[place.lowerBound - 1] == UInt8(ascii: "/"),
                units[place].allSatisfy({ Self.isOfPiece($0) || $0 == UInt8(ascii: "_") })
            else { return }
            let word = Array(units[place])
            if search.isCounting {
                search.note(word: word, isLinked: false)
            } else if index.joined.contains(word) {
                edits.append(
                    TextEdit(
                        range: window.start(place.lowerBound)..<window.end(place.upperBound - 1),
                        replacement: NameIndex.joined(
                            relayLocal + [UInt8(ascii: "@")] + relayDomain)))
            }
        }
        var unit = 0
        while unit < units.count {
            let isApart = window.separators[unit] & ~DecodedWindow.unseen != 0
            if isApart { endRun() }
            guard Self.isOfPiece(units[unit]) else {
                if !Self.joins(units[unit]) { endRun() }
                unit += 1
                continue
            }
            let first = unit
            unit += 1
            while unit < units.count, Self.isOfPiece(units[unit]),
                window.separators[unit] & ~DecodedWindow.unseen == 0
            {
                unit += 1
            }
            pieces.append(first..<unit)
        }
        endRun()
    }

    private static func isOfPiece(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet >= 0x80
    }

    /// `.`, `_`, `-`, `+`, `'`: marks that may be within a local part.
    private static func joins(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x27, 0x2B, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }
}
