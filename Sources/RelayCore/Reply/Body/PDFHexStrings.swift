// Text that a PDF writes in hexadecimal (ISO 32000-1 section 7.3.4.3), as many programs write all their text.

import Support

/// Decodes the strings `<616E6E61>` of a PDF, or of one of its streams, and searches them. Pieces of one word, in an array with
/// numbers between them, are joined. Not thread-safe.
final class PDFHexStrings {
    /// Octets of strings that are searched at once.
    private static let chunk = 32_768

    private let feeder: LeakFeeder
    private let output = OctetBuffer(capacity: chunk + 2)
    /// Octets of `output` that belong to whole strings.
    private var whole = 0
    private var isInside = false
    /// The first half of an octet.
    private var half: UInt8?
    /// Whether the next string may continue the last one.
    private var joins = false

    init(feeder: LeakFeeder) { self.feeder = feeder }

    /// Takes the next octets.
    func feed(_ octets: UnsafeBufferPointer<UInt8>) {
        var index = 0
        while index < octets.count {
            if !isInside, !joins {
                guard let next = octets.firstIndex(of: 0x3C, from: index) else { return }
                index = next
            }
            take(octets[index])
            index += 1
        }
    }

    /// Ends the octets; returns whether anything was found in their strings. May be used again.
    func finish() -> Bool {
        (isInside, half, joins) = (false, nil, false)
        flush()
        return feeder.finish()
    }

    private func take(_ octet: UInt8) {
        if octet == UInt8(ascii: "<") {
            output.count = whole
            (isInside, half) = (true, nil)
        } else if isInside {
            if let digit = LeakView.digit(octet) {
                guard let high = half else {
                    half = digit
                    return
                }
                append(high << 4 | digit)
                half = nil
            } else if octet == UInt8(ascii: ">") {
                if let high = half { append(high << 4) }
                whole = output.count
                (isInside, half, joins) = (false, nil, true)
            } else if octet > 0x20 {
                // Not a string.
                output.count = whole
                (isInside, half) = (false, nil)
                part()
            }
        } else if joins, !Self.standsBetween(octet) {
            part()
        }
    }

    /// Ends a text: the next string belongs to another one.
    private func part() {
        guard joins else { return }
        joins = false
        append(0x0A)
        whole = output.count
    }

    private func append(_ octet: UInt8) {
        output.base[output.count] = octet
        output.count += 1
        if output.count >= Self.chunk { flush() }
    }

    private func flush() {
        if !isInside { output.count = whole }
        feeder.feed(output.contents)
        output.count = 0
        whole = 0
    }

    /// Whether an octet may be between the pieces of a word: white space, and the numbers that move them.
    private static func standsBetween(_ octet: UInt8) -> Bool {
        octet <= 0x20 || (0x30...0x39).contains(octet) || octet == UInt8(ascii: "-") || octet == UInt8(ascii: ".")
    }
}
