// The readings of octets that the leak check compares: unchanged, percent-decoded, with references resolved, …

import LeakSearch
import Support

/// One way to read octets. Each reading is in lower case and without white space and NUL, so that UTF-16 and broken lines read
/// alike.
enum LeakView {
    case plain, percent, references, quotedPrintable, xtext

    /// Whether the octets are compressed data or pictures, in which no encodings of text are expected.
    static func isBinary(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var odd = 0
        let sample = min(bytes.count, 2_048)
        for index in 0..<sample
        where bytes[index] < 0x09 || (bytes[index] > 0x0D && bytes[index] < 0x20 && bytes[index] != 0x1B) || bytes[index] == 0x7F
        {
            odd += 1
        }
        // UTF-16 has as many NULs as letters; in compressed data every octet is equally frequent.
        let nuls = bytes.prefix(sample).lazy.filter { $0 == 0 }.count
        return odd - nuls > sample / 32
    }

    /// Whether the octets are only lines of base64, each too long to be a word.
    static func isBase64(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count > 4_096 else { return false }
        var column = 0
        for octet in bytes {
            let isLetter = (octet | 0x20) >= 0x61 && (octet | 0x20) <= 0x7A
            if isLetter || (octet >= 0x2F && octet <= 0x39) || octet == 0x2B {
                column += 1
            } else if octet == 0x0A || octet == 0x0D {
                if octet == 0x0A, column > 0, column < 40 { return false }
                if octet == 0x0A { column = 0 }
            } else {
                return false
            }
        }
        return true
    }

    /// The class of each octet in all readings.
    private static let classes: [UInt8] = (0..<256).map { octet in
        switch octet {
        case 0: 3
        case 0x20, 0x09...0x0D: 2
        case 0x41...0x5A: 1
        case 0x25, 0x26, 0x2B, 0x3D: 4
        default: 0
        }
    }

    /// The octet that begins an encoded one in this reading; 0 for none.
    private var mark: UInt8 {
        switch self {
        case .plain: 0
        case .percent: 0x25
        case .references: 0x26
        case .quotedPrintable: 0x3D
        case .xtext: 0x2B
        }
    }

    /// - Parameters:
    ///   - view: receives the octets as read; `marks` receives what is known of each besides its value (`LeakForms`).
    /// - Returns: whether anything was decoded: otherwise the reading is the plain one.
    func read(_ bytes: UnsafeBufferPointer<UInt8>, into view: OctetBuffer, marks: OctetBuffer) -> Bool {
        view.reserve(bytes.count)
        marks.reserve(bytes.count)
        let mark = mark
        let (octets, flags) = (view.base, marks.base)
        var count = 0
        var gap = LeakForms.afterGap
        var index = 0
        var isDecoded = false
        Self.classes.withUnsafeBufferPointer { classes in
            while index < bytes.count {
                var octet = bytes[index]
                var kind = classes[Int(octet)]
                index += 1
                if kind == 4 {
                    kind = 0
                    if octet == mark {
                        let (value, width) = decode(bytes, index - 1)
                        if width > 0 {
                            isDecoded = true
                            index += width - 1
                            guard let value else { continue }
                            octet = value
                            kind = classes[Int(octet)]
                        }
                    }
                }
                switch kind {
                case 1:
                    octets[count] = octet | 0x20
                    flags[count] = gap | LeakForms.wasCapital
                    count += 1
                    gap = 0
                case 2: gap |= LeakForms.afterGap
                case 3: gap = gap & LeakForms.afterNul != 0 ? LeakForms.afterGap : gap | LeakForms.afterNul
                default:
                    octets[count] = octet
                    flags[count] = gap
                    count += 1
                    gap = 0
                }
            }
        }
        view.count = count
        marks.count = count
        return isDecoded
    }

    /// Whether anything is encoded in this way.
    func decodes(anyOf bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var index = 0
        while let next = bytes.firstIndex(of: mark, from: index) {
            if decode(bytes, next).1 > 0 { return true }
            index = next + 1
        }
        return false
    }

    /// The octet encoded at an index, and how many octets this takes; 0 for no encoding. Nil stands for a soft line break.
    private func decode(_ bytes: UnsafeBufferPointer<UInt8>, _ index: Int) -> (UInt8?, Int) {
        if self == .references { return Self.reference(bytes, index).map { ($0.0, $0.1) } ?? (nil, 0) }
        if let (value, taken) = Self.hex(bytes, index) { return (value, taken) }
        return (nil, self == .quotedPrintable ? Self.softBreak(bytes, index) : 0)
    }

    /// Deliberately not `hexValue`, which the rewriting uses: an error there must not hide from the check what it left.
    static func digit(_ octet: UInt8) -> UInt8? {
        switch octet {
        case 0x30...0x39: octet - 0x30
        case 0x41...0x46: octet - 0x37
        case 0x61...0x66: octet - 0x57
        default: nil
        }
    }

    private static func hex(_ bytes: UnsafeBufferPointer<UInt8>, _ index: Int) -> (UInt8, Int)? {
        guard index + 2 < bytes.count, let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2]) else { return nil }
        return (high << 4 | low, 3)
    }

    private static func softBreak(_ bytes: UnsafeBufferPointer<UInt8>, _ index: Int) -> Int {
        guard index + 1 < bytes.count else { return 0 }
        if bytes[index + 1] == 0x0A { return 2 }
        return index + 2 < bytes.count && bytes[index + 1] == 0x0D && bytes[index + 2] == 0x0A ? 3 : 0
    }

    private static let names: [([UInt8], UInt8)] = [
        ("commat;", 0x40), ("period;", 0x2E), ("equals;", 0x3D), ("num;", 0x23), ("percnt;", 0x25), ("plus;", 0x2B),
        ("lowbar;", 0x5F), ("hyphen;", 0x2D), ("amp;", 0x26), ("nbsp;", 0x20), ("shy;", 0),
    ].map { (Array($0.0.utf8), $0.1) }

    private static func reference(_ bytes: UnsafeBufferPointer<UInt8>, _ index: Int) -> (UInt8, Int)? {
        guard index + 2 < bytes.count else { return nil }
        var at = index + 1
        if bytes[at] != 0x23 {
            for (name, value) in names where at + name.count <= bytes.count && bytes[at] | 0x20 == name[0] {
                if name.indices.allSatisfy({ bytes[at + $0] | 0x20 == name[$0] | 0x20 }) { return (value, 1 + name.count) }
            }
            return nil
        }
        at += 1
        let isHex = bytes[at] | 0x20 == 0x78
        if isHex { at += 1 }
        var value: UInt32 = 0
        let first = at
        while at < bytes.count, at - first < 8, let digit = digit(bytes[at]), isHex || digit < 10 {
            value = value * (isHex ? 16 : 10) + UInt32(digit)
            at += 1
        }
        guard at > first, value < 256 else { return nil }
        if at < bytes.count, bytes[at] == 0x3B { at += 1 }
        return (UInt8(value), at - index)
    }
}
