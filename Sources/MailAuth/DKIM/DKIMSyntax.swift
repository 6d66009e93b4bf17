// The small grammar that DKIM fields and key records share (RFC 6376 sections 2 and 3.2): white
// space, numbers, domains, base64.

import InternetMessage
import Support

/// A field or record that violates RFC 6376. The reason never quotes it, as it may contain an
/// address.
struct DKIMSyntaxError: Error, Hashable {
    let reason: String
    init(_ reason: String) { self.reason = reason }
}

enum DKIMSyntax {
    static func isWhiteSpace(_ octet: UInt8) -> Bool { octet == 0x20 || octet == 0x09 }

    static func isFolding(_ octet: UInt8) -> Bool {
        octet == 0x20 || octet == 0x09 || octet == 0x0D || octet == 0x0A
    }

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
            for (index, octet) in zip(bytes.indices, text) where bytes[index] != octet {
                return false
            }
            return true
        }
    }

    /// 1 to `maximumDigits` digits; a number that does not fit into `Int64` becomes its largest
    /// value (RFC 6376 section 3.5, `t=`).
    static func number(_ bytes: ArraySlice<UInt8>, maximumDigits: Int) -> Int64? {
        guard !bytes.isEmpty, bytes.count <= maximumDigits, bytes.allSatisfy(\.isASCIIDigit) else {
            return nil
        }
        var value: Int64 = 0
        for octet in bytes {
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(Int64(octet - 0x30))
            guard !overflow, !carry else { return .max }
            value = sum
        }
        return value
    }

    /// A domain name or selector in lower case; nil if it is not valid. Underscores are accepted,
    /// as selectors use them and the DNS allows them. U-labels (RFC 8616) are not, as they must be
    /// sent as A-labels.
    static func domain(_ bytes: ArraySlice<UInt8>) -> String? {
        guard !bytes.isEmpty, bytes.count <= DomainName.maximumQueryLength else { return nil }
        var start = bytes.startIndex
        for index in bytes.startIndex...bytes.endIndex {
            guard index == bytes.endIndex || bytes[index] == UInt8(ascii: ".") else {
                let octet = bytes[index]
                guard
                    octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "-")
                        || octet == UInt8(ascii: "_")
                else {
                    return nil
                }
                continue
            }
            guard (1...DomainName.maximumLabelLength).contains(index - start),
                bytes[start] != UInt8(ascii: "-"),
                bytes[index - 1] != UInt8(ascii: "-")
            else { return nil }
            start = index + 1
        }
        return String(unsafeUninitializedCapacity: bytes.count) { buffer in
            for (index, octet) in zip(buffer.indices, bytes) {
                buffer[index] = octet.asciiLowercased
            }
            return bytes.count
        }
    }
}

/// Base64 (RFC 4648 section 4) as DKIM writes it, with folding white space anywhere (RFC 6376
/// section 2.5, `base64string`).
enum DKIMBase64 {
    /// The octets; nil if another octet occurs, padding is missing, misplaced or too
    /// long, or if there is nothing.
    static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let (octets, defects) = Base64.decode(text)
        return defects.isSubset(of: [.nonZeroPaddingBits]) && !octets.isEmpty ? octets : nil
    }
}
