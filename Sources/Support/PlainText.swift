// Text files as editors and spreadsheets write them.

/// Why octets are not the text of a file.
package struct PlainTextFault: Error, CustomStringConvertible {
    /// Both from 1; nil for the text as a whole.
    let place: (line: Int, column: Int)?
    let reason: String

    init(_ reason: String, at place: (line: Int, column: Int)? = nil) {
        (self.reason, self.place) = (reason, place)
    }

    /// For people, after the name of the file.
    package var description: String {
        place.map { "line \($0.line), column \($0.column): \(reason)" } ?? reason
    }

    /// For people, after the name of the file and the number of a line, if the text was only that
    /// line.
    package var wordsInLine: String { place.map { "column \($0.column): \(reason)" } ?? reason }
}

/// Reads UTF-8 with or without a byte order mark.
package enum PlainText {
    /// The octets of U+FEFF at the beginning of UTF-8.
    package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The text without a byte order mark at its beginning. Throws if the octets are not UTF-8, or
    /// contain NUL.
    package static func read(_ octets: some Sequence<UInt8>) throws(PlainTextFault) -> String {
        var octets = Array(octets)[...]
        if octets.starts(with: byteOrderMark) { octets = octets.dropFirst(byteOrderMark.count) }
        if let fault = fault(octets) { throw fault }
        return String(decoding: octets, as: UTF8.self)
    }

    /// The reason why the octets are not text; nil if they are.
    private static func fault(_ octets: ArraySlice<UInt8>) -> PlainTextFault? {
        if let fault = fileFault(octets) { return fault }
        if String(validating: octets, as: UTF8.self) == nil {
            return PlainTextFault(
                "the text is not UTF-8: save it as UTF-8",
                at: place(of: validPrefix(octets), in: octets))
        }
        guard let zero = octets.firstIndex(of: 0) else { return nil }
        return PlainTextFault(
            "an octet 0 (NUL), which text cannot contain", at: place(of: zero, in: octets))
    }

    /// The reason why the first octets of a file cannot begin UTF-8; nil if they can.
    package static func fileFault(_ head: ArraySlice<UInt8>) -> PlainTextFault? {
        if head.starts(with: [0x1F, 0x8B]) || head.starts(with: [0x50, 0x4B, 0x03, 0x04]) {
            return PlainTextFault(
                "it is compressed, or a spreadsheet: give its text, or export the spreadsheet as CSV"
            )
        }
        // UTF-16 and UTF-32, with or without their marks: there, ASCII characters have zeros beside
        // them.
        let isWide =
            head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF])
            || head.prefix(4).contains(0)
        return isWide ? PlainTextFault("the text is UTF-16 or UTF-32: save it as UTF-8") : nil
    }

    /// The index of the first octet that is not UTF-8.
    private static func validPrefix(_ octets: ArraySlice<UInt8>) -> Int {
        var decoder = UTF8()
        var iterator = octets.makeIterator()
        var index = octets.startIndex
        while case .scalarValue(let scalar) = decoder.decode(&iterator) {
            index += UTF8.width(scalar)
        }
        return index
    }

    /// Line and column, both from 1; the column counts scalars.
    private static func place(
        of index: Int, in octets: ArraySlice<UInt8>
    ) -> (line: Int, column: Int) {
        let before = octets[..<index]
        let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? before.startIndex
        // Every octet that does not continue a scalar begins one.
        let column = before[start...].reduce(1) { $1 & 0xC0 == 0x80 ? $0 : $0 + 1 }
        return (before.reduce(1) { $1 == 0x0A ? $0 + 1 : $0 }, column)
    }
}
