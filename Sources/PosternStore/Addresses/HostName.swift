// Domain names as the store keeps them: lower case, A-labels (RFC 5890), checked.

/// A checked domain name.
package struct HostName: Sendable, Hashable, CustomStringConvertible {
    /// Lower case, A-labels, no final dot; at most 253 octets, labels of at most 63 (RFC 1035 section 2.3.4).
    package let text: String

    package var description: String { text }
    /// The labels from left to right.
    package var labels: [Substring] { text.split(separator: ".") }

    /// Checks and normalises; labels in other scripts become A-labels. Nil for anything that is no host name
    /// (letters, digits, hyphens inside), address literals included.
    package init?(_ input: String) {
        var input = input
        if input.hasSuffix(".") { input.removeLast() }
        var labels: [String] = []
        for label in input.split(separator: ".", omittingEmptySubsequences: false) {
            guard let normal = Self.label(label) else { return nil }
            labels.append(normal)
        }
        text = labels.joined(separator: ".")
        guard text.utf8.count <= 253, let last = labels.last, !last.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    }

    private static func label(_ label: Substring) -> String? {
        let lower = label.lowercased()
        if lower.utf8.allSatisfy({ $0 < 0x80 }) {
            let octets = Array(lower.utf8)
            guard (1...63).contains(octets.count), octets.first != 0x2D, octets.last != 0x2D,
                octets.allSatisfy({ ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x30 && $0 <= 0x39) || $0 == 0x2D || $0 == 0x5F })
            else { return nil }
            return lower
        }
        let scalars = Array(lower.unicodeScalars)
        guard scalars.count <= 63, scalars.allSatisfy(mayStandInLabel), let code = Punycode.encode(scalars) else { return nil }
        let result = "xn--" + code
        return result.utf8.count <= 63 ? result : nil
    }

    /// Letters, digits, marks and the hyphen; which of them a registry takes is its own affair.
    private static func mayStandInLabel(_ scalar: Unicode.Scalar) -> Bool {
        if scalar == "-" { return true }
        switch scalar.properties.generalCategory {
        case .lowercaseLetter, .otherLetter, .modifierLetter, .nonspacingMark, .spacingMark, .decimalNumber: return true
        default: return false
        }
    }

    /// Whether this is the other name or lies below it.
    package func isWithin(_ other: HostName) -> Bool { text == other.text || text.hasSuffix("." + other.text) }
}

/// Punycode (RFC 3492), the encoding half.
enum Punycode {
    /// The code for a label, without `xn--`. Nil where the arithmetic would overflow.
    static func encode(_ input: [Unicode.Scalar]) -> String? {
        var output = input.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basic = output.count
        var handled = basic
        if basic > 0 { output.append(0x2D) }
        var code: UInt32 = 128
        var delta: UInt32 = 0
        var bias: UInt32 = 72
        while handled < input.count {
            guard let next = input.map(\.value).filter({ $0 >= code }).min() else { return nil }
            let (step, overflow) = (next - code).multipliedReportingOverflow(by: UInt32(handled + 1))
            let (sum, overflow2) = delta.addingReportingOverflow(step)
            guard !overflow, !overflow2 else { return nil }
            delta = sum
            code = next
            for scalar in input {
                if scalar.value < code { delta += 1 }
                guard scalar.value == code else { continue }
                var q = delta
                var k: UInt32 = 36
                while true {
                    let threshold = k <= bias ? 1 : min(k - bias, 26)
                    if q < threshold { break }
                    output.append(digit(threshold + (q - threshold) % (36 - threshold)))
                    q = (q - threshold) / (36 - threshold)
                    k += 36
                }
                output.append(digit(q))
                bias = adapt(delta, count: UInt32(handled + 1), first: handled == basic)
                delta = 0
                handled += 1
            }
            delta += 1
            code += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func digit(_ value: UInt32) -> UInt8 {
        value < 26 ? 0x61 + UInt8(truncatingIfNeeded: value) : 0x30 + UInt8(truncatingIfNeeded: value - 26)
    }

    private static func adapt(_ delta: UInt32, count: UInt32, first: Bool) -> UInt32 {
        var delta = first ? delta / 700 : delta / 2
        delta += delta / count
        var k: UInt32 = 0
        while delta > 455 {
            delta /= 35
            k += 36
        }
        return k + 36 * delta / (delta + 38)
    }
}
