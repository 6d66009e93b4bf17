// Reads and writes a header section (RFC 5322 sections 2.1, 2.2 and 4.5).
import Support

extension HeaderSection {
    /// Longest line that RFC 5322 section 2.1.1 allows, in octets without CRLF. Longer
    /// lines are kept and reported.
    package static let maximumLineLength = 998

    /// A parsed header section. Indices are those of the slice from which it was read.
    package struct Parsed: Sendable {
        package var header: HeaderSection
        /// Just after the last header line, before the empty line.
        package var headerEnd: Int
        /// Just after the empty line; the end of the input if there is none.
        package var bodyStart: Int
        package var defects: Set<MessageDefect>
    }

    /// Reads fields up to the first empty line or the end of the input. Linear; never fails.
    package static func parse(_ input: ArraySlice<UInt8>) -> Parsed {
        input.withUnsafeBufferPointer { buffer in
            parse(buffer, base: input.startIndex)
        }
    }

    static func parse(_ buffer: UnsafeBufferPointer<UInt8>, base: Int) -> Parsed {
        var fields = [HeaderField]()
        var defects = Set<MessageDefect>()
        var fieldStart = -1
        var fieldEnd = 0
        var position = 0
        func finish(_ defects: inout Set<MessageDefect>) {
            guard fieldStart >= 0 else { return }
            let field = HeaderField(bytes: Array(buffer[fieldStart..<fieldEnd]))
            field.inspect(into: &defects)
            fields.append(field)
        }
        var headerEnd = buffer.count
        var bodyStart = buffer.count
        while position < buffer.count {
            let line = Line.next(in: buffer, at: position)
            if line.end == line.start, line.next > line.end {
                headerEnd = line.start
                bodyStart = line.next
                if line.isBareLF { defects.insert(.bareLF) }
                break
            }
            if line.isBareLF { defects.insert(.bareLF) }
            if line.next == line.end { defects.insert(.unterminatedLine) }
            if line.end - line.start > maximumLineLength { defects.insert(.longLine) }
            if buffer[line.start].isWhiteSpace, fieldStart >= 0 {
                if buffer[line.start..<line.end].allSatisfy(\.isWhiteSpace) {
                    defects.insert(.whiteSpaceOnlyLine)
                }
            } else {
                if buffer[line.start].isWhiteSpace { defects.insert(.leadingContinuation) }
                finish(&defects)
                fieldStart = line.start
            }
            fieldEnd = line.end
            position = line.next
        }
        finish(&defects)
        return Parsed(
            header: HeaderSection(fields), headerEnd: base + headerEnd, bodyStart: base + bodyStart,
            defects: defects)
    }

    /// The fields, each ended by CRLF. Without the empty line that ends a header section.
    ///
    /// Returns exactly the parsed octets if all of their lines ended in CRLF.
    package var serialized: [UInt8] {
        var output = [UInt8]()
        output.reserveCapacity(fields.reduce(0) { $0 + $1.bytes.count + 2 })
        for field in fields {
            output.append(contentsOf: field.bytes)
            output.append(0x0D)
            output.append(0x0A)
        }
        return output
    }
}

/// One line of a buffer: octets `start..<end`, its line break `end..<next`.
struct Line {
    var start: Int
    var end: Int
    var next: Int
    var isBareLF: Bool { next - end == 1 }

    /// The line that begins at `start`, which must be within the buffer. CRLF or LF ends
    /// it, or the end of the buffer.
    @inline(__always)
    static func next(in buffer: UnsafeBufferPointer<UInt8>, at start: Int) -> Line {
        guard let lineFeed = buffer.firstIndex(of: 0x0A, from: start) else {
            return Line(start: start, end: buffer.count, next: buffer.count)
        }
        let hasCR = lineFeed > start && buffer[lineFeed - 1] == 0x0D
        return Line(start: start, end: hasCR ? lineFeed - 1 : lineFeed, next: lineFeed + 1)
    }
}
