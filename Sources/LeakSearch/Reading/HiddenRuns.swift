// Runs of base64 and hexadecimal digits in any octets, whatever the lines they are broken into, and what they decode to.

import Support

enum HiddenRuns {
    /// Shorter runs hold no address.
    private static let shortestBase64 = 12
    private static let shortestHexadecimal = 16
    /// Digits in a row without which nothing is decoded; breaks may be within a run.
    static let shortest = 8
    /// Octets of a line that a program breaks within a run; then a blank may be left of the break.
    private static let longLine = 20
    /// Printable octets in a row without which no address is there.
    private static let shortestText = 5

    // Units of work for each octet: to find runs, and to decode one in one way.
    static let findingWork = 6
    private static let decodingWork = 4

    /// Calls with each text that octets may stand for.
    /// - Parameter work: is charged for each octet of a run.
    static func forEach(in text: UnsafeBufferPointer<UInt8>, work: WorkBudget, _ body: ([UInt8]) -> Void) {
        work.charge(text.count * findingWork)
        var run: [UInt8] = []
        Sextet.values.withUnsafeBufferPointer { values in
            find(text, shortest: shortestBase64, values: values, into: &run) { sextets, breaks in
                for start in 0..<4
                where sextets.count - start >= shortestBase64 - 4 && breaks.mayBegin(at: start, of: sextets.count) {
                    work.charge(sextets.count * decodingWork)
                    let decoded = base64(sextets[start...])
                    if mayBeText(decoded) { body(decoded) }
                }
            }
        }
        digits.withUnsafeBufferPointer { values in
            find(text, shortest: shortestHexadecimal, values: values, into: &run) { digits, _ in
                for start in 0..<2 {
                    work.charge(digits.count * decodingWork)
                    let decoded = hexadecimal(digits[start...])
                    if mayBeText(decoded) { body(decoded) }
                }
            }
        }
    }

    /// Whether an octet is a digit of base64 or hexadecimal.
    static func isDigit(_ octet: UInt8) -> Bool {
        octet.isASCIIAlphanumeric || octet == 0x2B || octet == 0x2F || octet == 0x2D || octet == 0x5F
    }

    private static let digits: [UInt8] = (0..<256).map { TransferReading.digit(UInt8($0)) ?? 255 }

    /// The lines of a run, which tell where groups of base64 begin in a long one.
    private struct Breaks {
        /// Digits before the first break.
        private var first: Int?
        /// Whether every later line is of whole groups.
        private var isRegular = true
        /// Longer runs are not read in ways that their lines speak against.
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

    /// Collects the digits of each run, over line breaks, folds and marks of quotations.
    private static func find(
        _ text: UnsafeBufferPointer<UInt8>, shortest: Int, values: UnsafeBufferPointer<UInt8>, into run: inout [UInt8],
        _ body: ([UInt8], Breaks) -> Void
    ) {
        run.removeAll(keepingCapacity: true)
        var breaks = Breaks()
        var column = 0
        var index = 0
        while index < text.count {
            let value = values[Int(text[index])]
            if value != 255 {
                run.append(value)
                column += 1
                index += 1
                continue
            }
            if column > 0, let next = goesOn(text, index, after: column, values) {
                index = next
                column = 0
                breaks.note(run.count)
                continue
            }
            if run.count >= shortest { body(run, breaks) }
            if !run.isEmpty {
                run.removeAll(keepingCapacity: true)
                breaks = Breaks()
            }
            column = 0
            index += 1
        }
        if run.count >= shortest { body(run, breaks) }
    }

    /// Where a run goes on behind a break; nil where it ends.
    private static func goesOn(
        _ text: UnsafeBufferPointer<UInt8>, _ start: Int, after column: Int, _ values: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        var index = start
        // A soft line break, or one that a backslash hides.
        if text[index] == UInt8(ascii: "=") || text[index] == UInt8(ascii: "\\") { index += 1 }
        var hasBreak = false
        while index < text.count, index - start < 80 {
            switch text[index] {
            // An empty line ends what is encoded.
            case 0x0A where hasBreak: return nil
            case 0x0A: hasBreak = true
            case 0x0D: break
            case 0x20, 0x09: break
            case UInt8(ascii: ">") where hasBreak, UInt8(ascii: "|") where hasBreak: break
            default:
                let isBlank = index == start + 1 && (text[start] == 0x20 || text[start] == 0x09)
                return (hasBreak || isBlank && column >= longLine) && values[Int(text[index])] != 255 ? index : nil
            }
            index += 1
        }
        return nil
    }

    private static func base64(_ sextets: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(sextets.count / 4 * 3 + 2)
        sextets.withUnsafeBufferPointer { sextets in
            var index = 0
            while index + 4 <= sextets.count {
                output.append(sextets[index] << 2 | sextets[index + 1] >> 4)
                output.append(sextets[index + 1] << 4 | sextets[index + 2] >> 2)
                output.append(sextets[index + 2] << 6 | sextets[index + 3])
                index += 4
            }
            if sextets.count - index >= 2 { output.append(sextets[index] << 2 | sextets[index + 1] >> 4) }
            if sextets.count - index == 3 { output.append(sextets[index + 1] << 4 | sextets[index + 2] >> 2) }
        }
        return output
    }

    private static func hexadecimal(_ digits: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(digits.count / 2)
        digits.withUnsafeBufferPointer { digits in
            var index = 0
            while index + 2 <= digits.count {
                output.append(digits[index] << 4 | digits[index + 1])
                index += 2
            }
        }
        return output
    }

    /// Whether a few printable octets are in a row, ignoring NUL between them.
    private static func mayBeText(_ octets: [UInt8]) -> Bool {
        octets.withUnsafeBufferPointer { octets in
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
}
