// Body canonicalization (RFC 6376 sections 3.4.3 and 3.4.4) as a stream: takes chunks of any size
// and outputs long runs.

/// Makes the canonical form of one body. For one thread at a time.
///
/// There are two stages. The first, for relaxed only, changes white space within and at the end of
/// lines, sixteen octets at a time. The second reads only the ends of its input. It holds back line
/// ends, as they are dropped if no more octets follow.
final class DKIMBodyCanonicalizer {
    /// Octets that the first stage collects before it outputs them. A higher number costs cache, a
    /// lower one costs hash calls.
    private static let bufferSize = 4_096

    let kind: DKIMCanonicalization
    private let output: (UnsafeRawBufferPointer) -> Void

    // First stage: collected octets; white space before an octet that is not yet known, and whether
    // a CR follows it.
    private let buffer: UnsafeMutablePointer<UInt8>
    private var buffered = 0
    private var heldSpace = false
    private var heldSpaceCR = false
    // Second stage: line ends and a CR that were not yet output.
    private var heldLineEnds = 0
    private var heldCR = false
    private var isEmpty = true

    /// - Parameter output: receives the canonical octets in order; the memory is valid only during
    ///   the call.
    init(_ kind: DKIMCanonicalization, output: @escaping (UnsafeRawBufferPointer) -> Void) {
        self.kind = kind
        self.output = output
        buffer = .allocate(capacity: Self.bufferSize)
    }

    deinit { buffer.deallocate() }

    func update(_ chunk: UnsafeRawBufferPointer) {
        guard let base = chunk.baseAddress, chunk.count > 0 else { return }
        switch kind {
        case .simple: pass(base, chunk.count)
        case .relaxed: relax(base, chunk.count)
        }
    }

    /// Ends the body. Call it once.
    func finish() {
        // White space is dropped only before an actual CRLF. In a last line without CRLF, it is
        // white space within the line, and a CR after it does not end the line either.
        if heldSpace { put(0x20) }
        if heldSpaceCR { put(0x0D) }
        flush()
        if heldCR {
            releaseHeld()
            emitLineEnds(1)
        } else if !isEmpty || kind == .simple {
            // One line end is kept, and a body without one gets it. An empty body is CRLF in simple
            // and empty in relaxed.
            emitLineEnds(1)
        }
    }

    // MARK: White space (relaxed)

    private func relax(_ base: UnsafeRawPointer, _ count: Int) {
        var index = resumeSpace(base, count)
        index = relaxBlocks(base, from: index, count)
        while index < count {
            guard DKIMSyntax.isWhiteSpace(octet(base, index)) else {
                put(octet(base, index))
                index += 1
                continue
            }
            while index < count, DKIMSyntax.isWhiteSpace(octet(base, index)) { index += 1 }
            guard index < count, !(index + 1 == count && octet(base, index) == 0x0D) else {
                heldSpace = true
                heldSpaceCR = index < count
                return
            }
            if !(octet(base, index) == 0x0D && octet(base, index + 1) == 0x0A) { put(0x20) }
        }
    }

    /// Decides on white space held from the last chunk; returns the offset at which to continue in
    /// this chunk.
    private func resumeSpace(_ base: UnsafeRawPointer, _ count: Int) -> Int {
        guard heldSpace else { return 0 }
        if heldSpaceCR {
            if octet(base, 0) != 0x0A { put(0x20) }
            put(0x0D)
            heldSpace = false
            heldSpaceCR = false
            return 0
        }
        var index = 0
        while index < count, DKIMSyntax.isWhiteSpace(octet(base, index)) { index += 1 }
        guard index < count, !(index + 1 == count && octet(base, index) == 0x0D) else {
            heldSpaceCR = index < count
            return count
        }
        if !(octet(base, index) == 0x0D && octet(base, index + 1) == 0x0A) { put(0x20) }
        heldSpace = false
        return index
    }

    /// Processes blocks of sixteen octets while at least two more follow, and returns the offset at
    /// which it stopped. The result for an octet depends only on itself and the next two: white
    /// space is dropped before white space and before CRLF, and otherwise becomes a space.
    private func relaxBlocks(_ base: UnsafeRawPointer, from: Int, _ count: Int) -> Int {
        let tab = SIMD16<UInt8>(repeating: 0x09)
        let space = SIMD16<UInt8>(repeating: 0x20)
        let cr = SIMD16<UInt8>(repeating: 0x0D)
        let lf = SIMD16<UInt8>(repeating: 0x0A)
        var index = from
        var used = buffered
        while index + 18 <= count {
            if used + 16 > Self.bufferSize {
                buffered = used
                flush()
                used = 0
            }
            let target = buffer + used
            let here = base.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            let next = base.loadUnaligned(fromByteOffset: index + 1, as: SIMD16<UInt8>.self)
            let tabs = here .== tab
            let spaces = here .== space
            // A first test that nearly always fails: a tab, or a space
            // before a space or control character.
            let suspects = unsafeBitCast(
                tabs .| (spaces .& (next .<= space)), to: SIMD2<UInt64>.self)
            if suspects[0] | suspects[1] == 0 {
                UnsafeMutableRawPointer(target).storeBytes(of: here, as: SIMD16<UInt8>.self)
                used += 16
            } else {
                let afterNext = base.loadUnaligned(
                    fromByteOffset: index + 2, as: SIMD16<UInt8>.self)
                let dropped =
                    (tabs .| spaces)
                    .& ((next .== tab) .| (next .== space) .| ((next .== cr) .& (afterNext .== lf)))
                let values = unsafeBitCast(
                    here.replacing(with: space, where: tabs), to: SIMD2<UInt64>.self)
                let drops = unsafeBitCast(dropped, to: SIMD2<UInt64>.self)
                used += Self.store(
                    values[0].littleEndian, without: drops[0].littleEndian, at: target)
                used += Self.store(
                    values[1].littleEndian, without: drops[1].littleEndian, at: buffer + used)
            }
            index += 16
        }
        buffered = used
        return index
    }

    /// Writes those of eight octets that have a zero mask octet; returns their number. Without
    /// branches, as the pattern is unpredictable.
    @inline(__always)
    private static func store(
        _ values: UInt64, without mask: UInt64, at target: UnsafeMutablePointer<UInt8>
    ) -> Int {
        if mask == 0 {
            UnsafeMutableRawPointer(target).storeBytes(of: values.littleEndian, as: UInt64.self)
            return 8
        }
        var values = values
        var kept = ~mask
        var written = 0
        for _ in 0..<8 {
            target[written] = UInt8(truncatingIfNeeded: values)
            written &+= Int(truncatingIfNeeded: kept & 1)
            values >>= 8
            kept >>= 8
        }
        return written
    }

    private func put(_ octet: UInt8) {
        if buffered == Self.bufferSize { flush() }
        buffer[buffered] = octet
        buffered += 1
    }

    private func flush() {
        guard buffered > 0 else { return }
        pass(UnsafeRawPointer(buffer), buffered)
        buffered = 0
    }

    // MARK: Line ends at the end (both)

    private func pass(_ base: UnsafeRawPointer, _ count: Int) {
        guard count > 0 else { return }
        var start = 0
        if heldCR {
            if octet(base, 0) == 0x0A {
                heldLineEnds += 1
                heldCR = false
                start = 1
            } else {
                releaseHeld()
            }
        }
        var end = count
        let endsWithCR = end > start && octet(base, end - 1) == 0x0D
        if endsWithCR { end -= 1 }
        var lineEnds = 0
        while end - 2 >= start, octet(base, end - 1) == 0x0A, octet(base, end - 2) == 0x0D {
            end -= 2
            lineEnds += 1
        }
        if end > start {
            releaseHeld()
            isEmpty = false
            output(UnsafeRawBufferPointer(start: base + start, count: end - start))
        }
        heldLineEnds += lineEnds
        heldCR = endsWithCR
    }

    /// More octets follow, so the held ones belong to the body.
    private func releaseHeld() {
        guard heldLineEnds > 0 || heldCR else { return }
        isEmpty = false
        emitLineEnds(heldLineEnds)
        heldLineEnds = 0
        if heldCR {
            Self.lineEnds.withUnsafeBytes { output(UnsafeRawBufferPointer(rebasing: $0[..<1])) }
        }
        heldCR = false
    }

    private static let lineEnds = [UInt8]((0..<1024).map { $0 % 2 == 0 ? 0x0D : 0x0A })

    private func emitLineEnds(_ count: Int) {
        var octets = count * 2
        Self.lineEnds.withUnsafeBytes { lineEnds in
            while octets > 0 {
                let piece = min(octets, lineEnds.count)
                output(UnsafeRawBufferPointer(rebasing: lineEnds[..<piece]))
                octets -= piece
            }
        }
    }

    @inline(__always)
    private func octet(_ base: UnsafeRawPointer, _ offset: Int) -> UInt8 {
        base.load(fromByteOffset: offset, as: UInt8.self)
    }
}
