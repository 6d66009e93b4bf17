// Reads one stretch in every way that its reader may use, and compares each possible address with
// the user's.

import Support

/// Searches the stretches of one message, each alone. Not thread-safe.
final class StretchSearch {
    /// Maximum different addresses in typed text that the rewriting did not see, and maximum words
    /// that look like local parts. So one reply confirms only a few guesses, even if the rewriting
    /// took too much for typed text.
    static let addresses = 4
    static let words = 16

    /// The names that are searched for.
    enum Subject {
        /// The user's addresses, and those of the relay's that are not the user's.
        case typed
        /// Any address.
        case neutral
        /// The user's addresses, in text.
        case file
        /// The same in compressed data and pictures, which have no words.
        case binary
    }

    private let names: LeakNames
    private let table: NameTable
    private let work: WorkBudget
    private lazy var isToken = names.tokens?.reader()
    /// The marks that may end, and the anchors of a token that may begin, at an octet in lower
    /// case.
    private let signs: [UInt8]
    private static let mark: UInt8 = 1
    private static let anchor: UInt8 = 2
    private static let slash: UInt8 = 4
    private let memory: SearchMemory
    private var unseen: Set<[UInt8]> = []
    private var seenWords: Set<[UInt8]> = []

    /// Whether an address of the user, a token, or another user's address of the relay was found.
    private(set) var isFound = false {
        didSet { if isFound, !isEncoded { isFoundOpenly = true } }
    }
    /// Whether it was found in the text itself, and not only in its decoded form.
    private(set) var isFoundOpenly = false
    /// Whether the current text is decoded, or does not have its declared type.
    private var isEncoded = false
    /// Whether a bare local part was found. It counts only if few words are typed.
    private var isWordFound = false

    /// Levels of nested base64 and hexadecimal that are decoded.
    static let maximumDepth = 3
    /// Octets that are read at a time, and the overlap of two such windows: more than any address
    /// with its encodings.
    private static let window = 262_144
    private static let overlap = 2_048
    // Units of work for each octet of a reading, and for each octet whose words are examined. Then
    // for each piece, and for each candidate; its octets count if they are more.
    private static let readingWork = 5
    private static let wordWork = 3
    private static let pieceWork = 400
    private static let candidateWork = 60
    /// Octets that are copied for one unit of work.
    private static let copied = 4

    /// - Parameter memory: of the message, for searches that do not run within each other.
    init(_ names: LeakNames, work: WorkBudget, memory: SearchMemory = SearchMemory()) {
        self.names = names
        self.work = work
        self.memory = memory
        table = NameTable(names)
        var signs = (0..<256).map { AddressReading.mayBeMark(UInt8($0)) ? Self.mark : 0 }
        for anchor in names.tokens?.anchors ?? [] {
            if let first = anchor.first { signs[Int(first)] |= Self.anchor }
        }
        for octet in "/\\".utf8 { signs[Int(octet)] |= Self.slash }
        self.signs = signs
    }

    /// Whether typed text reveals the user.
    var typedLeaks: Bool {
        isFound || isWordFound && names.looksForWords && seenWords.count <= Self.words
    }

    /// Whether typed text contains more addresses that the rewriting did not see than one reply may
    /// confirm.
    var holdsTooMany: Bool { names.countsAddresses && unseen.count > Self.addresses }

    // MARK: Stretches

    /// Searches one stretch. Keeps only the counts.
    /// - Parameter isEncoded: whether the octets do not have their declared type.
    func search(
        _ octets: ArraySlice<UInt8>, _ subject: Subject, isMarkup: Bool, isEncoded: Bool = false
    ) {
        self.isEncoded = isEncoded
        defer { self.isEncoded = false }
        octets.withUnsafeBufferPointer { search($0, subject, isMarkup: isMarkup) }
        if subject != .binary, octets.contains(UInt8(ascii: "=")),
            let decoded = EncodedWords.decoded(octets)
        {
            decoded.withUnsafeBufferPointer { search($0, subject, isMarkup: isMarkup) }
        }
    }

    private func search(_ octets: UnsafeBufferPointer<UInt8>, _ subject: Subject, isMarkup: Bool) {
        var start = 0
        while start < octets.count, !work.isSpent {
            let end = Self.cut(octets, near: start + Self.window)
            read(
                UnsafeBufferPointer(rebasing: octets[start..<end]), subject, isMarkup: isMarkup,
                depth: 0)
            if end == octets.count { return }
            start = max(start + 1, Self.cut(octets, near: end - Self.overlap))
        }
    }

    /// A place at white space, so that no word is divided; another place only if there is none
    /// nearby.
    private static func cut(_ octets: UnsafeBufferPointer<UInt8>, near place: Int) -> Int {
        guard place < octets.count else { return octets.count }
        var index = place
        while index > max(0, place - overlap) {
            if octets[index] <= 0x20 { return index }
            index -= 1
        }
        return place
    }

    /// Resets the result of a search in a file, which is separate for each file.
    func isFoundInFile() -> Bool {
        defer { isFound = false }
        return isFound
    }

    // MARK: Readings

    private func read(
        _ octets: UnsafeBufferPointer<UInt8>, _ subject: Subject, isMarkup: Bool, depth: Int,
        isText: Bool = true
    ) {
        work.charge(Self.pieceWork)
        if subject == .binary || !isText {
            let text = memory.readings.read(octets, isMarkup: isMarkup)
            look(in: text, at: nil, subject, depth: depth, isText: false, isShown: false)
        } else {
            memory.readings.forEach(octets, isMarkup: isMarkup) { text, changes, isShown in
                look(
                    in: text, at: changes, subject, depth: depth, isText: isText,
                    isShown: isShown && depth == 0)
            }
        }
        guard depth < Self.maximumDepth else { return }
        memory.runs[depth].forEach(in: octets, work: work) { decoded in
            guard !work.isSpent, mayHold(decoded) else { return }
            let isOpen = !isEncoded
            isEncoded = true
            read(
                decoded, subject, isMarkup: false, depth: depth + 1,
                isText: isText && Self.isText(decoded))
            if isOpen { isEncoded = false }
        }
    }

    /// - Parameter changes: the ranges in which the reading differs from those before it; nil for
    ///   everywhere.
    private func look(
        in text: Reading.View, at changes: [Range<Int>]?, _ subject: Subject, depth: Int,
        isText: Bool, isShown: Bool
    ) {
        guard let changes else {
            work.charge(text.count * Self.readingWork)
            look(in: text, 0..<text.count, subject, depth: depth, isText: isText, isShown: isShown)
            if depth == 0, isText, subject != .neutral {
                lookAtWords(in: text, 0..<text.count, subject)
            }
            return
        }
        work.charge(text.count / Self.copied)
        var (end, wordEnd) = (0, 0)
        for change in changes {
            let range =
                max(
                    end, change.lowerBound - AddressReading.reach)..<min(
                    text.count, change.upperBound + AddressReading.reach)
            work.charge(range.count * Self.readingWork)
            look(in: text, range, subject, depth: depth, isText: isText, isShown: isShown)
            end = range.upperBound
            guard depth == 0, isText, subject != .neutral, wordEnd < text.count else { continue }
            let words = Self.words(around: change, from: wordEnd, text)
            lookAtWords(in: text, words, subject)
            wordEnd = words.upperBound
        }
    }

    /// Complete words around a change, with the text that may show that they are in a link.
    private static func words(
        around change: Range<Int>, from wordEnd: Int, _ text: Reading.View
    ) -> Range<Int> {
        var start = max(wordEnd, min(change.lowerBound - 8, text.count - 1))
        while start > wordEnd, text.gaps[start] == 0 { start -= 1 }
        var end = min(text.count, max(start, change.upperBound) + 1)
        while end < text.count, text.gaps[end] == 0 { end += 1 }
        return start..<end
    }

    /// Examines the marks and anchors in a range.
    private func look(
        in text: Reading.View, _ range: Range<Int>, _ subject: Subject, depth: Int, isText: Bool,
        isShown: Bool
    ) {
        var addresses = AddressReading(text)
        var candidates = 0
        var wanted =
            subject == .neutral || names.tokens == nil ? Self.mark : Self.mark | Self.anchor
        // The words of text are examined anyway.
        if subject == .binary, depth == 0 { wanted |= Self.slash }
        signs.withUnsafeBufferPointer { signs in
            for index in range {
                let sign = signs[Int(text[index])] & wanted
                guard sign != 0 else { continue }
                if sign & Self.mark != 0 {
                    addresses.find(at: index) { candidate in
                        candidates += 1
                        switch subject {
                        case .typed:
                            takeTyped(
                                candidate, text, isDecoded: depth > 0, isText: isText,
                                isShown: isShown)
                        case .neutral: if isText { takeNeutral(candidate, text, isShown: isShown) }
                        case .file:
                            take(candidate, text, depth > 0 ? .binary : .file)
                            takeRelay(candidate, text)
                        case .binary:
                            take(candidate, text, .binary)
                            takeRelay(candidate, text)
                        }
                    }
                }
                if sign & Self.slash != 0 { takeFolder(after: index, text) }
                if sign & Self.anchor != 0 { takeAnchor(at: index, text) }
            }
        }
        work.charge(max(addresses.steps, candidates * Self.candidateWork))
    }

    private func lookAtWords(in text: Reading.View, _ range: Range<Int>, _ subject: Subject) {
        // There are more words than may be searched for, so no further word counts.
        if subject == .typed, seenWords.count > Self.words { return }
        work.charge(range.count * Self.wordWork)
        WordReading.forEach(text, in: range) {
            takeWord(text, $0, table.words, table.wordLengths, subject)
        }
        WordReading.forEachJoined(text, in: range) { range in
            guard Self.isGateways(text, range) else { return }
            takeWord(text, range, table.joined, table.joinedLengths, subject)
        }
    }

    /// Whether nearly all of the decoded octets are text.
    private static func isText(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        var (others, expected) = (0, 0)
        for octet in octets {
            if expected > 0, octet & 0xC0 == 0x80 {
                expected -= 1
                continue
            }
            if expected > 0 { others += 1 }
            expected = octet < 0xC2 ? 0 : octet < 0xE0 ? 1 : octet < 0xF0 ? 2 : 3
            if octet < 0x20 && octet != 0 && !(0x09...0x0D).contains(octet) || 0x7F..<0xC2 ~= octet
                || octet >= 0xF5
            {
                others += 1
            }
        }
        return others * 8 <= octets.count
    }

    /// Whether the last part of a joined name is a top-level domain.
    private static func isGateways(_ text: Reading.View, _ range: Range<Int>) -> Bool {
        guard let last = text.last(UInt8(ascii: "_"), in: range) else { return false }
        return TopLevelDomains.contains(text, (last + 1)..<range.upperBound)
    }

    /// Whether decoded octets may contain a candidate, a token, or a run that is decoded again. By
    /// form alone.
    private func mayHold(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        signs.withUnsafeBufferPointer { signs in
            var (last, digits): (UInt8, Int) = (0, 0)
            for octet in octets where octet != 0 {
                let lower = octet.asciiLowercased
                if AddressReading.mayMark(lower, after: last)
                    || signs[Int(lower)] & Self.anchor != 0
                {
                    return true
                }
                digits = HiddenRuns.isDigit(octet) ? digits + 1 : 0
                if digits == HiddenRuns.shortest { return true }
                last = lower
            }
            return false
        }
    }

    // MARK: Candidates

    private func take(
        _ candidate: AddressReading.Candidate, _ text: Reading.View, _ context: NameTable.Context
    ) {
        candidate.forEach { local, domain in
            if table.holds(text, local: local, domain: domain, form: candidate.form, context) {
                isFound = true
            }
        }
    }

    /// Another address of the relay in a file: it has the form of one that was made at random.
    private func takeRelay(_ candidate: AddressReading.Candidate, _ text: Reading.View) {
        guard candidate.form == .at else { return }
        candidate.forEach { run, domain in
            guard isAtRelay(text, run, domain) == false else { return }
            let local = NameTable.base(text, NameTable.local(text, run))
            if local.count == Self.relayLocal(names).count, Base32.isEncoded(text[local]),
                WordReading.looksLikeLocalPart(text, local)
            {
                isFound = true
            }
        }
    }

    private static func relayLocal(_ names: LeakNames) -> ArraySlice<UInt8> {
        names.relayAddress.prefix { $0 != UInt8(ascii: "@") }
    }

    /// A folder of a path in binary data, as in the names of the members of archives, that is the
    /// bare local part: `Users/jane.k77x/a.txt`.
    /// - Parameter slash: the index of the separator before it.
    private func takeFolder(after slash: Int, _ text: Reading.View) {
        var end = slash + 1
        while end < text.count, end - slash <= AddressReading.maximumLocal,
            text.gaps[end] == 0 || end == slash + 1, AddressReading.isOfLocal(text[end])
        {
            end += 1
        }
        let folder = (slash + 1)..<end
        guard table.wordLengths.contains(folder.count), text.gaps[folder.lowerBound] == 0,
            table.words.contains(Array(text[folder]))
        else { return }
        let isClosed =
            end < text.count && text.gaps[end] == 0 && "/\\".utf8.contains(text[end])
        // The path may end there if a folder of homes is before it.
        let isHome = text.holds("users", at: slash - 5) || text.holds("home", at: slash - 4)
        if isClosed || isHome && (end == text.count || text.gaps[end] != 0) { isFound = true }
    }

    private func takeTyped(
        _ candidate: AddressReading.Candidate, _ text: Reading.View, isDecoded: Bool, isText: Bool,
        isShown: Bool
    ) {
        candidate.forEach { local, domain in
            // Only an at sign makes a host without a known domain part of an address.
            let isAddress =
                !candidate.needsDomain || isDecoded || Domain.completeEnd(text, domain) != nil
            guard isAddress else { return }
            if candidate.form == .at, let isOwn = isAtRelay(text, local, domain) {
                if !isOwn { isFound = true }
                return
            }
            if table.holds(text, local: local, domain: domain, form: candidate.form, .text) {
                isFound = true
            }
            // In octets that are not text after decoding, addresses are chance.
            guard names.countsAddresses, isText, unseen.count <= Self.addresses else { return }
            let whole = Domain.completeEnd(text, domain)
            guard whole != nil || isShown && Self.isHost(text[domain]) else { return }
            let base = NameTable.base(text, NameTable.local(text, local))
            guard !base.isEmpty else { return }
            let address =
                Array(text[base]) + [0x40] + text[domain.lowerBound..<(whole ?? domain.upperBound)]
            if !names.seenAddresses.contains(address) { unseen.insert(address) }
        }
    }

    private func takeNeutral(
        _ candidate: AddressReading.Candidate, _ text: Reading.View, isShown: Bool
    ) {
        guard candidate.form == .at else { return }
        let run = candidate.localStarts[candidate.localStarts.count - 1]..<candidate.localEnd
        let domain = candidate.domainStart..<candidate.domainEnds[0]
        let local = NameTable.local(text, run)
        guard text[local].contains(where: { $0.isASCIIAlphanumeric || $0 >= 0x80 }) else { return }
        if isContentID(text, run) { return }
        if isAtRelay(text, run, domain) == true { return }
        if Domain.completeEnd(text, domain) != nil
            || isShown && !candidate.needsDomain && Self.isHost(text[domain])
        {
            isFound = true
        }
    }

    /// Whether octets may be a host without a known domain: with letters, and not a number.
    private static func isHost(_ domain: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let labels = domain.split(separator: UInt8(ascii: "."))
        guard let first = labels.first, let last = labels.last else { return false }
        let isNumber =
            last.allSatisfy { TransferReading.digit($0) != nil }
            && last.contains(where: \.isASCIIDigit)
        return !isNumber && !FileEndings.contains(last)
            && first.contains { $0.isASCIILetter || $0 >= 0x80 } && domain.count >= 2
    }

    /// Whether an address at a relay domain is the one that the team knows; nil for other domains.
    private func isAtRelay(_ text: Reading.View, _ run: Range<Int>, _ domain: Range<Int>) -> Bool? {
        for number in names.relayDomains.indices
        where text.holds(
            names.relayDomains[number], at: domain.lowerBound, before: domain.upperBound)
        {
            let relay = names.relayDomains[number]
            guard !Domain.goesOn(text, domain, after: domain.lowerBound + relay.count) else {
                continue
            }
            // Words may be directly before it, and the ids of parts are also hidden at the relay
            // domain.
            if isContentID(text, run) { return true }
            let own = names.relayAddress.dropLast(relay.count + 1)
            guard names.relayAddress.dropFirst(own.count + 1).elementsEqual(relay) else {
                return false
            }
            // Only its end may be left after a fold, or after octets that a reading took for an
            // encoding.
            let local = NameTable.local(text, run)
            return [local, NameTable.base(text, local)].contains { half in
                let end = text[half].lastIndex { $0 >= 0x80 }.map { $0 + 1 } ?? half.lowerBound
                let tail = text[end..<half.upperBound]
                return tail.suffix(own.count).elementsEqual(own)
                    || !tail.isEmpty && own.suffix(tail.count).elementsEqual(tail)
            }
        }
        return nil
    }

    /// Whether it is the id of a part: `cid:image001.png@01D9ABCD.12345678`.
    private func isContentID(_ text: Reading.View, _ run: Range<Int>) -> Bool {
        text.holds("cid:", at: run.lowerBound - 4) || text.holds("mid:", at: run.lowerBound - 4)
    }

    private func takeWord(
        _ text: Reading.View, _ range: Range<Int>, _ wanted: Set<[UInt8]>, _ lengths: Set<Int>,
        _ subject: Subject
    ) {
        let isCounted = subject == .typed && seenWords.count <= Self.words
        guard isCounted || lengths.contains(range.count) else { return }
        let word = Array(text[range])
        if isCounted { seenWords.insert(word) }
        guard wanted.contains(word) else { return }
        if subject == .typed { isWordFound = true } else { isFound = true }
    }

    // MARK: Tokens

    private func takeAnchor(at index: Int, _ text: Reading.View) {
        guard let anchors = names.tokens?.anchors else { return }
        for number in anchors.indices
        where !anchors[number].isEmpty && text.holds(anchors[number], at: index, before: text.count)
        {
            if isToken?(Self.word(around: index, text), index - Self.start(of: index, text)) == true
            {
                isFound = true
            }
        }
    }

    /// The start of the word that contains an anchor at an index.
    private static func start(of index: Int, _ text: Reading.View) -> Int {
        var start = index
        while start > 0, index - start < AddressReading.maximumLocal, text.gaps[start] == 0,
            isOfToken(text[start - 1])
        {
            start -= 1
        }
        return start
    }

    private static func isOfToken(_ octet: UInt8) -> Bool {
        AddressReading.isAtom(octet) || octet == UInt8(ascii: "=")
    }

    private static func word(around index: Int, _ text: Reading.View) -> [UInt8] {
        var end = index + 1
        while end < text.count, end - index < AddressReading.maximumLocal, text.gaps[end] == 0,
            isOfToken(text[end])
        {
            end += 1
        }
        return Array(text[start(of: index, text)..<end])
    }
}

/// Memory for the searches of one message, of which only one runs at a time. Not thread-safe.
final class SearchMemory {
    let readings = Readings()
    /// By level of encoding.
    let runs = (0..<StretchSearch.maximumDepth).map { _ in HiddenRuns() }
}
