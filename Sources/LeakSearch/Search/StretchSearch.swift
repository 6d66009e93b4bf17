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
    /// Whether an anchor of a token begins with an octet, in lower case.
    private let beginsAnchor: [Bool]
    private var unseen: Set<[UInt8]> = []
    private var seenWords: Set<[UInt8]> = []

    /// Whether an address of the user was found, or a token, or an address of the relay's that is not the user's.
    private(set) var isFound = false {
        didSet { if isFound, !isEncoded { isFoundOpenly = true } }
    }
    /// Whether that was in the text itself, and not only in what octets of it stand for.
    private(set) var isFoundOpenly = false
    /// Whether what is read is decoded, or is no text as it is declared.
    private var isEncoded = false
    /// Whether a bare local part was found; it counts only where few words are typed.
    private var isWordFound = false

    /// Levels of base64 and hexadecimal within each other that are decoded.
    private static let maximumDepth = 3
    /// Octets that are read at once, and how far two such windows overlap: more than any address with its encodings.
    private static let window = 262_144
    private static let overlap = 2_048
    // Units of work for each octet of a reading, for what is there besides, and for each candidate.
    private static let readingWork = 8
    private static let pieceWork = 400
    private static let candidateWork = 60

    init(_ names: LeakNames, work: WorkBudget) {
        self.names = names
        self.work = work
        table = NameTable(names)
        var begins = [Bool](repeating: false, count: 256)
        for anchor in names.tokens?.anchors ?? [] { if let first = anchor.first { begins[Int(first)] = true } }
        beginsAnchor = begins
    }

    /// Whether what is typed gives the user away, or holds more addresses than one reply may answer.
    var typedLeaks: Bool {
        isFound || names.countsAddresses && unseen.count > Self.addresses
            || isWordFound && names.looksForWords && seenWords.count <= Self.words
    }

    /// Different addresses in typed text that the rewriting did not see; no more than one beyond the bound are counted.
    var unseenAddresses: Int { unseen.count }

    // MARK: Stretches

    /// Searches one stretch. Nothing of it is remembered but the counts.
    /// - Parameter isEncoded: whether the octets are no text as they are declared.
    func search(_ octets: ArraySlice<UInt8>, _ subject: Subject, isMarkup: Bool, isEncoded: Bool = false) {
        self.isEncoded = isEncoded
        defer { self.isEncoded = false }
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
            plain.forEachReading(isMarkup: isMarkup) { reading, isShown in
                work.charge(reading.octets.count * Self.readingWork)
                look(in: reading, subject, depth: depth, isText: isText, isShown: isShown && depth == 0)
            }
        }
        guard depth < Self.maximumDepth else { return }
        HiddenRuns.forEach(in: octets, work: work) { decoded in
            guard !work.isSpent else { return }
            decoded.withUnsafeBufferPointer {
                guard mayHold($0) else { return }
                let isOpen = !isEncoded
                isEncoded = true
                read($0, subject, isMarkup: false, depth: depth + 1, isText: isText && Self.isText($0))
                if isOpen { isEncoded = false }
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

    /// Whether decoded octets may hold a candidate, a token, or a run that is decoded again. By form alone.
    private func mayHold(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        var (last, digits): (UInt8, Int) = (0, 0)
        for octet in octets {
            if octet == 0 { continue }
            let lower = octet.asciiLowercased
            if AddressReading.mayMark(lower, after: last) || beginsAnchor[Int(lower)] { return true }
            digits = HiddenRuns.isDigit(octet) ? digits + 1 : 0
            if digits == HiddenRuns.shortest { return true }
            last = lower
        }
        return false
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
                if table.holds(text, local: local, domain: domain, form: candidate.form, .text) {
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
        if isContentID(text, run) { return }
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
            // Words may be directly before it, and the ids of parts are hidden at the relay domain too.
            if isContentID(text, run) { return true }
            let base = NameTable.base(text, NameTable.local(text, run))
            let own = names.relayAddress.dropLast(relay.count + 1)
            return text[base].suffix(own.count).elementsEqual(own)
                && names.relayAddress.dropFirst(own.count + 1).elementsEqual(relay)
        }
        return nil
    }

    /// Whether it is the id of a part: `cid:image001.png@01D9ABCD.12345678`.
    private func isContentID(_ text: Reading.View, _ run: Range<Int>) -> Bool {
        run.lowerBound >= 4 && text[(run.lowerBound - 4)..<run.lowerBound].isContentIDScheme
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
        guard let tokens = names.tokens, let isToken else { return }
        beginsAnchor.withUnsafeBufferPointer { begins in
            for index in 0..<text.count where begins[Int(text[index])] {
                for anchor in tokens.anchors where !anchor.isEmpty && text[index...].starts(with: anchor) {
                    if isToken(Self.word(around: index, text), index - Self.start(of: index, text)) { isFound = true }
                }
            }
        }
    }

    /// Where the word begins that an anchor at an index is in.
    private static func start(of index: Int, _ text: Reading.View) -> Int {
        var start = index
        while start > 0, index - start < AddressReading.maximumLocal, text.gaps[start] == 0, isOfToken(text[start - 1]) {
            start -= 1
        }
        return start
    }

    private static func isOfToken(_ octet: UInt8) -> Bool { AddressReading.isAtom(octet) || octet == UInt8(ascii: "=") }

    private static func word(around index: Int, _ text: Reading.View) -> [UInt8] {
        var end = index + 1
        while end < text.count, end - index < AddressReading.maximumLocal, text.gaps[end] == 0, isOfToken(text[end]) {
            end += 1
        }
        return Array(text[start(of: index, text)..<end])
    }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    /// Whether octets are the scheme of a Content-ID or of a message's id (RFC 2392).
    fileprivate var isContentIDScheme: Bool { elementsEqual("cid:".utf8) || elementsEqual("mid:".utf8) }
}
