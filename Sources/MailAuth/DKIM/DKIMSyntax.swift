// The small grammar that DKIM fields and key records share (RFC 6376 sections 2 and 3.2): white space, numbers, domains, base64.

import InternetMessage

/// A field or record that is not what RFC 6376 describes. The reason never quotes it: it may hold an address.
struct DKIMSyntaxError: Error, Hashable {
    let reason: String
    init(_ reason: String) { self.reason = reason }
}

enum DKIMSyntax {
    static func isWhiteSpace(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 }

    static func isFolding(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 || octet == 0x0D || octet == 0x0A }

    static func isDigit(_ octet: UInt8) -> Bool { octet >= 0x30 && octet <= 0x39 }

    static func isLetter(_ octet: UInt8) -> Bool { octet | 0x20 >= 0x61 && octet | 0x20 <= 0x7A }

    /// Without folding white space at either end.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var (start, end) = (bytes.startIndex, bytes.endIndex)
        while start < end, isFolding(bytes[start]) { start += 1 }
        while start < end, isFolding(bytes[end - 1]) { end -= 1 }
        return bytes[start..<end]
    }

    /// The parts between colons, trimmed.
    static func colonList(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        while true {
            var end = start
            while end < bytes.endIndex, bytes[end] != UInt8(ascii: ":") { end += 1 }
            parts.append(trimmed(bytes[start..<end]))
            guard end < bytes.endIndex else { return parts }
            start = end + 1
        }
    }

    static func equals(_ bytes: ArraySlice<UInt8>, _ text: StaticString) -> Bool {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { text in
            for (index, octet) in zip(bytes.indices, text) where bytes[index] != octet { return false }
            return true
        }
    }

    /// 1 to `maximumDigits` digits; what does not fit into `Int64` becomes its largest value (RFC 6376 section 3.5, `t=`).
    static func number(_ bytes: ArraySlice<UInt8>, maximumDigits: Int) -> Int64? {
        guard !bytes.isEmpty, bytes.count <= maximumDigits, bytes.allSatisfy(isDigit) else { return nil }
        var value: Int64 = 0
        for octet in bytes {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(octet - 0x30))
            guard !overflow, !carry else { return .max }
            value = sum
        }
        return value
    }

    /// Longest name in the DNS, in text form without trailing dot (RFC 1035 section 3.1).
    static let maximumDomainLength = 253

    /// A domain name or selector in lower case; nil where it is none. Underscores are taken as well, since selectors with
    /// them are in use and the DNS does not mind. U-labels (RFC 8616) are not: they would have to be sent as A-labels.
    static func domain(_ bytes: ArraySlice<UInt8>) -> String? {
        guard !bytes.isEmpty, bytes.count <= maximumDomainLength else { return nil }
        var start = bytes.startIndex
        for index in bytes.startIndex...bytes.endIndex {
            guard index == bytes.endIndex || bytes[index] == UInt8(ascii: ".") else {
                let octet = bytes[index]
                guard isLetter(octet) || isDigit(octet) || octet == UInt8(ascii: "-") || octet == UInt8(ascii: "_") else { return nil }
                continue
            }
            guard (1...63).contains(index - start), bytes[start] != UInt8(ascii: "-"), bytes[index - 1] != UInt8(ascii: "-") else { return nil }
            start = index + 1
        }
        return String(unsafeUninitializedCapacity: bytes.count) { buffer in
            for (index, octet) in zip(buffer.indices, bytes) { buffer[index] = octet.asciiLowercased }
            return bytes.count
        }
    }

    /// Whether `domain` is `parent` or lies below it; both in lower case.
    static func isSameOrSubdomain(_ domain: String, of parent: String) -> Bool {
        domain == parent || domain.hasSuffix("." + parent)
    }
}

/// Base64 (RFC 4648 section 4) as DKIM writes it, with folding white space anywhere (RFC 6376 section 2.5, `base64string`).
enum DKIMBase64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// What an octet outside the alphabet is.
    private static let folding: UInt8 = 0x40
    private static let padding: UInt8 = 0x41
    private static let other: UInt8 = 0xFF

    private static let values: [UInt8] = {
        var values = [UInt8](repeating: other, count: 256)
        for (value, octet) in alphabet.enumerated() { values[Int(octet)] = UInt8(value) }
        for octet in [0x20, 0x09, 0x0D, 0x0A] { values[octet] = folding }
        values[Int(UInt8(ascii: "="))] = padding
        return values
    }()

    /// The octets; nil where another octet occurs, padding is missing, misplaced or too long, or where there is nothing.
    static func decode(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var isRight = false
        let output = values.withUnsafeBufferPointer { values in
            bytes.withUnsafeBufferPointer { bytes in
                [UInt8](unsafeUninitializedCapacity: bytes.count / 4 * 3 + 3) { output, count in
                    isRight = decode(bytes, values, output, &count)
                }
            }
        }
        return isRight && !output.isEmpty ? output : nil
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, _ values: UnsafeBufferPointer<UInt8>, _ output: UnsafeMutableBufferPointer<UInt8>,
        _ count: inout Int
    ) -> Bool {
        var group: UInt32 = 0
        var digits = 0
        var paddings = 0
        for octet in bytes {
            let value = values[Int(octet)]
            guard value < 0x40 else {
                if value == folding { continue }
                guard value == padding, paddings < 2 else { return false }
                paddings += 1
                continue
            }
            guard paddings == 0 else { return false }
            group = group << 6 | UInt32(value)
            digits += 1
            if digits == 4 {
                output[count] = UInt8(truncatingIfNeeded: group >> 16)
                output[count + 1] = UInt8(truncatingIfNeeded: group >> 8)
                output[count + 2] = UInt8(truncatingIfNeeded: group)
                count += 3
                group = 0
                digits = 0
            }
        }
        switch (digits, paddings) {
        case (0, 0): break
        case (2, 2):
            output[count] = UInt8(truncatingIfNeeded: group >> 4)
            count += 1
        case (3, 1):
            output[count] = UInt8(truncatingIfNeeded: group >> 10)
            output[count + 1] = UInt8(truncatingIfNeeded: group >> 2)
            count += 2
        default: return false
        }
        return true
    }

    /// The text, padded, in one piece.
    static func encode(_ bytes: [UInt8]) -> [UInt8] { Base64.encodeUnbroken(bytes) }
}
