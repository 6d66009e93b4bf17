// Body canonicalization (RFC 6376 sections 3.4.3 and 3.4.4) as a stream: chunks of any size in, long runs out.

/// Makes the canonical form of one body. For one thread at a time.
///
/// Two stages. The first, for relaxed alone, changes white space within and at the end of lines. The second holds back the
/// line ends at the end of what it has seen, since they vanish where nothing follows. Octets are never looked at one by one
/// where nothing has to be changed, and small pieces are gathered before they go on.
final class DKIMBodyCanonicalizer {
    /// Pieces are gathered up to this size; more costs cache, less costs calls of the hash.
    private static let bufferSize = 16384
    /// From this size on a piece goes on without being copied.
    private static let directSize = 2048

    private let kind: DKIMCanonicalization
    private let output: (UnsafeRawBufferPointer) -> Void
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 16)
    private var buffered = 0

    // First stage: white space seen, of which it is not known what follows; with a CR behind it.
    private var heldSpace = false
    private var heldSpaceCR = false
    // Second stage: line ends and a CR not passed on yet.
    private var heldLineEnds = 0
    private var heldCR = false
    private var isEmpty = true

    /// - Parameter output: takes the canonical octets in order; the memory is only good during the call.
    init(_ kind: DKIMCanonicalization, output: @escaping (UnsafeRawBufferPointer) -> Void) {
        self.kind = kind
        self.output = output
    }

    deinit { buffer.deallocate() }

    func update(_ chunk: UnsafeRawBufferPointer) {
        guard let base = chunk.baseAddress, chunk.count > 0 else { return }
        switch kind {
        case .simple: pass(base, chunk.count)
        case .relaxed: relax(base, chunk.count)
        }
    }

    /// Ends the body. Called once.
    func finish() {
        // White space is only dropped before a CRLF that is there: in a last line without one it is white space within the line.
        // A CR behind it then ends no line either.
        if heldSpace { passSpace() }
        if heldSpaceCR { passBytes(Self.lineEnd, 1) }
        if heldCR {
            releaseHeld()
            emit(Self.lineEnd, 2)
        } else if !isEmpty || kind == .simple {
            // One line end stays of all; a body without one gets it. An empty body is CRLF in simple, nothing in relaxed.
            emit(Self.lineEnd, 2)
        }
        flush()
    }

    // MARK: White space (relaxed)

    private func relax(_ base: UnsafeRawPointer, _ count: Int) {
        var start = resumeSpace(base, count)
        guard start < count else { return }
        var index = start
        while true {
            index = Self.irregularSpace(base, from: index, count)
            guard index < count else { break }
            var next = index + 1
            while next < count, DKIMSyntax.isWhiteSpace(octet(base, next)) { next += 1 }
            if next == count {
                pass(base + start, index - start)
                heldSpace = true
                return
            }
            if octet(base, next) == 0x0D {
                if next + 1 == count {
                    pass(base + start, index - start)
                    heldSpace = true
                    heldSpaceCR = true
                    return
                }
                if octet(base, next + 1) == 0x0A {
                    pass(base + start, index - start)
                    start = next
                    index = next
                    continue
                }
            }
            if next > index + 1 || octet(base, index) != 0x20 {
                pass(base + start, index - start)
                passSpace()
                start = next
            }
            index = next
        }
        pass(base + start, count - start)
    }

    /// Decides on white space held from the chunk before; returns where this chunk is to be read on.
    private func resumeSpace(_ base: UnsafeRawPointer, _ count: Int) -> Int {
        guard heldSpace else { return 0 }
        if heldSpaceCR {
            if octet(base, 0) != 0x0A { passSpace() }
            heldSpace = false
            heldSpaceCR = false
            passBytes(Self.lineEnd, 1)
            return 0
        }
        var index = 0
        while index < count, DKIMSyntax.isWhiteSpace(octet(base, index)) { index += 1 }
        guard index < count else { return count }
        if octet(base, index) == 0x0D {
            if index + 1 == count {
                heldSpaceCR = true
                return count
            }
            if octet(base, index + 1) != 0x0A { passSpace() }
        } else {
            passSpace()
        }
        heldSpace = false
        return index
    }

    /// The next tab, or space before white space, a control character or the end: all that relaxed can have to change.
    @inline(__always)
    private static func irregularSpace(_ base: UnsafeRawPointer, from: Int, _ count: Int) -> Int {
        var index = from
        let tab = SIMD16<UInt8>(repeating: 0x09), space = SIMD16<UInt8>(repeating: 0x20)
        while index + 17 <= count {
            let here = base.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            let next = base.loadUnaligned(fromByteOffset: index + 1, as: SIMD16<UInt8>.self)
            let mask = unsafeBitCast((here .== tab) .| ((here .== space) .& (next .<= space)), to: SIMD2<UInt64>.self)
            if mask[0] | mask[1] != 0 {
                let found = mask[0] != 0 ? mask[0].littleEndian.trailingZeroBitCount : 64 + mask[1].littleEndian.trailingZeroBitCount
                return index + found / 8
            }
            index += 16
        }
        while index < count {
            let octet = base.load(fromByteOffset: index, as: UInt8.self)
            if octet == 0x09 || octet == 0x20 && (index + 1 == count || base.load(fromByteOffset: index + 1, as: UInt8.self) <= 0x20) {
                return index
            }
            index += 1
        }
        return count
    }

    // MARK: Line ends at the end (both)

    private static let lineEnd: StaticString = "\r\n"

    private func passSpace() { passBytes(" ", 1) }

    private func passBytes(_ text: StaticString, _ count: Int) {
        pass(UnsafeRawPointer(text.utf8Start), count)
    }

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
            emit(base + start, end - start)
        }
        heldLineEnds += lineEnds
        heldCR = endsWithCR
    }

    /// Something follows: what was held belongs to the body.
    private func releaseHeld() {
        while heldLineEnds > 0 {
            emit(Self.lineEnd, 2)
            heldLineEnds -= 1
            isEmpty = false
        }
        if heldCR {
            emit(Self.lineEnd, 1)
            heldCR = false
            isEmpty = false
        }
    }

    // MARK: Output

    private func emit(_ text: StaticString, _ count: Int) { emit(UnsafeRawPointer(text.utf8Start), count) }

    private func emit(_ base: UnsafeRawPointer, _ count: Int) {
        if count >= Self.directSize {
            flush()
            output(UnsafeRawBufferPointer(start: base, count: count))
            return
        }
        if buffered + count > Self.bufferSize { flush() }
        if let target = buffer.baseAddress { (target + buffered).copyMemory(from: base, byteCount: count) }
        buffered += count
    }

    private func flush() {
        guard buffered > 0 else { return }
        output(UnsafeRawBufferPointer(rebasing: buffer[..<buffered]))
        buffered = 0
    }

    @inline(__always)
    private func octet(_ base: UnsafeRawPointer, _ offset: Int) -> UInt8 { base.load(fromByteOffset: offset, as: UInt8.self) }
}
