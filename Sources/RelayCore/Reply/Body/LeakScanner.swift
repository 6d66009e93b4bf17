// Searches octets for hidden addresses in all the ways in which they can be read out of a message. Works on streams: memory is
// bounded.

import LeakSearch

/// Makes feeders, which share the needles.
struct LeakScanner {
    private let forms: LeakForms

    init(names: ReplyNames, hidesWords: Bool = true) { forms = LeakForms(names: names, hidesWords: hidesWords) }

    /// - Parameter work: the budget of the search; once it is spent, the search ends and has found nothing.
    func feeder(_ work: WorkBudget? = nil) -> LeakFeeder { LeakFeeder(forms: forms, depth: 0, work: work) }
}

/// Takes octets in any number of pieces. Runs of base64 in them are decoded and fed to another feeder.
final class LeakFeeder: StreamSearch {
    private let forms: LeakForms
    private let depth: Int
    private let work: WorkBudget?
    private let buffer = OctetBuffer(capacity: 0)
    private var carried = 0
    private var run = Base64Run()
    private var inner: LeakFeeder?
    private(set) var isFound = false
    /// Whether a needle is at the end of what was last searched, so that the next octets decide whether it counts.
    private var isOpen = false
    private let view = OctetBuffer(capacity: 0)
    private let marks = OctetBuffer(capacity: 0)
    private let isBeyondASCII: Bool

    /// Octets that are searched at once, and the overlap of two searches: longer than any form of an address.
    private static let window = 65_536
    private static let overlap = 1_024
    /// First octets of a window's reading: whatever begins there was seen by the window before.
    private static let seen = 16
    /// Levels of nested base64 that are decoded.
    private static let maximumDepth = 3

    init(forms: LeakForms, depth: Int, work: WorkBudget?) {
        self.forms = forms
        self.depth = depth
        self.work = work
        isBeyondASCII = forms.isBeyondASCII
    }

    func feed(_ octets: UnsafeBufferPointer<UInt8>) {
        guard let source = octets.baseAddress else { return }
        // Short input in one piece needs no window.
        grow(to: buffer.count + octets.count)
        var position = 0
        while position < octets.count, !isFound, work?.isSpent != true {
            let taken = min(octets.count - position, Self.window - buffer.count)
            (buffer.base + buffer.count).update(from: source + position, count: taken)
            buffer.count += taken
            position += taken
            if buffer.count == Self.window { look(isLast: false) }
        }
    }

    // MARK: Stretches that were searched already

    /// The state of a search at one level of base64.
    fileprivate typealias Level = (held: [UInt8], isOpen: Bool, run: Base64Run.State)

    /// The state of a search between two octets, at every level of base64.
    struct State {
        fileprivate var levels: [Level] = []

        /// Octets that it holds.
        var count: Int { levels.reduce(0) { $0 + $1.held.count + $1.run.count } }
    }

    /// Octets at the beginning of a stretch that are searched again, after what now precedes it: enough to yield the overlap of
    /// two searches at the last level, where 27 of 64 octets are left.
    static let lead = 4_096

    /// Searches all that was fed, and returns the state: `finish` ends the octets, `resume` of any feeder goes on after them.
    func pause() -> State {
        var state = State()
        pause(into: &state)
        return state
    }

    private func pause(into state: inout State) {
        if buffer.count > carried, !isFound { look(isLast: false) }
        if depth < Self.maximumDepth, run.isWorthFlushing {
            let sink = sink
            run.flush(keeping: Base64Run.kept) { sink.feed($0) }
            if sink.isFound { isFound = true }
        }
        state.levels.append((Array(buffer.contents), isOpen, run.state))
        if depth < Self.maximumDepth { inner?.pause(into: &state) }
    }

    /// Goes on like a feeder that was fed the octets before. Octets fed to this one must be finished.
    func resume(_ state: State) { resume(state.levels[...]) }

    private func resume(_ levels: ArraySlice<Level>) {
        guard let level = levels.first else { return }
        grow(to: level.held.count)
        level.held.withUnsafeBufferPointer { held in
            if let source = held.baseAddress { buffer.base.update(from: source, count: held.count) }
        }
        buffer.count = level.held.count
        carried = level.held.count
        isOpen = level.isOpen
        run.resume(level.run)
        if levels.count > 1, depth < Self.maximumDepth { sink.resume(levels.dropFirst()) }
    }

    private func grow(to count: Int) {
        let wanted = min(Self.window, max(count, 1_024))
        guard wanted > buffer.capacity else { return }
        let kept = Array(buffer.contents)
        buffer.reserve(wanted == 1_024 ? wanted : Self.window)
        kept.withUnsafeBufferPointer { kept in
            if let source = kept.baseAddress { buffer.base.update(from: source, count: kept.count) }
        }
        buffer.count = kept.count
    }

    /// Ends the octets; returns whether anything was found in them. The feeder may be used again.
    func finish() -> Bool {
        if buffer.count > carried || isOpen, !isFound { look(isLast: true) }
        if depth < Self.maximumDepth {
            end(&run)
            if inner?.finish() == true { isFound = true }
        }
        buffer.count = 0
        carried = 0
        isOpen = false
        defer { isFound = false }
        return isFound
    }

    /// - Parameter isLast: whether nothing follows.
    private func look(isLast: Bool) {
        let bytes = buffer.contents
        if depth < Self.maximumDepth { decodeRuns(UnsafeBufferPointer(rebasing: bytes[carried...])) }
        if !isFound { views(bytes, isLast: isLast) }
        if inner?.isFound == true { isFound = true }
        let keep = min(Self.overlap, buffer.count)
        buffer.base.update(from: buffer.base + (buffer.count - keep), count: keep)
        buffer.count = keep
        carried = keep
    }

    // Units of work for each octet: to find base64, to decode it (a short run is read in four ways), to test whether a reading
    // is needed, to read, and to search the reading.
    private static let base64Work = 3
    private static let decodingWork = 12
    private static let filterWork = 3
    private static let readingWork = 4
    private static let searchWork = 5
    /// Units for each piece that is searched separately.
    private static let pieceWork = 250

    // MARK: base64

    private func decodeRuns(_ bytes: UnsafeBufferPointer<UInt8>) {
        work?.charge(bytes.count * Self.base64Work)
        // A local copy: access through a property of the object would cost a check for every octet.
        var run = run
        defer { self.run = run }
        var index = 0
        while index < bytes.count, !isFound {
            switch run.take(bytes, &index) {
            case .goesOn: break
            case .isFull:
                let sink = sink
                run.flush { sink.feed($0) }
            case .ended: end(&run)
            }
        }
    }

    private var sink: LeakFeeder {
        if let inner { return inner }
        let made = LeakFeeder(forms: forms, depth: depth + 1, work: work)
        inner = made
        return made
    }

    private func end(_ run: inout Base64Run) {
        defer { run.reset() }
        guard run.isLongEnough else { return }
        work?.charge(Self.pieceWork + run.pending * Self.decodingWork)
        var isFed = run.isFlushed
        run.flushAll(keepingAll: isFed || isBeyondASCII) { octets in
            // Each reading separately: a wrong one looks like binary data, and would make the right one look so too.
            sink.feed(octets)
            if sink.finish() { isFound = true }
            isFed = false
        }
        if isFed, sink.finish() { isFound = true }
    }

    // MARK: Views

    private func views(_ bytes: UnsafeBufferPointer<UInt8>, isLast: Bool) {
        // An open needle is searched in every reading, whatever the octets after it look like.
        let wasOpen = isOpen
        isOpen = false
        // Only base64: it is searched decoded. Undecoded it has no at sign, only chance hits.
        if depth < Self.maximumDepth, !wasOpen, LeakView.isBase64(bytes) { return }
        work?.charge(Self.pieceWork + bytes.count * Self.filterWork)
        let isBinary = !wasOpen && LeakView.isBinary(bytes)
        if forms.mayBegin(in: bytes) {
            work?.charge(bytes.count * Self.readingWork)
            _ = LeakView.plain.read(bytes, into: view, marks: marks)
            search(.plain, isBinary: isBinary, isLast: isLast)
        }
        guard !isBinary else { return }
        for (kind, mark) in [(LeakView.percent, 0x25), (.references, 0x26), (.quotedPrintable, 0x3D), (.xtext, 0x2B)]
            as [(LeakView, UInt8)]
        where !isFound && bytes.contains(mark) && kind.decodes(anyOf: bytes) {
            work?.charge(bytes.count * Self.readingWork)
            // Where nothing is encoded in this way, the same reading was already searched.
            if kind.read(bytes, into: view, marks: marks) { search(kind, isBinary: false, isLast: isLast) }
        }
    }

    private func search(_ kind: LeakView, isBinary: Bool, isLast: Bool) {
        work?.charge(view.count * Self.searchWork)
        for withoutDots in [false, true] where !isFound && (!withoutDots || (!forms.dotless.isEmpty && !isBinary)) {
            if withoutDots { Self.dropDots(view, marks) }
            // A window begins anywhere: the one before saw what its first octets belong to.
            let first = carried > 0 ? Self.seen : 0
            switch forms.find(
                in: view.contents, marks: marks.contents, from: first, withoutDots: withoutDots, isBinary: isBinary,
                isLast: isLast)
            {
            case .nothing: continue
            case .needle: isFound = true
            case .atEnd(let count):
                // A needle that the next search would not see again counts at once.
                if atEndOfKept(kind, withoutDots) < count { isFound = true } else { isOpen = true }
            }
        }
    }

    /// How many needles are at the end of the octets that the next search sees again.
    private func atEndOfKept(_ kind: LeakView, _ withoutDots: Bool) -> Int {
        let kept = UnsafeBufferPointer(rebasing: buffer.contents.suffix(Self.overlap))
        work?.charge(kept.count * (Self.readingWork + Self.searchWork))
        let (view, marks) = (OctetBuffer(capacity: kept.count), OctetBuffer(capacity: kept.count))
        _ = kind.read(kept, into: view, marks: marks)
        if withoutDots { Self.dropDots(view, marks) }
        let finding = forms.find(
            in: view.contents, marks: marks.contents, from: Self.seen, withoutDots: withoutDots, isBinary: false, isLast: false)
        if case .atEnd(let count) = finding { return count }
        return 0
    }

    private static func dropDots(_ view: OctetBuffer, _ marks: OctetBuffer) {
        let (octets, flags) = (view.base, marks.base)
        var kept = 0
        for index in 0..<view.count {
            octets[kept] = octets[index]
            flags[kept] = flags[index]
            kept += octets[index] == 0x2E ? 0 : 1
        }
        view.count = kept
        marks.count = kept
    }
}
