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
        var bytes = bytes
        while let first = bytes.first, isFolding(first) { bytes.removeFirst() }
        while let last = bytes.last, isFolding(last) { bytes.removeLast() }
        return bytes
    }

    /// The parts between colons, trimmed.
    static func colonList(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        bytes.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map(trimmed)
    }

    static func equals(_ bytes: ArraySlice<UInt8>, _ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes.elementsEqual($0) }
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
        for label in bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-"),
                label.allSatisfy({ isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") })
            else { return nil }
        }
        return String(decoding: bytes.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Whether `domain` is `parent` or lies below it; both in lower case.
    static func isSameOrSubdomain(_ domain: String, of parent: String) -> Bool {
        domain == parent || domain.hasSuffix("." + parent)
    }
}

/// Base64 (RFC 4648 section 4) as DKIM writes it, with folding white space anywhere (RFC 6376 section 2.5, `base64string`).
enum DKIMBase64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, octet) in alphabet.enumerated() { values[Int(octet)] = UInt8(value) }
        return values
    }()

    /// The octets; nil where another octet occurs, padding is missing, misplaced or too long, or where there is nothing.
    static func decode(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        var output = [UInt8]()
        output.reserveCapacity(bytes.count / 4 * 3)
        var group: UInt32 = 0
        var digits = 0
        var padding = 0
        for octet in bytes where !DKIMSyntax.isFolding(octet) {
            if octet == UInt8(ascii: "=") {
                padding += 1
                guard padding <= 2 else { return nil }
                continue
            }
            let value = values[Int(octet)]
            guard value != 0xFF, padding == 0 else { return nil }
            group = group << 6 | UInt32(value)
            digits += 1
            if digits == 4 {
                output.append(UInt8(truncatingIfNeeded: group >> 16))
                output.append(UInt8(truncatingIfNeeded: group >> 8))
                output.append(UInt8(truncatingIfNeeded: group))
                group = 0
                digits = 0
            }
        }
        switch (digits, padding) {
        case (0, 0): break
        case (2, 2): output.append(UInt8(truncatingIfNeeded: group >> 4))
        case (3, 1):
            output.append(UInt8(truncatingIfNeeded: group >> 10))
            output.append(UInt8(truncatingIfNeeded: group >> 2))
        default: return nil
        }
        return output.isEmpty ? nil : output
    }

    /// The text, padded, in one piece.
    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var output = [UInt8]()
        output.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let rest = bytes[start..<min(start + 3, bytes.count)]
            var group: UInt32 = 0
            for offset in 0..<3 { group = group << 8 | (offset < rest.count ? UInt32(rest[start + offset]) : 0) }
            for digit in 0..<4 {
                let index = Int(group >> UInt32(18 - 6 * digit) & 0x3F)
                output.append(digit <= rest.count ? alphabet[index] : UInt8(ascii: "="))
            }
        }
        return output
    }
}
