// Runs of base64 and hexadecimal digits in any octets, broken into lines in any way, and their
// decoded content.

import Support

/// Finds the runs of one text at a time. Its memory is reused for the next text. Not thread-safe.
final class HiddenRuns {
    /// Shorter runs cannot contain an address.
    private static let shortestBase64 = 12
    private static let shortestHexadecimal = 16
    /// Minimum digits in a row for decoding; breaks may be within a run.
    static let shortest = 8
    /// Minimum octets of a line that a program breaks within a run. A space may then be left at the
    /// break.
    private static let longLine = 20
    /// Minimum printable octets in a row for an address.
    private static let shortestText = 5

    // Units of work for each octet: to find runs, and to decode a run in one way.
    private static let findingWork = 6
    private static let decodingWork = 4

    private let digits = OctetBuffer(capacity: 256)
    private let decoded = OctetBuffer(capacity: 256)

    /// Calls `body` with each text that octets may encode. The text is valid only within the call.
    /// - Parameter work: is charged for each octet of a run.
    func forEach(
        in text: UnsafeBufferPointer<UInt8>, work: WorkBudget,
        _ body: (UnsafeBufferPointer<UInt8>) -> Void
    ) {
        work.charge(text.count * Self.findingWork)
        Sextet.values.withUnsafeBufferPointer { sextets in
            Self.hexadecimal.withUnsafeBufferPointer { hexadecimal in
                Self.find(text, 0..<text.count, sextets) { range, count, breaks in
                    if count >= Self.shortestBase64 {
                        base64(text, range, sextets, breaks, work, body)
                    }
                    guard count >= Self.shortestHexadecimal else { return }
                    // All digits of hexadecimal are also digits of base64.
                    Self.find(text, range, hexadecimal) { range, count, _ in
                        if count >= Self.shortestHexadecimal {
                            self.hexadecimal(text, range, hexadecimal, work, body)
                        }
                    }
                }
            }
        }
    }

    /// Whether an octet is a digit of base64 or hexadecimal.
    @inline(__always)
    static func isDigit(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet == 0x2B || octet == 0x2F || octet == 0x2D
            || octet == 0x5F
    }

    private static let hexadecimal: [UInt8] = (0..<256).map {
        TransferReading.digit(UInt8($0)) ?? 255
    }

    /// The lines of a run. In a long run, they show the starts of base64 groups.
    private struct Breaks {
        /// Digits before the first break.
        private var first: Int?
        /// Whether every later line contains only complete groups.
        private var isRegular = true
        /// Longer runs are not read in ways that contradict their lines.
        private static let long = 1_000

        mutating func note(_ count: Int) {
            if let first {
                if (count - first) % 4 != 0 { isRegular = false }
            } else {
                first = count
            }
        }

        /// Whether a group may begin at one of the first four digits.
        func mayBegin(at start: Int, of count: Int) -> Bool {
            guard count > Self.long, isRegular, let first else { return true }
            return start == 0 || start == first % 4
        }
    }

    // MARK: Runs

    /// Finds runs of digits in a range, across line breaks, folds and marks of quotations.
    /// - Parameter body: receives the range of a run, and the number of its digits.
    @inline(__always)
    private static func find(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>,
        _ values: UnsafeBufferPointer<UInt8>,
        _ body: (Range<Int>, Int, Breaks) -> Void
    ) {
        var index = range.lowerBound
        while index < range.upperBound {
            guard values[Int(text[index])] != 255 else {
                index += 1
                continue
            }
            let start = index
            var count = 0
            var end: Int
            var breaks = Breaks()
            while true {
                let line = index
                while index < range.upperBound, values[Int(text[index])] != 255 { index += 1 }
                count += index - line
                end = index
                guard index < range.upperBound,
                    let next = goesOn(text, index, after: index - line, values)
                else { break }
                breaks.note(count)
                index = next
            }
            if count >= shortestBase64 { body(start..<end, count, breaks) }
            index = end + 1
        }
    }

    /// The index at which a run continues after a break; nil if it ends.
    @inline(__always)
    private static func goesOn(
        _ text: UnsafeBufferPointer<UInt8>, _ start: Int, after column: Int,
        _ values: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        switch text[start] {
        case 0x20 where column < longLine && start + 1 < text.count && text[start + 1] > 0x20:
            return nil
        case 0x09, 0x0A, 0x0D, 0x20, UInt8(ascii: "="), UInt8(ascii: "\\"):
            return goesOn(behind: text, start, column, values)
        default: return nil
        }
    }

    @inline(never)
    private static func goesOn(
        behind text: UnsafeBufferPointer<UInt8>, _ start: Int, _ column: Int,
        _ values: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        var index = start
        // A soft line break, or a line break after a backslash.
        if text[index] == UInt8(ascii: "=") || text[index] == UInt8(ascii: "\\") { index += 1 }
        var hasBreak = false
        while index < text.count, index - start < 80 {
            switch text[index] {
            // An empty line ends encoded data.
            case 0x0A where hasBreak: return nil
            case 0x0A: hasBreak = true
            case 0x0D: break
            case 0x20, 0x09: break
            case UInt8(ascii: ">") where hasBreak, UInt8(ascii: "|") where hasBreak: break
            default:
                let isBlank = index == start + 1 && (text[start] == 0x20 || text[start] == 0x09)
                return (hasBreak || isBlank && column >= longLine)
                    && values[Int(text[index])] != 255 ? index : nil
            }
            index += 1
        }
        return nil
    }

    // MARK: Decoding

    /// Collects the digits of a run.
    private func collect(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>,
        _ values: UnsafeBufferPointer<UInt8>
    ) {
        digits.count = 0
        if digits.capacity < range.count { digits.reserve(range.count + range.count / 4 + 64) }
        var count = 0
        let base = digits.base
        for index in range {
            // Octets between the lines are overwritten.
            let value = values[Int(text[index])]
            base[count] = value
            if value != 255 { count += 1 }
        }
        digits.count = count
        if decoded.capacity < count + 4 { decoded.reserve(count + count / 4 + 64) }
    }

    private func base64(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>,
        _ values: UnsafeBufferPointer<UInt8>, _ breaks: Breaks,
        _ work: WorkBudget, _ body: (UnsafeBufferPointer<UInt8>) -> Void
    ) {
        collect(text, range, values)
        for start in 0..<4
        where digits.count - start >= Self.shortestBase64 - 4
            && breaks.mayBegin(at: start, of: digits.count)
        {
            work.charge(digits.count * Self.decodingWork)
            decodeBase64(from: start)
            if Self.mayBeText(decoded.contents) { body(decoded.contents) }
        }
    }

    private func hexadecimal(
        _ text: UnsafeBufferPointer<UInt8>, _ range: Range<Int>,
        _ values: UnsafeBufferPointer<UInt8>, _ work: WorkBudget,
        _ body: (UnsafeBufferPointer<UInt8>) -> Void
    ) {
        collect(text, range, values)
        for start in 0..<2 {
            work.charge(digits.count * Self.decodingWork)
            decodeHexadecimal(from: start)
            if Self.mayBeText(decoded.contents) { body(decoded.contents) }
        }
    }

    private func decodeBase64(from start: Int) {
        let (input, output, count) = (digits.base, decoded.base, digits.count)
        var index = start
        var next = 0
        while index + 4 <= count {
            output[next] = input[index] << 2 | input[index + 1] >> 4
            output[next + 1] = input[index + 1] << 4 | input[index + 2] >> 2
            output[next + 2] = input[index + 2] << 6 | input[index + 3]
            next += 3
            index += 4
        }
        if count - index >= 2 {
            output[next] = input[index] << 2 | input[index + 1] >> 4
            next += 1
        }
        if count - index == 3 {
            output[next] = input[index + 1] << 4 | input[index + 2] >> 2
            next += 1
        }
        decoded.count = next
    }

    private func decodeHexadecimal(from start: Int) {
        let (input, output, count) = (digits.base, decoded.base, digits.count)
        var index = start
        var next = 0
        while index + 2 <= count {
            output[next] = input[index] << 4 | input[index + 1]
            next += 1
            index += 2
        }
        decoded.count = next
    }

    /// Whether a few printable octets are in a row, ignoring NUL between them.
    private static func mayBeText(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        var row = 0
        for octet in octets {
            if octet >= 0x20 && octet < 0x7F || octet >= 0xC2 && octet < 0xF5 {
                row += 1
                if row == shortestText { return true }
            } else if octet != 0, octet < 0x80 || octet >= 0xC0 {
                row = 0
            }
        }
        return false
    }
}
