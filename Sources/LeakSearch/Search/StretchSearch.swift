// Reads one stretch in every way in which its reader may, and compares what may be an address with the user's.

import Support

/// Searches the stretches of one message, each alone. Not thread-safe.
final class StretchSearch {
    /// How many different addresses that the rewriting did not see, and how many words that look like local parts, typed text may
    /// hold. So one reply answers few guesses, whatever the rewriting took for typed.
    static let addresses = 4
    static let words = 16

    /// What is looked for.
    enum Subject {
        /// The user's addresses, and those of the relay's that are not the user's.
        case typed
        /// Any address.
        case neutral
        /// The user's addresses, in text.
        case file
        /// The same in compressed data and pictures, in which there are no words.
        case binary
    }

    private let names: LeakNames
    private let table: NameTable
    private let work: WorkBudget
    private lazy var isToken = names.tokens?.reader()
    private var unseen: Set<[UInt8]> = []
    private var seenWords: Set<[UInt8]> = []

    /// Whether an address of the user was found, or a token, or an address of the relay's that is not the user's.
    private(set) var isFound = false
    /// Whether a bare local part was found; it counts only where few words are typed.
    private var isWordFound = false

    /// Levels of base64 and hexadecimal within each other that are decoded.
    private static let maximumDepth = 3
    /// Octets that are read at once, and how far two such windows overlap: more than any address with its encodings.
    private static let window = 262_144
    private static let overlap = 2_048
    // Units of work for each octet of a reading, for what is there besides, and for each candidate.
    private static let readingWork = 12
    private static let pieceWork = 400
    private static let candidateWork = 60

    init(_ names: LeakNames, work: WorkBudget) {
        self.names = names
        self.work = work
        table = NameTable(names)
    }

    /// Whether what is typed gives the user away, or holds more addresses than one reply may answer.
    var typedLeaks: Bool {
        isFound || unseen.count > Self.addresses
            || isWordFound && names.looksForWords && seenWords.count <= Self.words
    }

    /// Different addresses in typed text that the rewriting did not see; no more than one beyond the bound are counted.
    var unseenAddresses: Int { unseen.count }

    // MARK: Stretches

    /// Searches one stretch. Nothing of it is remembered but the counts.
    func search(_ octets: ArraySlice<UInt8>, _ subject: Subject, isMarkup: Bool) {
        octets.withUnsafeBufferPointer { search($0, subject, isMarkup: isMarkup) }
        if subject != .binary, octets.contains(UInt8(ascii: "=")), let decoded = EncodedWords.decoded(octets) {
            decoded.withUnsafeBufferPointer { search($0, subject, isMarkup: isMarkup) }
        }
    }

    private func search(_ octets: UnsafeBufferPointer<UInt8>, _ subject: Subject, isMarkup: Bool) {
        var start = 0
        while start < octets.count, !work.isSpent {
            let end = Self.cut(octets, near: start + Self.window)
            read(UnsafeBufferPointer(rebasing: octets[start..<end]), subject, isMarkup: isMarkup, depth: 0)
            if end == octets.count { return }
            start = max(start + 1, Self.cut(octets, near: end - Self.overlap))
        }
    }

    /// A place at white space, so that no word is cut; elsewhere only where there is none nearby.
    private static func cut(_ octets: UnsafeBufferPointer<UInt8>, near place: Int) -> Int {
        guard place < octets.count else { return octets.count }
        var index = place
        while index > max(0, place - overlap) {
            if octets[index] <= 0x20 { return index }
            index -= 1
        }
        return place
    }

    /// Forgets what was found in a file, whose result is its own.
    func isFoundInFile() -> Bool {
        defer { isFound = false }
        return isFound
    }

    // MARK: Readings

    private func read(
        _ octets: UnsafeBufferPointer<UInt8>, _ subject: Subject, isMarkup: Bool, depth: Int, isText: Bool = true
    ) {
        work.charge(Self.pieceWork)
        let plain = Reading(octets, isMarkup: isMarkup)
        if subject == .binary || !isText {
            work.charge(octets.count * Self.readingWork)
            look(in: plain, subject, depth: depth, isText: false, isShown: false)
        } else {
            plain.forEachReading { reading, isShown in
                work.charge(reading.octets.count * Self.readingWork)
                look(in: reading, subject, depth: depth, isText: isText, isShown: isShown && depth == 0)
            }
        }
        guard depth < Self.maximumDepth else { return }
        HiddenRuns.forEach(in: octets, work: work) { decoded in
            guard !work.isSpent else { return }
            decoded.withUnsafeBufferPointer {
                read($0, subject, isMarkup: false, depth: depth + 1, isText: isText && Self.isText($0))
            }
        }
    }

    private func look(in reading: Reading, _ subject: Subject, depth: Int, isText: Bool, isShown: Bool) {
        reading.withView { text in
            var addresses = AddressReading(text)
            var candidates = 0
            addresses.forEach { candidate in
                candidates += 1
                switch subject {
                case .typed: takeTyped(candidate, text, isDecoded: depth > 0, isText: isText, isShown: isShown)
                case .neutral: if isText { takeNeutral(candidate, text, isShown: isShown) }
                case .file: take(candidate, text, depth > 0 ? .binary : .file)
                case .binary: take(candidate, text, .binary)
                }
            }
            work.charge(candidates * Self.candidateWork)
            guard subject != .neutral else { return }
            findTokens(in: text)
            guard depth == 0, isText else { return }
            // More words than may be looked for: no further one counts.
            if subject == .typed, seenWords.count > Self.words { return }
            WordReading.forEach(text) { takeWord(text[$0], table.words, table.wordLengths, subject) }
            WordReading.forEachJoined(text) { range in
                guard Self.isGateways(text, range) else { return }
                takeWord(text[range], table.joined, table.joinedLengths, subject)
            }
        }
    }

    /// Whether nearly all of what was decoded is text.
    private static func isText(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        var (others, expected) = (0, 0)
        for octet in octets {
            if expected > 0, octet & 0xC0 == 0x80 {
                expected -= 1
                continue
            }
            if expected > 0 { others += 1 }
            expected = octet < 0xC2 ? 0 : octet < 0xE0 ? 1 : octet < 0xF0 ? 2 : 3
            if octet < 0x20 && octet != 0 && !(0x09...0x0D).contains(octet) || 0x7F..<0xC2 ~= octet || octet >= 0xF5 {
                others += 1
            }
        }
        return others * 8 <= octets.count
    }

    /// Whether the last part of a joined name is a top-level domain.
    private static func isGateways(_ text: Reading.View, _ range: Range<Int>) -> Bool {
        guard let last = text[range].lastIndex(of: UInt8(ascii: "_")) else { return false }
        return TopLevelDomains.contains(text[(last + 1)..<range.upperBound])
    }

    // MARK: Candidates

    private func take(_ candidate: AddressReading.Candidate, _ text: Reading.View, _ context: NameTable.Context) {
        for local in candidate.locals {
            for domain in candidate.domains where table.holds(text, local: local, domain: domain, form: candidate.form, context) {
                isFound = true
            }
        }
    }

    private func takeTyped(
        _ candidate: AddressReading.Candidate, _ text: Reading.View, isDecoded: Bool, isText: Bool, isShown: Bool
    ) {
        for local in candidate.locals {
            for domain in candidate.domains {
                let whole = Domain.completeEnd(text, domain)
                // Only an at sign makes an address of a host without a known domain.
                guard whole != nil || !candidate.needsDomain || isDecoded else { continue }
                if candidate.form == .at, let isOwn = isAtRelay(text, local, domain) {
                    if !isOwn { isFound = true }
                    continue
                }
                if table.holds(text, local: local, domain: domain, form: candidate.form, isDecoded ? .decoded : .text) {
                    isFound = true
                }
                // In what decodes to no text, addresses are chance.
                guard isText, whole != nil || isShown else { continue }
                let base = NameTable.base(text, NameTable.local(text, local))
                guard !base.isEmpty, unseen.count <= Self.addresses else { continue }
                let address = Array(text[base]) + [0x40] + text[domain.lowerBound..<(whole ?? domain.upperBound)]
                if !names.seenAddresses.contains(address) { unseen.insert(address) }
            }
        }
    }

    private func takeNeutral(_ candidate: AddressReading.Candidate, _ text: Reading.View, isShown: Bool) {
        guard candidate.form == .at, let run = candidate.locals.last, let domain = candidate.domains.first else { return }
        let local = NameTable.local(text, run)
        guard text[local].contains(where: { $0.isASCIIAlphanumeric || $0 >= 0x80 }) else { return }
        // The id of a part: `cid:image001.png@01D9ABCD.12345678`.
        let start = run.lowerBound
        if start >= 4, text[(start - 4)..<start].isContentIDScheme { return }
        if isAtRelay(text, run, domain) == true { return }
        if Domain.completeEnd(text, domain) != nil || isShown && !candidate.needsDomain && Self.isHost(text[domain]) {
            isFound = true
        }
    }

    /// Whether octets may be a host of which no domain is known: with letters, and no number.
    private static func isHost(_ domain: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let labels = domain.split(separator: UInt8(ascii: "."))
        guard let first = labels.first, let last = labels.last else { return false }
        let isNumber = last.allSatisfy { TransferReading.digit($0) != nil } && last.contains(where: \.isASCIIDigit)
        return !isNumber && first.contains { $0.isASCIILetter || $0 >= 0x80 } && domain.count >= 2
    }

    /// Whether an address at a relay domain is the one by which the team knows the user; nil for other domains.
    private func isAtRelay(_ text: Reading.View, _ run: Range<Int>, _ domain: Range<Int>) -> Bool? {
        for relay in names.relayDomains where text[domain].starts(with: relay) {
            guard !Domain.goesOn(text, domain, after: domain.lowerBound + relay.count) else { continue }
            let base = NameTable.base(text, NameTable.local(text, run))
            return (Array(text[base]) + [0x40] + relay).elementsEqual(names.relayAddress)
        }
        return nil
    }

    private func takeWord(
        _ word: Slice<UnsafeBufferPointer<UInt8>>, _ wanted: Set<[UInt8]>, _ lengths: Set<Int>, _ subject: Subject
    ) {
        let isCounted = subject == .typed && seenWords.count <= Self.words
        guard isCounted || lengths.contains(word.count) else { return }
        let word = Array(word)
        if isCounted { seenWords.insert(word) }
        guard wanted.contains(word) else { return }
        if subject == .typed { isWordFound = true } else { isFound = true }
    }

    // MARK: Tokens

    private func findTokens(in text: Reading.View) {
        guard let tokens = names.tokens, let isToken, let shortest = tokens.anchors.map(\.count).min(), shortest > 0 else {
            return
        }
        var isFirst = [Bool](repeating: false, count: 256)
        for anchor in tokens.anchors { isFirst[Int(anchor[0])] = true }
        for index in 0..<text.count where isFirst[Int(text[index])] {
            for anchor in tokens.anchors where text[index] == anchor[0] && text[index...].starts(with: anchor) {
                var (start, end) = (index, index + anchor.count)
                while start > 0, index - start < AddressReading.maximumLocal, text.gaps[start] == 0,
                    AddressReading.isAtom(text[start - 1])
                { start -= 1 }
                while end < text.count, end - index < AddressReading.maximumLocal, text.gaps[end] == 0,
                    AddressReading.isAtom(text[end])
                {
                    end += 1
                }
                if isToken(Array(text[start..<end]), index - start) { isFound = true }
            }
        }
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    /// Whether octets are the scheme of a Content-ID or of a message's id (RFC 2392).
    fileprivate var isContentIDScheme: Bool { elementsEqual("cid:".utf8) || elementsEqual("mid:".utf8) }
}
