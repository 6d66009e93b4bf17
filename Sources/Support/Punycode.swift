// Punycode (RFC 3492) with IDNA's parameters.

package enum Punycode {
    private static let base = 36
    private static let tMin = 1
    private static let tMax = 26
    private static let skew = 38
    private static let damp = 700
    private static let initialBias = 72
    private static let initialN = 128

    /// The longest accepted input, in scalars or octets: the encoding is quadratic, and a DNS label
    /// holds 63 octets. Longer input gives nil.
    package static let maximumInput = 1024

    /// The encoding without `xn--`; nil beyond `maximumInput`.
    package static func encode(_ scalars: [Unicode.Scalar]) -> [UInt8]? {
        guard scalars.count <= maximumInput else { return nil }
        var output = scalars.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basicCount = output.count
        if basicCount > 0 { output.append(UInt8(ascii: "-")) }
        var n = initialN
        var delta = 0
        var bias = initialBias
        var handled = basicCount
        while handled < scalars.count {
            guard let next = scalars.lazy.map({ Int($0.value) }).filter({ $0 >= n }).min() else {
                return nil
            }
            // No overflow: at most 1024 scalars of at most 0x10FFFF.
            delta += (next - n) * (handled + 1)
            n = next
            for scalar in scalars {
                let value = Int(scalar.value)
                if value < n { delta += 1 }
                guard value == n else { continue }
                var q = delta
                var k = base
                while true {
                    let t = threshold(k, bias)
                    if q < t { break }
                    output.append(digit(t + (q - t) % (base - t)))
                    q = (q - t) / (base - t)
                    k += base
                }
                output.append(digit(q))
                bias = adapt(delta, handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta += 1
            n += 1
        }
        return output
    }

    /// Decodes the text after `xn--`; nil if it is malformed, overflows or exceeds `maximumInput`.
    package static func decode(_ text: some Collection<UInt8>) -> [Unicode.Scalar]? {
        guard text.count <= maximumInput else { return nil }
        let input = Array(text)
        guard input.allSatisfy({ $0 < 0x80 }) else { return nil }
        var output = [Unicode.Scalar]()
        var index = 0
        if let delimiter = input.lastIndex(of: UInt8(ascii: "-")) {
            output = input[..<delimiter].map { Unicode.Scalar($0) }
            index = delimiter + 1
        }
        var n = initialN
        var i = 0
        var bias = initialBias
        while index < input.count {
            let old = i
            var weight = 1
            var k = base
            while true {
                guard index < input.count, let value = value(input[index]) else { return nil }
                index += 1
                let (product, overflow) = value.multipliedReportingOverflow(by: weight)
                guard !overflow, product <= Int(Int32.max) - i else { return nil }
                i += product
                let t = threshold(k, bias)
                if value < t { break }
                let (grown, overflowed) = weight.multipliedReportingOverflow(by: base - t)
                guard !overflowed else { return nil }
                weight = grown
                k += base
            }
            bias = adapt(i - old, output.count + 1, isFirst: old == 0)
            n += i / (output.count + 1)
            i %= output.count + 1
            guard n <= 0x10FFFF, let scalar = Unicode.Scalar(UInt32(n)) else { return nil }
            output.insert(scalar, at: i)
            i += 1
        }
        return output
    }

    private static func threshold(_ k: Int, _ bias: Int) -> Int { min(max(k - bias, tMin), tMax) }

    private static func adapt(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var k = 0
        while delta > (base - tMin) * tMax / 2 {
            delta /= base - tMin
            k += base
        }
        return k + (base - tMin + 1) * delta / (delta + skew)
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: value < 26 ? 0x61 + value : 0x30 + value - 26)
    }

    private static func value(_ octet: UInt8) -> Int? {
        switch octet.asciiLowercased {
        case 0x61...0x7A: Int(octet.asciiLowercased) - 0x61
        case 0x30...0x39: Int(octet) - 0x30 + 26
        default: nil
        }
    }
}
