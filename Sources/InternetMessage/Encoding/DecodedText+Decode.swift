// The two decoders that record the origin of each octet (RFC 2045 sections 6.7 and 6.8).

import Support

extension DecodedText {
    /// Appends segments, joining those that continue one another.
    private struct Map {
        var segments = [Segment]()

        @inline(__always)
        mutating func add(_ kind: Segment.Kind, decoded: Int, raw: Int, width: Int) {
            if let last = segments.indices.last, segments[last].kind == kind, kind != .block,
                segments[last].rawEnd == raw
            {
                segments[last].rawEnd = raw + width
            } else {
                segments.append(
                    Segment(decodedStart: decoded, rawStart: raw, rawEnd: raw + width, kind: kind))
            }
        }
    }

    /// Decodes quoted-printable. Never fails; linear.
    package init(quotedPrintable body: ArraySlice<UInt8>) {
        var output = [UInt8]()
        output.reserveCapacity(body.count)
        var defects = Set<TransferDefect>()
        var map = Map()
        body.withUnsafeBufferPointer { input in
            let base = body.startIndex
            var index = 0
            var lineStart = 0
            // Kept outside the set, because they may occur at every octet.
            var (isLong, isRaw, isLowercase, isInvalid) = (false, false, false, false)
            while index < input.count {
                let octet = input[index]
                switch octet {
                case UInt8(ascii: "="):
                    if index + 2 < input.count, let high = input[index + 1].hexValue,
                        let low = input[index + 2].hexValue
                    {
                        if input[index + 1] >= 0x61 || input[index + 2] >= 0x61 {
                            isLowercase = true
                        }
                        map.add(.escape, decoded: output.count, raw: base + index, width: 3)
                        output.append(high << 4 | low)
                        index += 3
                    } else if let next = Self.endOfSoftBreak(input, at: index + 1) {
                        if next == input.count, input[next - 1] != 0x0A {
                            defects.insert(.trailingSoftBreak)
                        }
                        index = next
                    } else {
                        isInvalid = true
                        map.add(.literal, decoded: output.count, raw: base + index, width: 1)
                        output.append(octet)
                        index += 1
                    }
                case 0x20, 0x09:
                    var end = index
                    while end < input.count, input[end].isWhiteSpace { end += 1 }
                    let isTrailing =
                        end == input.count || input[end] == 0x0A
                        || (input[end] == 0x0D && end + 1 < input.count && input[end + 1] == 0x0A)
                    if isTrailing {
                        defects.insert(.trailingWhiteSpace)
                        index = end
                    } else {
                        map.add(
                            .literal, decoded: output.count, raw: base + index, width: end - index)
                        output.append(contentsOf: input[index..<end])
                        index = end
                    }
                default:
                    // All octets that mean themselves, up to the next octet that may not.
                    let start = index
                    while index < input.count, input[index] != UInt8(ascii: "=") {
                        let octet = input[index]
                        if octet == 0x0A {
                            if index - lineStart > QuotedPrintable.lineLength + 1 { isLong = true }
                            lineStart = index + 1
                        } else if octet.isWhiteSpace {
                            guard index + 1 < input.count, input[index + 1] > 0x20 else { break }
                        } else if octet >= 0x7F || (octet < 0x20 && octet != 0x0D) {
                            isRaw = true
                        }
                        index += 1
                    }
                    map.add(
                        .literal, decoded: output.count, raw: base + start, width: index - start)
                    output.append(contentsOf: input[start..<index])
                }
                if index > 0, input[index - 1] == 0x0A {
                    lineStart = index
                } else if index - lineStart > QuotedPrintable.lineLength + 1 {
                    // One more octet is allowed, because the CR is counted here.
                    isLong = true
                }
            }
            if isLong { defects.insert(.longLine) }
            if isRaw { defects.insert(.rawOctet) }
            if isLowercase { defects.insert(.lowercaseEscape) }
            if isInvalid { defects.insert(.invalidEscape) }
        }
        self.init(
            bytes: output, defects: defects, raw: body, encoding: .quotedPrintable,
            segments: map.segments)
    }

    /// The position after `*WSP (CRLF / LF / end)`, or nil.
    private static func endOfSoftBreak(_ input: UnsafeBufferPointer<UInt8>, at start: Int) -> Int? {
        var index = start
        while index < input.count, input[index].isWhiteSpace { index += 1 }
        guard index < input.count else { return index }
        if input[index] == 0x0A { return index + 1 }
        if input[index] == 0x0D, index + 1 < input.count, input[index + 1] == 0x0A {
            return index + 2
        }
        return nil
    }

    /// Decodes base64. Never fails; linear.
    package init(base64 body: ArraySlice<UInt8>) {
        var output = [UInt8]()
        output.reserveCapacity(body.count / 4 * 3 + 3)
        var decoder = Base64.Decoder()
        var map = Map()
        body.withUnsafeBufferPointer { input in
            let base = body.startIndex
            let values = Base64.values
            var index = 0
            // The start of the open group.
            var groupStart = 0
            while index < input.count {
                if decoder.canTakeQuad, index + 3 < input.count {
                    let (a, b) = (values[Int(input[index])], values[Int(input[index + 1])])
                    let (c, d) = (values[Int(input[index + 2])], values[Int(input[index + 3])])
                    if a | b | c | d < 64 {
                        map.add(.quads, decoded: output.count, raw: base + index, width: 4)
                        let group = UInt32(a) << 18 | UInt32(b) << 12 | UInt32(c) << 6 | UInt32(d)
                        output.append(UInt8(truncatingIfNeeded: group >> 16))
                        output.append(UInt8(truncatingIfNeeded: group >> 8))
                        output.append(UInt8(truncatingIfNeeded: group))
                        index += 4
                        continue
                    }
                }
                let before = output.count
                let wasOpen = decoder.open > 0
                if !wasOpen { groupStart = index }
                decoder.feed(input[index], into: &output)
                index += 1
                if output.count > before {
                    // A character after unfinished padding already belongs to the next group.
                    let end = decoder.open > 0 ? index - 1 : index
                    map.add(
                        .block, decoded: before, raw: base + groupStart, width: end - groupStart)
                    groupStart = end
                }
            }
            let before = output.count
            decoder.finish(into: &output)
            if output.count > before {
                map.add(
                    .block, decoded: before, raw: base + groupStart, width: input.count - groupStart
                )
            }
        }
        self.init(
            bytes: output, defects: decoder.defects, raw: body, encoding: .base64,
            segments: map.segments)
    }
}
