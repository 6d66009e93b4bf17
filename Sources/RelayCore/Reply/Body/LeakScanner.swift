// Looks through octets for hidden addresses in all the ways in which they can be read out of a message. Streams: memory is bounded.

/// Makes feeders, which share the needles.
struct LeakScanner {
    private let forms: LeakForms

    init(names: ReplyNames) { forms = LeakForms(names: names) }

    func feeder() -> LeakFeeder { LeakFeeder(forms: forms, depth: 0) }
}

/// Takes octets in any number of pieces. Runs of base64 in them are decoded and fed to a feeder of their own.
final class LeakFeeder {
    private let forms: LeakForms
    private let depth: Int
    private var buffer: [UInt8] = []
    private var carried = 0
    private var run = Base64Run()
    private var inner: LeakFeeder?
    private(set) var isFound = false
    private var view: [UInt8] = []
    private var marks: [UInt8] = []

    /// Octets that are looked at together, and those that two looks share: longer than any form of an address.
    private static let window = 65_536
    private static let overlap = 1_024
    /// base64 within base64 that is decoded.
    private static let maximumDepth = 3

    init(forms: LeakForms, depth: Int) {
        self.forms = forms
        self.depth = depth
        buffer.reserveCapacity(Self.window)
    }

    func feed(_ octets: UnsafeBufferPointer<UInt8>) {
        var position = 0
        while position < octets.count, !isFound {
            let end = min(octets.count, position + Self.window - buffer.count)
            buffer.append(contentsOf: UnsafeBufferPointer(rebasing: octets[position..<end]))
            position = end
            if buffer.count == Self.window { look() }
        }
    }

    /// Ends the octets; says whether anything was found in them.
    func finish() -> Bool {
        if buffer.count > carried, !isFound { look() }
        if depth < Self.maximumDepth {
            end(&run)
            if inner?.finish() == true { isFound = true }
        }
        buffer.removeAll(keepingCapacity: true)
        carried = 0
        return isFound
    }

    private func look() {
        let fresh = carried
        buffer.withUnsafeBufferPointer { bytes in
            if depth < Self.maximumDepth { decodeRuns(UnsafeBufferPointer(rebasing: bytes[fresh...])) }
            views(bytes)
        }
        if inner?.isFound == true { isFound = true }
        let keep = min(Self.overlap, buffer.count)
        buffer.removeFirst(buffer.count - keep)
        carried = keep
    }

    // MARK: base64

    private func decodeRuns(_ bytes: UnsafeBufferPointer<UInt8>) {
        // A copy of one's own: every octet through a property of the object would cost a check.
        var run = Base64Run()
        swap(&run, &self.run)
        defer { swap(&run, &self.run) }
        for octet in bytes {
            switch run.take(octet) {
            case .goesOn: continue
            case .isFull:
                let sink = sink
                run.flush { sink.feed($0) }
            case .ended: end(&run)
            }
            if isFound { return }
        }
    }

    private var sink: LeakFeeder {
        if let inner { return inner }
        let made = LeakFeeder(forms: forms, depth: depth + 1)
        inner = made
        return made
    }

    private func end(_ run: inout Base64Run) {
        defer { run.reset() }
        guard run.isLongEnough else { return }
        let sink = sink
        run.flushAll { sink.feed($0) }
        if sink.finish() { isFound = true }
    }

    // MARK: Views

    private func views(_ bytes: UnsafeBufferPointer<UInt8>) {
        // Nothing but base64: it is looked at decoded. As it stands it has no at sign, only chance hits.
        if depth < Self.maximumDepth, LeakView.isBase64(bytes) { return }
        var kinds: [LeakView] = [.plain]
        let isBinary = LeakView.isBinary(bytes)
        if !isBinary {
            if bytes.contains(UInt8(ascii: "%")) { kinds.append(.percent) }
            if bytes.contains(UInt8(ascii: "&")) { kinds.append(.references) }
            if bytes.contains(UInt8(ascii: "=")) { kinds.append(.quotedPrintable) }
            if bytes.contains(UInt8(ascii: "+")) { kinds.append(.xtext) }
        }
        for kind in kinds where !isFound {
            kind.read(bytes, into: &view, marks: &marks)
            search(withoutDots: false, isBinary: isBinary)
            guard !isFound, !forms.dotless.isEmpty, !isBinary else { continue }
            dropDots()
            search(withoutDots: true, isBinary: isBinary)
        }
    }

    private func search(withoutDots: Bool, isBinary: Bool) {
        view.withUnsafeBufferPointer { view in
            marks.withUnsafeBufferPointer { marks in
                if forms.occur(in: view, marks: marks, withoutDots: withoutDots, isBinary: isBinary) { isFound = true }
            }
        }
    }

    private func dropDots() {
        var kept = 0
        for index in view.indices where view[index] != 0x2E {
            view[kept] = view[index]
            marks[kept] = marks[index]
            kept += 1
        }
        view.removeLast(view.count - kept)
        marks.removeLast(marks.count - kept)
    }
}

/// The sextets of a run of base64, as they come.
struct Base64Run {
    enum Step { case goesOn, isFull, ended }

    private var sextets: [UInt8] = []
    private var total = 0
    private var breaks = 0
    private var output: [UInt8] = []

    /// Shorter runs hold no address worth its name; every word of a text is one.
    private static let minimum = 12
    private static let chunk = 32_768
    /// Runs up to here are tried at each of the four places where a group could begin; longer ones begin at a group.
    private static let tried = 400

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

    mutating func take(_ octet: UInt8) -> Step {
        let value = Self.values[Int(octet)]
        if value < 64 {
            breaks = 0
            sextets.append(value)
            total += 1
            return sextets.count >= Self.chunk ? .isFull : .goesOn
        }
        guard total > 0 else { return .goesOn }
        if octet == 0x0D { return .goesOn }
        if octet == 0x0A, breaks == 0, total % 4 == 0 {
            breaks = 1
            return .goesOn
        }
        return .ended
    }

    mutating func reset() {
        sextets.removeAll(keepingCapacity: true)
        total = 0
        breaks = 0
    }

    /// Decodes what is whole so far.
    mutating func flush(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let whole = sextets.count / 4 * 4
        decode(from: 0, to: whole)
        sextets.removeFirst(whole)
        output.withUnsafeBufferPointer(body)
    }

    /// Decodes the rest, a short run at every alignment.
    mutating func flushAll(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        for start in 0..<(total < Self.tried ? 4 : 1) where start < sextets.count {
            decode(from: start, to: sextets.count)
            // A line break between the readings keeps them from running into one another.
            output.append(0x0A)
            output.withUnsafeBufferPointer(body)
        }
    }

    private mutating func decode(from start: Int, to end: Int) {
        output.removeAll(keepingCapacity: true)
        var group: UInt32 = 0
        var count = 0
        for index in start..<end {
            group = group << 6 | UInt32(sextets[index])
            count += 1
            if count == 4 {
                output.append(UInt8(truncatingIfNeeded: group >> 16))
                output.append(UInt8(truncatingIfNeeded: group >> 8))
                output.append(UInt8(truncatingIfNeeded: group))
                group = 0
                count = 0
            }
        }
        if count == 2 { output.append(UInt8(truncatingIfNeeded: group >> 4)) }
        if count == 3 {
            output.append(UInt8(truncatingIfNeeded: group >> 10))
            output.append(UInt8(truncatingIfNeeded: group >> 2))
        }
    }
}
