// Text that a PDF contains in hexadecimal or with escapes (ISO 32000-1 section 7.3.4). Many
// programs write all their text so.

import Support

/// Decodes the strings `<616E6E61>` and `(anna\100home)` of a PDF, or of one of its streams, and
/// searches them. Pieces of one word, in an array with numbers between them, are joined. Not
/// thread-safe.
final class PDFStrings {
    /// Octets of strings that are searched at a time.
    private static let chunk = 32_768

    private enum State { case outside, hexadecimal, literal }
    /// The state after a backslash.
    private enum Escape { case none, begun, octal(value: UInt8, digits: Int), lineBreak }

    private let feeder: any StreamSearch
    private let output = OctetBuffer(capacity: chunk + 4)
    /// Octets of `output` that belong to complete strings.
    private var whole = 0
    private var state = State.outside
    /// The first half of an octet.
    private var half: UInt8?
    /// The number of open parentheses within a literal string.
    private var depth = 0
    private var escape = Escape.none
    /// Whether the next string may continue the last one.
    private var joins = false

    init(feeder: any StreamSearch) { self.feeder = feeder }

    /// Takes the next octets.
    func feed(_ octets: UnsafeBufferPointer<UInt8>) {
        for octet in octets {
            switch state {
            case .outside:
                if joins || octet == UInt8(ascii: "<") || octet == UInt8(ascii: "(") {
                    begin(octet)
                }
            case .hexadecimal: takeHexadecimal(octet)
            case .literal: takeLiteral(octet)
            }
        }
    }

    /// Ends the octets. Returns whether their strings contained a name. The object may be used
    /// again.
    func finish() -> Bool {
        if state == .literal { whole = output.count }
        (state, half, depth, escape, joins) = (.outside, nil, 0, .none, false)
        flush()
        return feeder.finish()
    }

    private func begin(_ octet: UInt8) {
        switch octet {
        case UInt8(ascii: "<"): (state, half) = (.hexadecimal, nil)
        case UInt8(ascii: "("): (state, depth, escape) = (.literal, 0, .none)
        default: if joins, !Self.standsBetween(octet) { part() }
        }
    }

    private func end() {
        whole = output.count
        (state, half, joins) = (.outside, nil, true)
    }

    private func takeHexadecimal(_ octet: UInt8) {
        if let digit = Self.digit(octet) {
            guard let high = half else {
                half = digit
                return
            }
            append(high << 4 | digit)
            half = nil
        } else if octet == UInt8(ascii: ">") {
            if let high = half { append(high << 4) }
            end()
        } else if octet > 0x20 {
            // Not a string.
            output.count = whole
            (state, half) = (.outside, nil)
            part()
            if octet == UInt8(ascii: "<") || octet == UInt8(ascii: "(") { begin(octet) }
        }
    }

    private func takeLiteral(_ octet: UInt8) {
        switch escape {
        case .none: break
        case .begun:
            escape = .none
            switch octet {
            case 0x30...0x37: escape = .octal(value: octet - 0x30, digits: 1)
            case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"), UInt8(ascii: "b"),
                UInt8(ascii: "f"):
                append(0x0A)
            case 0x0D: escape = .lineBreak
            case 0x0A: break
            default: append(octet)
            }
            return
        case .octal(let value, let digits):
            if (0x30...0x37).contains(octet) {
                let value = value << 3 | (octet - 0x30)
                escape = digits == 2 ? .none : .octal(value: value, digits: digits + 1)
                if digits == 2 { append(value) }
                return
            }
            escape = .none
            append(value)
        case .lineBreak:
            escape = .none
            if octet == 0x0A { return }
        }
        switch octet {
        case UInt8(ascii: "\\"): escape = .begun
        case UInt8(ascii: "("):
            depth += 1
            append(octet)
        case UInt8(ascii: ")"):
            if depth == 0 { return end() }
            depth -= 1
            append(octet)
        default:
            append(octet)
            // A parenthesis in a picture or a font does not open a string.
            if octet == UInt8(ascii: "j") && ends(with: "endobj")
                || octet == UInt8(ascii: "m") && ends(with: "endstream")
            {
                (state, joins) = (.outside, true)
                part()
            }
        }
    }

    private func ends(with word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard output.count >= count else { return false }
        return (0..<count).allSatisfy {
            output.base[output.count - count + $0] == word.utf8Start[$0]
        }
    }

    /// Ends a text. The next string belongs to another one.
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
        if state == .outside { output.count = whole }
        feeder.feed(output.contents)
        output.count = 0
        whole = 0
    }

    private static func digit(_ octet: UInt8) -> UInt8? {
        switch octet {
        case 0x30...0x39: octet - 0x30
        case 0x41...0x46: octet - 0x37
        case 0x61...0x66: octet - 0x57
        default: nil
        }
    }

    /// Whether an octet may be between the pieces of a word: white space, and
    /// the numbers that move them.
    private static func standsBetween(_ octet: UInt8) -> Bool {
        octet <= 0x20 || (0x30...0x39).contains(octet) || octet == UInt8(ascii: "-")
            || octet == UInt8(ascii: ".")
    }
}
