// Character sets by name: fast code for the four common ones, iconv for the others.
import Glibc

/// Conversion between octets in a named charset and text.
package enum Charset {
    /// Text decoded from octets.
    package struct Decoded: Sendable, Equatable {
        /// The text, with U+FFFD for octets that could not be decoded.
        package var text: String
        /// Whether every octet was decoded.
        package var isLossless: Bool
    }

    /// Decodes octets; malformed sequences become U+FFFD. Nil if the charset is unknown. Labels
    /// compare case-insensitively.
    package static func decode(_ bytes: some Collection<UInt8>, _ label: String) -> String? {
        decodeCheckingLoss(bytes, label)?.text
    }

    /// Decodes octets; nil if the charset is unknown or an octet does not decode.
    package static func decodeStrict(_ bytes: some Collection<UInt8>, _ label: String) -> String? {
        guard let decoded = decodeCheckingLoss(bytes, label), decoded.isLossless else { return nil }
        return decoded.text
    }

    /// Decodes octets as programs show them: the C1 controls of ISO 8859-1 become the characters of
    /// windows-1252 (WHATWG Encoding). Nil if the charset is unknown.
    package static func decodeAsShown(_ bytes: some Collection<UInt8>, _ label: String) -> String? {
        guard case .latin1? = Kind(label) else { return decode(bytes, label) }
        return decodeSingleByte(bytes) { Windows1252.scalar($0) ?? Unicode.Scalar($0) }.text
    }

    /// Decodes octets and says whether all of them were decoded. Nil if the charset is unknown.
    package static func decodeCheckingLoss(
        _ bytes: some Collection<UInt8>, _ label: String
    ) -> Decoded? {
        switch Kind(label) {
        case .ascii?:
            return decodeSingleByte(bytes) { $0 < 0x80 ? Unicode.Scalar($0) : nil }
        case .utf8?:
            // U+FEFF at the start is a signature in UTF-8 too. It is kept, because it can be
            // encoded again.
            return Decoded(
                text: String(decoding: bytes, as: UTF8.self), isLossless: bytes.isValidUTF8)
        case .latin1?:
            return decodeSingleByte(bytes) { Unicode.Scalar($0) }
        case .windows1252?:
            return decodeSingleByte(bytes) { Windows1252.scalar($0) }
        case .iconv(let name)?:
            return bytes.withContiguousStorageIfAvailable { Iconv.decode($0, from: name) }
                ?? Array(bytes).withUnsafeBufferPointer { Iconv.decode($0, from: name) }
        case .hz?:
            return hz(bytes).withUnsafeBufferPointer { Iconv.decode($0, from: "GB18030") }
        case nil:
            return nil
        }
    }

    /// HZ (RFC 1843), which the platform does not support, as GB 2312 with the high bit set.
    private static func hz(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        var isChinese = false
        var isTilde = false
        for octet in bytes {
            if isTilde {
                isTilde = false
                switch octet {
                case UInt8(ascii: "{"): isChinese = true
                case UInt8(ascii: "}"): isChinese = false
                case UInt8(ascii: "~"): output.append(octet)
                case 0x0A, 0x0D: break
                default: output += [UInt8(ascii: "~"), octet]
                }
            } else if octet == UInt8(ascii: "~") {
                isTilde = true
            } else {
                // A line end also ends the mode, as the mark of its end may be missing.
                if octet == 0x0A || octet == 0x0D { isChinese = false }
                output.append(isChinese && octet > 0x20 && octet < 0x7F ? octet | 0x80 : octet)
            }
        }
        return output
    }

    /// Encodes text; nil if the charset is unknown or lacks one of the characters.
    /// Nothing is transliterated.
    package static func encode(_ text: String, _ label: String) -> [UInt8]? {
        switch Kind(label) {
        case .ascii?: return encodeSingleByte(text) { $0.value < 0x80 ? UInt8($0.value) : nil }
        case .utf8?: return Array(text.utf8)
        case .latin1?: return encodeSingleByte(text) { UInt8(exactly: $0.value) }
        case .windows1252?: return encodeSingleByte(text) { Windows1252.octet($0) }
        case .iconv(let name)?:
            return Array(text.utf8).withUnsafeBufferPointer { Iconv.encode($0, to: name) }
        case .hz?, nil: return nil
        }
    }

    /// Whether `label` names a charset that can be decoded.
    package static func isKnown(_ label: String) -> Bool { decode([UInt8](), label) != nil }

    private static func decodeSingleByte(
        _ bytes: some Collection<UInt8>, _ scalar: (UInt8) -> Unicode.Scalar?
    ) -> Decoded {
        bytes.withContiguousStorageIfAvailable { decodeSingleByte(octets: $0, scalar) }
            ?? Array(bytes).withUnsafeBufferPointer { decodeSingleByte(octets: $0, scalar) }
    }

    private static func decodeSingleByte(
        octets bytes: UnsafeBufferPointer<UInt8>, _ scalar: (UInt8) -> Unicode.Scalar?
    ) -> Decoded {
        // The UTF-8 form of each non-ASCII octet; empty if it has none.
        let upper: [[UInt8]] = (0x80...0xFF).map { octet in
            scalar(UInt8(octet)).flatMap { UTF8.encode($0) }.map { Array($0) } ?? []
        }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count + bytes.count / 8)
        var isLossless = true
        for octet in bytes {
            if octet < 0x80 {
                text.append(octet)
            } else if !upper[Int(octet) - 0x80].isEmpty {
                text += upper[Int(octet) - 0x80]
            } else {
                isLossless = false
                text += [0xEF, 0xBF, 0xBD]
            }
        }
        return Decoded(text: String(decoding: text, as: UTF8.self), isLossless: isLossless)
    }

    private static func encodeSingleByte(
        _ text: String, _ octet: (Unicode.Scalar) -> UInt8?
    ) -> [UInt8]? {
        var bytes = [UInt8]()
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let octet = octet(scalar) else { return nil }
            bytes.append(octet)
        }
        return bytes
    }

    /// Longest charset name accepted, in octets: longer than any registered one. A
    /// longer label is unknown.
    static let maximumLabelLength = 64

    private enum Kind {
        case ascii, utf8, latin1, windows1252, hz
        case iconv(String)

        init?(_ label: String) {
            let name = label.asciiLowercased
            // No slash: senders must not choose "//TRANSLIT" or glibc's own paths.
            guard !name.isEmpty, name.utf8.count <= Charset.maximumLabelLength,
                name.utf8.allSatisfy({
                    $0.isASCIILetter || $0.isASCIIDigit || "-_.:+()".utf8.contains($0)
                })
            else { return nil }
            switch name {
            case "us-ascii", "ascii", "ansi_x3.4-1968", "iso646-us", "iso_646.irv:1991", "646",
                "cp367", "us":
                self = .ascii
            case "utf-8", "utf8", "unicode-1-1-utf-8", "utf_8", "x-utf-8": self = .utf8
            case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "l1", "iso88591",
                "iso_8859-1:1987", "cp819":
                self = .latin1
            case "windows-1252", "cp1252", "cp-1252", "win-1252", "x-cp1252", "1252":
                self = .windows1252
            // Names of the locale's or glibc's internal form, never of a charset in mail.
            case "char", "wchar_t", "internal": return nil
            case "utf-16", "utf16": self = .iconv("UTF-16")
            case "ks_c_5601-1987", "ks_c_5601", "ksc5601", "ks_c_5601-1989", "korean":
                self = .iconv("CP949")
            case "hz-gb-2312", "hz", "hz-gb2312": self = .hz
            // Labels that programs use for a superset.
            case "gb2312", "gb_2312-80", "x-gbk", "gbk", "cp936", "cp-936": self = .iconv("GB18030")
            case "shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "ms_kanji":
                self = .iconv("CP932")
            case "iso-8859-8-i", "iso-8859-8-e", "logical", "visual": self = .iconv("ISO-8859-8")
            case "unicode-1-1-utf-7", "x-unicode-2-0-utf-7", "utf7": self = .iconv("UTF-7")
            case "x-euc-jp": self = .iconv("EUC-JP")
            case "x-mac-roman", "macroman", "x-macintosh": self = .iconv("MACINTOSH")
            case "x-big5", "big5-eten": self = .iconv("BIG5")
            default: self = .iconv(name)
            }
        }
    }
}

/// The upper half of windows-1252 (octets 80–9F); the rest is ISO 8859-1.
private enum Windows1252 {
    /// Code points of the octets 80–9F; 0 if the octet has no meaning.
    static let table: [UInt16] = [
        0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
        0x0152, 0, 0x017D, 0,
        0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
        0x0153, 0, 0x017E, 0x0178,
    ]

    static func scalar(_ octet: UInt8) -> Unicode.Scalar? {
        guard octet >= 0x80, octet < 0xA0 else { return Unicode.Scalar(octet) }
        let value = table[Int(octet) - 0x80]
        return value == 0 ? nil : Unicode.Scalar(value)
    }

    static func octet(_ scalar: Unicode.Scalar) -> UInt8? {
        if scalar.value < 0x80 || (scalar.value >= 0xA0 && scalar.value <= 0xFF) {
            return UInt8(scalar.value)
        }
        guard scalar.value > 0xFF, let value = UInt16(exactly: scalar.value),
            let index = table.firstIndex(of: value)
        else {
            return nil
        }
        return UInt8(0x80 + index)
    }
}
