// Strict RFC 4180: reads octets in pieces of any size, and returns records.

/// One record, with the line on which it begins.
package struct CSVRecord: Sendable, Equatable {
    /// Counted from 1; a line ends with every LF, also within quotes.
    package let line: Int
    package let fields: [String]
    /// What is wrong with its form; the fields are unusable then.
    package let defect: String?
}

/// Reads comma-separated values: CRLF or LF, quotes doubled within quotes, line breaks within quotes, a UTF-8 byte order mark.
/// Lines without any character are not records. A malformed record ends with its line.
package struct CSVParser: Sendable {
    /// Maximum octets of one record: a missing quotation mark would otherwise swallow the rest of the file.
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
    /// Octets that begin the file and may be a byte order mark.
    private var mark: [UInt8]? = []

    package init() {}

    /// Reads more octets, and passes on each complete record.
    package mutating func push(_ octets: some Sequence<UInt8>, _ take: (CSVRecord) throws -> Void) rethrows {
        for octet in octets {
            if var head = mark {
                head.append(octet)
                mark = head
                if head == [0xEF, 0xBB, 0xBF] {
                    mark = nil
                } else if !head.elementsEqual([0xEF, 0xBB, 0xBF].prefix(head.count)) {
                    mark = nil
                    for octet in head { try read(octet, take) }
                }
                continue
            }
            try read(octet, take)
        }
    }

    /// Ends the file: the last line needs no line break.
    package mutating func finish(_ take: (CSVRecord) throws -> Void) rethrows {
        if let head = mark {
            mark = nil
            for octet in head { try read(octet, take) }
        }
        if pendingCR { spoil("a CR without LF outside quotes") }
        pendingCR = false
        if state == .quoted { spoil("the quotation mark of line \(quoteLine) is not closed") }
        try endRecord(take)
    }

    private mutating func read(_ octet: UInt8, _ take: (CSVRecord) throws -> Void) rethrows {
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
        case .fieldStart where octet == 0x22:
            state = .quoted
            quoteLine = line
        case .fieldStart, .unquoted:
            switch octet {
            case 0x2C: endField()
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
            case 0x2C: endField()
            case 0x0D: pendingCR = true
            default: spoil("text after the closing quotation mark of a field")
            }
        }
    }

    private mutating func endField() {
        if let text = String(validating: field, as: UTF8.self) {
            fields.append(text)
        } else if defect == nil {
            defect = "the text is not UTF-8"
            fields.append("")
        }
        field.removeAll(keepingCapacity: true)
        state = .fieldStart
    }

    private mutating func spoil(_ what: String) {
        if defect == nil { defect = what }
        state = .skipping
    }

    private mutating func endRecord(_ take: (CSVRecord) throws -> Void) rethrows {
        let isBlank = size == 0 || (size == 1 && fields.isEmpty && state == .fieldStart && defect == nil)
        if state != .skipping { endField() }
        let record = CSVRecord(line: firstLine, fields: fields, defect: defect)
        fields.removeAll(keepingCapacity: true)
        field.removeAll(keepingCapacity: true)
        (state, defect, size) = (.fieldStart, nil, 0)
        if !isBlank { try take(record) }
    }
}
