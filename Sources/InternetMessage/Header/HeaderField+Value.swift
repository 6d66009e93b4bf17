// The content of a header field's raw value: unfolded, decoded, and checked for octets that no
// header may contain.

/// Octets in a header field that could make two programs see different lines or different values.
package struct HeaderControls: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// NUL.
    package static let nul = HeaderControls(rawValue: 1)
    /// CR without a following LF.
    package static let bareCR = HeaderControls(rawValue: 2)
    /// LF without a preceding CR, also if white space follows.
    package static let bareLF = HeaderControls(rawValue: 4)
    /// CRLF (or LF) without following white space: a line break that is not a fold.
    package static let lineBreak = HeaderControls(rawValue: 8)
    /// A fold with only white space in its continuation (obs-FWS).
    package static let emptyContinuation = HeaderControls(rawValue: 16)
    /// A control character other than tab, CR, LF and NUL.
    package static let otherControl = HeaderControls(rawValue: 32)

    /// Octets that make two programs see different fields.
    package static let ambiguous = HeaderControls(rawValue: 1 | 2 | 4 | 8)
    /// Line breaks that are not folds, and folds without CR.
    static let brokenLine = HeaderControls(rawValue: 2 | 4 | 8)
}

extension HeaderField {
    /// Control octets anywhere in the field, name included. Empty for a well-formed field; folds as
    /// CRLF + WSP are well formed.
    package var controls: HeaderControls { HeaderControls(scanning: bytes[...]) }

    /// The value without folds: a line break before white space is removed (RFC 5322 section
    /// 2.2.3), nothing else.
    package var unfoldedBytes: [UInt8] { Self.unfold(rawValue) }

    /// The unfolded value as text, without white space at either end; octets that are
    /// not UTF-8 become U+FFFD.
    package var unfoldedValue: String {
        String(decoding: Self.trim(unfoldedBytes[...]), as: UTF8.self)
    }

    /// The unfolded value with encoded words decoded (RFC 2047); for
    /// unstructured fields such as Subject.
    package var decodedValue: String { EncodedWord.decode(Self.trim(unfoldedBytes[...])) }

    /// The slice without WSP, CR and LF at either end.
    package static func trim(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var slice = value
        while let first = slice.first, first.isFoldingWhiteSpace { slice.removeFirst() }
        while let last = slice.last, last.isFoldingWhiteSpace { slice.removeLast() }
        return slice
    }

    /// Removes line breaks (CRLF or LF) before white space.
    package static func unfold(_ value: ArraySlice<UInt8>) -> [UInt8] {
        guard value.contains(0x0A) else { return Array(value) }
        var output = [UInt8]()
        output.reserveCapacity(value.count)
        var index = value.startIndex
        while index < value.endIndex {
            let width = lineBreakWidth(value, at: index)
            if width > 0, index + width < value.endIndex, value[index + width].isWhiteSpace {
                index += width
            } else {
                output.append(value[index])
                index += 1
            }
        }
        return output
    }

    /// 2 for CRLF, 1 for LF, 0 for anything else at `index`.
    static func lineBreakWidth(_ value: ArraySlice<UInt8>, at index: Int) -> Int {
        if value[index] == 0x0A { return 1 }
        if value[index] == 0x0D, index + 1 < value.endIndex, value[index + 1] == 0x0A { return 2 }
        return 0
    }

    /// Adds the defects of this field.
    func inspect(into defects: inout Set<MessageDefect>) {
        if valueStart == bytes.count, bytes.last != UInt8(ascii: ":") {
            defects.insert(.lineWithoutColon)
        } else if nameLength == 0 {
            defects.insert(.emptyName)
        } else {
            if nameLength < valueStart - 1 { defects.insert(.spaceBeforeColon) }
            for octet in bytes[..<nameLength] where octet <= 0x20 || octet >= 0x7F {
                defects.insert(octet >= 0x80 ? .eightBitName : .invalidName)
            }
        }
        let controls = controls
        if controls.contains(.nul) { defects.insert(.nul) }
        if controls.contains(.bareCR) { defects.insert(.bareCR) }
        if controls.contains(.bareLF) { defects.insert(.bareLF) }
        if controls.contains(.otherControl) { defects.insert(.controlCharacter) }
        if bytes.contains(where: { $0 >= 0x80 }), !bytes.isValidUTF8 { defects.insert(.notUTF8) }
    }
}

extension HeaderControls {
    /// Finds the control octets of a field or value.
    package init(scanning bytes: ArraySlice<UInt8>) {
        self = bytes.withUnsafeBufferPointer(Self.find)
    }

    private static func find(_ bytes: UnsafeBufferPointer<UInt8>) -> HeaderControls {
        var found: HeaderControls = []
        var index = bytes.firstControl()
        // Whether the current continuation line contains only white space so far. While it does,
        // each octet is examined.
        var isBlankContinuation = false
        while index < bytes.count {
            let octet = bytes[index]
            index += 1
            switch octet {
            case 0x0D where index == bytes.count || bytes[index] != 0x0A: found.insert(.bareCR)
            case 0x0D, 0x0A:
                if octet == 0x0D { index += 1 } else { found.insert(.bareLF) }
                if isBlankContinuation { found.insert(.emptyContinuation) }
                isBlankContinuation = index < bytes.count && bytes[index].isWhiteSpace
                if !isBlankContinuation { found.insert(.lineBreak) }
            case 0x20, 0x09: break
            case 0: found.insert(.nul)
            default:
                if octet.isControl { found.insert(.otherControl) }
                isBlankContinuation = false
            }
            if !isBlankContinuation { index = bytes.firstControl(from: index) }
        }
        if isBlankContinuation { found.insert(.emptyContinuation) }
        return found
    }
}
