// RFC 4180, with the variants that spreadsheets write. Reads octets in pieces of any size, and
// returns records.

import Support

/// One record, with the line on which it begins.
package struct CSVRecord: Sendable, Equatable {
    /// The line number, from 1. Every LF ends a line, also within quotes.
    package let line: Int
    package let fields: [String]
    /// The error in the record's form; if it is set, the fields are unusable.
    package let defect: String?

    /// The fields, without empty ones at the end for which the header has no name. Nil if there are
    /// more or fewer than the header names.
    /// - Parameter count: the number of columns in the header.
    package func fields(_ count: Int) -> [String]? {
        guard fields.count >= count, fields[count...].allSatisfy(\.isEmpty) else { return nil }
        return Array(fields[..<count])
    }

    /// The fields as names of columns: in lower case, without empty ones at the end.
    package var columnNames: [String] {
        var names = fields.map(\.asciiLowercased)
        while names.last?.isEmpty == true { names.removeLast() }
        return names
    }
}

/// Reads comma-separated values: CRLF or LF, quotes doubled within quotes, line breaks within
/// quotes, a UTF-8 byte order mark. A first line such as `sep=;` sets the separator. Otherwise it
/// is a semicolon or a tab if the first line has one and no comma. Blanks around a field are not
/// part of it. Lines without any value are not records. A malformed record ends with its line.
package struct CSVParser: Sendable {
    /// Maximum octets of one record. Without a limit, a missing quotation mark would make the rest
    /// of the file one record.
    package static let maximumRecord = 65_536

    private enum State: Sendable { case fieldStart, unquoted, quoted, quoteInQuotes, skipping }

    private var state = State.fieldStart
    private var field: [UInt8] = []
    private var fields: [String] = []
    private var defect: String?
    private var size = 0
    private var line = 1
    private var firstLine = 1
    private var quoteLine = 1
    /// A CR outside quotes; the next octet decides whether it ends the line.
    private var pendingCR = false
    /// The first line until it is complete, because it determines the separator.
    private var head: [UInt8]? = []
    private var separator = UInt8(ascii: ",")
    /// Whether the file is not text: then no more is read.
    private var isEnded = false

    package init() {}

    /// Reads more octets, and passes each complete record to `take`.
    package mutating func push(
        _ octets: some Sequence<UInt8>, _ take: (CSVRecord) throws -> Void
    ) rethrows {
        for octet in octets {
            guard head != nil else {
                try read(octet, take)
                continue
            }
            head?.append(octet)
            if octet == 0x0A || (head?.count ?? 0) > Self.maximumRecord { try begin(take) }
        }
    }

    /// Reads the first line.
    private mutating func begin(_ take: (CSVRecord) throws -> Void) rethrows {
        guard var first = head?[...] else { return }
        head = nil
        if first.starts(with: PlainText.byteOrderMark) {
            first = first.dropFirst(PlainText.byteOrderMark.count)
        }
        if let fault = PlainText.fileFault(first) {
            isEnded = true
            return try take(CSVRecord(line: 1, fields: [], defect: fault.description))
        }
        let line = first.prefix { $0 != 0x0A && $0 != 0x0D }
        guard !line.isEmpty else {
            // The first line that is not empty determines the separator.
            for octet in first { try read(octet, take) }
            head = []
            return
        }
        if line.count == 5, line.prefix(4).map(\.asciiLowercased) == Array("sep=".utf8),
            let last = line.last
        {
            separator = last
            (self.line, firstLine) = (2, 2)
            return
        }
        var isQuoted = false
        let unquoted = line.filter { octet in
            if octet == 0x22 { isQuoted.toggle() }
            return !isQuoted
        }
        if !unquoted.contains(separator) {
            separator = [UInt8(ascii: ";"), 0x09].first { unquoted.contains($0) } ?? separator
        }
        for octet in first { try read(octet, take) }
    }

    /// Ends the file: the last line may end without a line break.
    package mutating func finish(_ take: (CSVRecord) throws -> Void) rethrows {
        try begin(take)
        head = nil
        guard !isEnded else { return }
        if pendingCR { spoil("a CR without LF outside quotes") }
        pendingCR = false
        if state == .quoted { spoil("the quotation mark of line \(quoteLine) is not closed") }
        try endRecord(take)
    }

    private mutating func read(_ octet: UInt8, _ take: (CSVRecord) throws -> Void) rethrows {
        guard !isEnded else { return }
        if pendingCR {
            pendingCR = false
            if octet != 0x0A { spoil("a CR without LF outside quotes") }
        }
        if octet == 0x0A {
            line += 1
            if state != .quoted {
                try endRecord(take)
                firstLine = line
                return
            }
        }
        size += 1
        if size > Self.maximumRecord {
            if defect == nil {
                spoil(
                    state == .quoted
                        ? "the quotation mark of line \(quoteLine) is not closed within \(Self.maximumRecord) octets"
                        : "the record is longer than \(Self.maximumRecord) octets")
            }
            return
        }
        switch state {
        case .skipping: break
        case .fieldStart where octet == 0x22,
            .unquoted where octet == 0x22 && field.allSatisfy(\.isBlank):
            state = .quoted
            quoteLine = line
            field.removeAll(keepingCapacity: true)
        case .fieldStart, .unquoted:
            switch octet {
            case separator: endField()
            case 0x0D: pendingCR = true
            case 0x22: spoil("a quotation mark within a field that does not begin with one")
            default:
                field.append(octet)
                state = .unquoted
            }
        case .quoted:
            if octet == 0x22 { state = .quoteInQuotes } else { field.append(octet) }
        case .quoteInQuotes:
            switch octet {
            case 0x22:
                field.append(octet)
                state = .quoted
            case separator: endField()
            case 0x0D: pendingCR = true
            case _ where octet.isBlank: break
            default: spoil("text after the closing quotation mark of a field")
            }
        }
    }

    private mutating func endField() {
        var octets = field[...]
        if state == .unquoted {
            while let length = Self.blank(octets) { octets = octets.dropFirst(length) }
            while let length = Self.blankEnd(octets) { octets = octets.dropLast(length) }
        }
        if let text = String(validating: octets, as: UTF8.self) {
            fields.append(text)
        } else if defect == nil {
            defect =
                "field \(fields.count + 1): the text is not UTF-8: save the file as UTF-8 (a spreadsheet calls it CSV UTF-8)"
            fields.append("")
        }
        field.removeAll(keepingCapacity: true)
        state = .fieldStart
    }

    /// The length of the blank at the beginning of a text: a space, a tab, or U+00A0, which
    /// spreadsheets keep from web pages.
    private static func blank(_ octets: ArraySlice<UInt8>) -> Int? {
        octets.first?.isBlank == true ? 1 : octets.starts(with: [0xC2, 0xA0]) ? 2 : nil
    }

    /// The length of the blank at its end.
    private static func blankEnd(_ octets: ArraySlice<UInt8>) -> Int? {
        octets.last?.isBlank == true ? 1 : octets.suffix(2).elementsEqual([0xC2, 0xA0]) ? 2 : nil
    }

    private mutating func spoil(_ what: String) {
        if defect == nil { defect = what }
        state = .skipping
    }

    private mutating func endRecord(_ take: (CSVRecord) throws -> Void) rethrows {
        if state != .skipping { endField() }
        let isBlank = defect == nil && fields.allSatisfy(\.isEmpty)
        let record = CSVRecord(line: firstLine, fields: fields, defect: defect)
        fields.removeAll(keepingCapacity: true)
        field.removeAll(keepingCapacity: true)
        (state, defect, size) = (.fieldStart, nil, 0)
        if !isBlank { try take(record) }
    }
}

extension UInt8 {
    /// A space or a tab.
    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }
}
