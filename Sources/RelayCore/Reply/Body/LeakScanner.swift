// Looks through octets for hidden addresses in all the ways in which they can be read out of a message. Streams: memory is bounded.

/// Makes feeders, which share the needles.
struct LeakScanner {
    private let forms: LeakForms

    init(names: ReplyNames) { forms = LeakForms(names: names) }

    /// - Parameter work: what the search is charged to; where that is spent, it ends and has found nothing.
    func feeder(_ work: WorkBudget? = nil) -> LeakFeeder { LeakFeeder(forms: forms, depth: 0, work: work) }
}

/// Takes octets in any number of pieces. Runs of base64 in them are decoded and fed to a feeder of their own.
final class LeakFeeder {
    private let forms: LeakForms
    private let depth: Int
    private let work: WorkBudget?
    private let buffer = OctetBuffer(capacity: 0)
    private var carried = 0
    private var run = Base64Run()
    private var inner: LeakFeeder?
    private(set) var isFound = false
    private let view = OctetBuffer(capacity: 0)
    private let marks = OctetBuffer(capacity: 0)
    private let isBeyondASCII: Bool

    /// Octets that are looked at together, and those that two looks share: longer than any form of an address.
    private static let window = 65_536
    private static let overlap = 1_024
    /// Octets of a reading at the beginning of a window at which nothing begins that the window before did not see.
    private static let seen = 16
    /// base64 within base64 that is decoded.
    private static let maximumDepth = 3

    init(forms: LeakForms, depth: Int, work: WorkBudget?) {
        self.forms = forms
        self.depth = depth
        self.work = work
        isBeyondASCII = forms.isBeyondASCII
    }

    func feed(_ octets: UnsafeBufferPointer<UInt8>) {
        guard let source = octets.baseAddress else { return }
        // What comes at once and is short needs no window of its own.
        grow(to: buffer.count + octets.count)
        var position = 0
        while position < octets.count, !isFound, work?.isSpent != true {
            let taken = min(octets.count - position, Self.window - buffer.count)
            (buffer.base + buffer.count).update(from: source + position, count: taken)
            buffer.count += taken
            position += taken
            if buffer.count == Self.window { look() }
        }
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

    /// Ends the octets; says whether anything was found in them. The feeder may be used anew.
    func finish() -> Bool {
        if buffer.count > carried, !isFound { look() }
        if depth < Self.maximumDepth {
            end(&run)
            if inner?.finish() == true { isFound = true }
        }
        buffer.count = 0
        carried = 0
        defer { isFound = false }
        return isFound
    }

    private func look() {
        let bytes = buffer.contents
        if depth < Self.maximumDepth { decodeRuns(UnsafeBufferPointer(rebasing: bytes[carried...])) }
        if !isFound { views(bytes) }
        if inner?.isFound == true { isFound = true }
        let keep = min(Self.overlap, buffer.count)
        buffer.base.update(from: buffer.base + (buffer.count - keep), count: keep)
        buffer.count = keep
        carried = keep
    }

    // Units of work for each octet: to look for base64, to decode it (a short run is read in four ways), to look whether a reading is worth
    // while, to read, and to search what was read.
    private static let base64Work = 3
    private static let decodingWork = 12
    private static let filterWork = 3
    private static let readingWork = 4
    private static let searchWork = 5
    /// Units for each piece that is searched by itself.
    private static let pieceWork = 250

    // MARK: base64

    private func decodeRuns(_ bytes: UnsafeBufferPointer<UInt8>) {
        work?.charge(bytes.count * Self.base64Work)
        // A copy of one's own: every octet through a property of the object would cost a check.
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
            // Each reading by itself: what a wrong one gives looks like binary data, and would make the right one look so too.
            sink.feed(octets)
            if sink.finish() { isFound = true }
            isFed = false
        }
        if isFed, sink.finish() { isFound = true }
    }

    // MARK: Views

    private func views(_ bytes: UnsafeBufferPointer<UInt8>) {
        // Nothing but base64: it is looked at decoded. As it stands it has no at sign, only chance hits.
        if depth < Self.maximumDepth, LeakView.isBase64(bytes) { return }
        work?.charge(Self.pieceWork + bytes.count * Self.filterWork)
        let isBinary = LeakView.isBinary(bytes)
        if forms.mayBegin(in: bytes) {
            work?.charge(bytes.count * Self.readingWork)
            _ = LeakView.plain.read(bytes, into: view, marks: marks)
            search(isBinary: isBinary)
        }
        guard !isBinary else { return }
        for (kind, mark) in [(LeakView.percent, 0x25), (.references, 0x26), (.quotedPrintable, 0x3D), (.xtext, 0x2B)] as [(LeakView, UInt8)]
        where !isFound && bytes.contains(mark) && kind.decodes(anyOf: bytes) {
            work?.charge(bytes.count * Self.readingWork)
            // Where nothing is encoded in that way, the reading is one that was searched already.
            if kind.read(bytes, into: view, marks: marks) { search(isBinary: isBinary) }
        }
    }

    private func search(isBinary: Bool) {
        work?.charge(view.count * Self.searchWork)
        // A window begins anywhere: what its first octets belong to was seen by the one before.
        let first = carried > 0 ? Self.seen : 0
        isFound = forms.occur(in: view.contents, marks: marks.contents, from: first, withoutDots: false, isBinary: isBinary)
        guard !isFound, !forms.dotless.isEmpty, !isBinary else { return }
        dropDots()
        isFound = forms.occur(in: view.contents, marks: marks.contents, from: first, withoutDots: true, isBinary: isBinary)
    }

    private func dropDots() {
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

/// The sextets of a run of base64, as they come.
struct Base64Run {
    enum Step { case goesOn, isFull, ended }

    private let sextets = OctetBuffer(capacity: Self.chunk)
    private let output = OctetBuffer(capacity: Self.chunk)
    private var total = 0
    private var breaks = 0
    /// Sextets held when the last line break came; 0 for none.
    private var lastBreak = 0
    /// Whether a part of the run was handed on already.
    private(set) var isFlushed = false

    /// Shorter runs hold no address worth its name; every word of a text is one.
    private static let minimum = 12
    private static let chunk = 32_768
    /// Runs up to here are tried at each of the four places where a group could begin; longer ones begin at a group.
    private static let tried = 400
    /// A short run is worth a look where it decodes to so many octets in a row that a text may hold: no address is shorter.
    private static let shortest = 5

    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 255, count: 256)
        for (value, octet) in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8.enumerated() {
            table[Int(octet)] = UInt8(value)
        }
        table[Int(UInt8(ascii: "-"))] = 62
        table[Int(UInt8(ascii: "_"))] = 63
        return table
    }()

    var isLongEnough: Bool { total >= Self.minimum }
    /// Sextets that are still to be decoded.
    var pending: Int { sextets.count }

    /// Takes octets from `index` on, up to where something is to be done.
    mutating func take(_ bytes: UnsafeBufferPointer<UInt8>, _ index: inout Int) -> Step {
        let base = sextets.base
        var count = sextets.count
        var before = count
        defer {
            total += count - before
            sextets.count = count
        }
        return Self.values.withUnsafeBufferPointer { values in
            while index < bytes.count {
                let octet = bytes[index]
                let value = values[Int(octet)]
                index += 1
                if value < 64 {
                    base[count] = value
                    count += 1
                    breaks = 0
                    if count == Self.chunk { return .isFull }
                    continue
                }
                let length = total + count - before
                if length == 0 || octet == 0x0D { continue }
                if octet == 0x0A, breaks == 0, length % 4 == 0 {
                    breaks = 1
                    lastBreak = count
                    continue
                }
                guard length < Self.minimum else { return .ended }
                // A word of a text, of which there are too many for a call each.
                (count, before, total, breaks, lastBreak) = (0, 0, 0, 0, 0)
            }
            return .goesOn
        }
    }

    mutating func reset() {
        sextets.count = 0
        total = 0
        breaks = 0
        lastBreak = 0
        isFlushed = false
    }

    /// Decodes what is whole so far.
    mutating func flush(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let whole = sextets.count / 4 * 4
        decode(from: 0, to: whole)
        let rest = sextets.count - whole
        sextets.base.update(from: sextets.base + whole, count: rest)
        sextets.count = rest
        lastBreak = 0
        isFlushed = true
        body(output.contents)
    }

    /// Decodes the rest, a short run at every alignment.
    /// - Parameter keepingAll: whether also what no text could be is handed on.
    mutating func flushAll(keepingAll: Bool, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let isShort = total < Self.tried
        // The last line may have been the beginning of something else.
        if lastBreak > 0, lastBreak < sextets.count {
            decode(from: 0, to: lastBreak)
            output.base[output.count] = 0x0A
            output.count += 1
            body(output.contents)
        }
        for start in 0..<(isShort ? 4 : 1) where start < sextets.count {
            decode(from: start, to: sextets.count)
            guard keepingAll || !isShort || mayBeText else { continue }
            // A line break between the readings keeps them from running into one another.
            output.base[output.count] = 0x0A
            output.count += 1
            body(output.contents)
        }
    }

    /// Whether a few printable octets stand in a row, NUL between them aside.
    private var mayBeText: Bool {
        var row = 0
        for octet in output.contents {
            if octet >= 0x20 && octet < 0x7F {
                row += 1
                if row == Self.shortest { return true }
            } else if octet != 0, octet != 0x0D, octet != 0x0A {
                row = 0
            }
        }
        return false
    }

    private func decode(from start: Int, to end: Int) {
        let (input, result) = (sextets.base, output.base)
        var count = 0
        var index = start
        while index + 4 <= end {
            let group =
                UInt32(input[index]) << 18 | UInt32(input[index + 1]) << 12 | UInt32(input[index + 2]) << 6 | UInt32(input[index + 3])
            result[count] = UInt8(truncatingIfNeeded: group >> 16)
            result[count + 1] = UInt8(truncatingIfNeeded: group >> 8)
            result[count + 2] = UInt8(truncatingIfNeeded: group)
            count += 3
            index += 4
        }
        if end - index >= 2 {
            result[count] = input[index] << 2 | input[index + 1] >> 4
            count += 1
        }
        if end - index == 3 {
            result[count] = input[index + 1] << 4 | input[index + 2] >> 2
            count += 1
        }
        output.count = count
    }
}
