// Changes words of an encoded body and leaves the other raw octets unchanged.

import Support

extension DecodedText {
    /// A change of decoded octets.
    package struct Replacement: Sendable {
        /// Offsets in `bytes`.
        package var range: Range<Int>
        /// The new octets, not encoded.
        package var bytes: [UInt8]

        package init(_ range: Range<Int>, _ bytes: [UInt8]) {
            self.range = range
            self.bytes = bytes
        }
    }

    /// The raw octets after the replacements. Ranges must be ascending and must not overlap; a
    /// range that violates this is skipped.
    ///
    /// In identity encodings and quoted-printable only the replaced text changes. In
    /// quoted-printable, soft line breaks near it limit lines to 76 octets. base64 is rewritten
    /// from the line of the first replacement on. Without replacements the raw octets are returned
    /// unchanged.
    package func replacing(_ replacements: [Replacement]) -> [UInt8] {
        var sound = [Replacement]()
        var end = 0
        for replacement in replacements
        where replacement.range.lowerBound >= end && replacement.range.upperBound <= bytes.count {
            sound.append(replacement)
            end = replacement.range.upperBound
        }
        guard !sound.isEmpty else { return Array(raw) }
        switch encoding {
        case .base64: return replacingBase64(sound)
        case .quotedPrintable: return replacingQuotedPrintable(sound)
        case .sevenBit, .eightBit, .binary, .unknown: return replaced(sound, from: 0)
        }
    }

    private func replacingBase64(_ replacements: [Replacement]) -> [UInt8] {
        let first = replacements[0].range.lowerBound
        // Goes back to the start of the line, so that the new lines are regular. The group gives
        // the decoded offset there.
        let place = rawRange(of: first..<min(first + 1, bytes.count))
        var lineStart = place.raw.lowerBound
        while lineStart > raw.startIndex, raw[lineStart - 1] != 0x0A { lineStart -= 1 }
        let kept = decodedOffset(atRaw: lineStart)
        guard let kept, kept <= first else { return Base64.encode(replaced(replacements, from: 0)) }
        return Array(raw[..<lineStart]) + Base64.encode(replaced(replacements, from: kept))
    }

    /// Decoded octets from `start` on, after the replacements.
    private func replaced(_ replacements: [Replacement], from start: Int) -> [UInt8] {
        var output = [UInt8]()
        output.reserveCapacity(bytes.count - start)
        var position = start
        for replacement in replacements {
            output.append(contentsOf: bytes[position..<replacement.range.lowerBound])
            output.append(contentsOf: replacement.bytes)
            position = replacement.range.upperBound
        }
        output.append(contentsOf: bytes[position...])
        return output
    }

    /// The decoded offset of raw index `index`, if a unit begins there or only skipped octets are
    /// between the last unit and it; nil within a unit.
    private func decodedOffset(atRaw index: Int) -> Int? {
        var low = 0
        var high = segments.count
        while low < high {
            let middle = (low + high) / 2
            if segments[middle].rawEnd <= index { low = middle + 1 } else { high = middle }
        }
        guard low < segments.count else { return bytes.count }
        let segment = segments[low]
        guard segment.rawStart < index else { return segment.decodedStart }
        guard segment.kind == .quads, (index - segment.rawStart) % 4 == 0 else { return nil }
        return segment.decodedStart + (index - segment.rawStart) / 4 * 3
    }

    private func replacingQuotedPrintable(_ replacements: [Replacement]) -> [UInt8] {
        var output = [UInt8]()
        output.reserveCapacity(raw.count + 64)
        var column = 0
        var position = raw.startIndex
        func copyRaw(upTo end: Int) {
            for octet in raw[position..<max(position, end)] {
                output.append(octet)
                column = octet == 0x0A ? 0 : column + 1
            }
            position = max(position, end)
        }
        func softBreak() {
            output.append(contentsOf: [UInt8(ascii: "="), 0x0D, 0x0A])
            column = 0
        }
        for replacement in replacements {
            let place = rawRange(of: replacement.range).raw
            copyRaw(upTo: place.lowerBound)
            let tail = lineTail(from: place.upperBound)
            var octets = replacement.bytes[...]
            while let octet = octets.popFirst() {
                if octet == 0x0D, octets.first == 0x0A { continue }
                if octet == 0x0A {
                    output.append(contentsOf: [0x0D, 0x0A])
                    column = 0
                    continue
                }
                // White space is escaped in each place that could end a line.
                let endsText = octets.isEmpty || octets.first == 0x0A || octets.first == 0x0D
                let isEscaped =
                    QuotedPrintable.needsEscape(octet) || (octet.isWhiteSpace && endsText)
                if column + (isEscaped ? 3 : 1) > QuotedPrintable.lineLength - 1 { softBreak() }
                if isEscaped {
                    QuotedPrintable.appendEscape(octet, to: &output)
                } else {
                    output.append(octet)
                }
                column += isEscaped ? 3 : 1
            }
            position = max(position, place.upperBound)
            // If a word at the end of a line is removed, the space before it would also be lost.
            if replacement.bytes.isEmpty, tail == 0, let last = output.last, last.isWhiteSpace {
                output.removeLast()
                QuotedPrintable.appendEscape(last, to: &output)
                column += 2
            }
            // The rest of the raw line was laid out for its old column.
            if column > 0, tail > 0, column + tail > QuotedPrintable.lineLength { softBreak() }
        }
        copyRaw(upTo: raw.endIndex)
        return output
    }

    /// Octets up to the end of the raw line. Counting stops when the line is certainly too long.
    private func lineTail(from start: Int) -> Int {
        var end = start
        while end < raw.endIndex, raw[end] != 0x0D, raw[end] != 0x0A,
            end - start <= QuotedPrintable.lineLength
        { end += 1 }
        return end - start
    }
}
