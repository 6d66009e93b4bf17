// One header field, kept as received (RFC 5322 section 2.2).

import Support

/// A header field with its raw bytes. Nothing is decoded, unfolded or corrected here.
///
/// `bytes` is the whole field without the CRLF that ends it: `Name: value`, with folds as CRLF
/// followed by white space.
package struct HeaderField: Sendable, Hashable {
    /// The whole field, from the first octet of the name to the last before the final CRLF.
    package let bytes: [UInt8]
    /// Length in octets of the field name, without obsolete white space before the colon.
    package let nameLength: Int
    /// Offset of the first octet after the colon; equal to `bytes.count` if there is none.
    package let valueStart: Int

    /// Makes a field from its octets in a message, without the final CRLF. A line without a colon
    /// has an empty name.
    package init(bytes: [UInt8]) {
        self.bytes = bytes
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            nameLength = 0
            valueStart = bytes.count
            return
        }
        var end = colon
        while end > 0, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        nameLength = end
        valueStart = colon + 1
    }

    /// Makes a field from a name and everything after the colon, leading white space included.
    package init(name: String, rawValue: ArraySlice<UInt8>) {
        var bytes = [UInt8]()
        bytes.reserveCapacity(name.utf8.count + 1 + rawValue.count)
        bytes.append(contentsOf: name.utf8)
        nameLength = bytes.count
        bytes.append(UInt8(ascii: ":"))
        valueStart = bytes.count
        bytes.append(contentsOf: rawValue)
        self.bytes = bytes
    }

    /// Makes a field from a name and everything after the colon, leading white space included.
    package init(name: String, rawValue: [UInt8]) { self.init(name: name, rawValue: rawValue[...]) }

    /// Makes a field `name: value`.
    package init(_ name: String, _ value: String) {
        self.init(name: name, rawValue: Array(" \(value)".utf8))
    }

    /// The field name as written; octets outside ASCII are replaced.
    package var name: String { String(decoding: bytes[..<nameLength], as: UTF8.self) }

    /// Everything after the colon, folds and leading white space included.
    package var rawValue: ArraySlice<UInt8> { bytes[valueStart...] }

    /// Whether the field has this name; ASCII letters compare case-insensitively
    /// (RFC 5322 section 1.2.2).
    package func isNamed(_ other: String) -> Bool {
        // Most names already differ in length.
        guard other.utf8.count == nameLength else { return false }
        var other = other
        return other.withUTF8 { other in
            for index in 0..<other.count
            where bytes[index].asciiLowercased != other[index].asciiLowercased { return false }
            return true
        }
    }
}
