// base64 found in octets of any kind: its characters are collected as they come, and decoded in every possible way.

import LeakSearch

/// The sextets of a run of base64, as they come.
struct Base64Run {
    enum Step { case goesOn, isFull, ended }

    private let sextets = OctetBuffer(capacity: Self.chunk)
    private let output = OctetBuffer(capacity: Self.chunk)
    private var total = 0
    private var breaks = 0
    /// Sextets held when the last line break came; 0 for none.
    private var lastBreak = 0
    /// Whether a part of the run was already passed on.
    private(set) var isFlushed = false

    private static let chunk = 32_768
    /// Sextets that stay held when a search pauses: the last line, which may not belong to the run, is among them.
    static let kept = 2_048
    /// A short run is searched where it decodes to this many octets of text in a row: no address is shorter.
    private static let shortest = 5

    var isLongEnough: Bool { total >= Base64Sextets.minimum }
    /// Sextets that are still to be decoded.
    var pending: Int { sextets.count }

    /// Takes octets from `index` on, until the caller must act.
    mutating func take(_ bytes: UnsafeBufferPointer<UInt8>, _ index: inout Int) -> Step {
        let base = sextets.base
        var count = sextets.count
        var before = count
        defer {
            total += count - before
            sextets.count = count
        }
        return Base64Sextets.values.withUnsafeBufferPointer { values in
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
                guard length < Base64Sextets.minimum else { return .ended }
                // A word of a text; words are too many for a call each.
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

    /// The state of a run between two octets.
    struct State {
        fileprivate let sextets: [UInt8]
        fileprivate let total: Int
        fileprivate let breaks: Int
        fileprivate let lastBreak: Int
        fileprivate let isFlushed: Bool

        /// Octets that it holds.
        var count: Int { sextets.count }
    }

    var state: State {
        State(sextets: Array(sextets.contents), total: total, breaks: breaks, lastBreak: lastBreak, isFlushed: isFlushed)
    }

    mutating func resume(_ state: State) {
        state.sextets.withUnsafeBufferPointer { held in
            if let source = held.baseAddress { sextets.base.update(from: source, count: held.count) }
        }
        sextets.count = state.sextets.count
        total = state.total
        breaks = state.breaks
        lastBreak = state.lastBreak
        isFlushed = state.isFlushed
    }

    /// Whether enough of a long run is held to decode it before its end.
    var isWorthFlushing: Bool { total >= Base64Sextets.tried && sextets.count >= Self.kept + Base64Sextets.tried }

    /// Decodes the complete groups so far.
    /// - Parameter kept: sextets that stay, at least.
    mutating func flush(keeping kept: Int = 0, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        // The line after the last break is kept too: it may not belong to the run.
        let end = kept > 0 && lastBreak > 0 ? lastBreak : sextets.count
        let whole = max(0, end - kept) / 4 * 4
        decode(from: 0, to: whole)
        let rest = sextets.count - whole
        sextets.base.update(from: sextets.base + whole, count: rest)
        sextets.count = rest
        lastBreak = max(0, lastBreak - whole)
        isFlushed = true
        body(output.contents)
    }

    /// Decodes the rest, a short run at every alignment.
    /// - Parameter keepingAll: whether results that cannot be text are passed on too.
    mutating func flushAll(keepingAll: Bool, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let isShort = total < Base64Sextets.tried
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
            // A line break between the readings keeps them apart.
            output.base[output.count] = 0x0A
            output.count += 1
            body(output.contents)
        }
    }

    /// Whether a few printable octets are in a row, ignoring NUL and line breaks between them.
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

    private func decode(from start: Int, to end: Int) { Base64Sextets.decode(sextets, from: start, to: end, into: output) }
}
