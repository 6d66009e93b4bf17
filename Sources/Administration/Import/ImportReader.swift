// Reads rows from the octets of a file: CSV with a header, or JSON lines,
// recognized by the first character.

import Database
import Support

/// A row as read from the file.
package struct ImportRecord: Sendable {
    /// The line on which it begins, from 1.
    package let line: Int
    package let fields: Result<ImportFields, StoreFailure>
}

/// The whole file cannot be imported. The error names the line, and repeats nothing of it.
package struct ImportFileError: Error, CustomStringConvertible {
    package let description: String
}

/// Reads a file in pieces of any size.
package struct ImportReader: Sendable {
    private enum Format: Sendable { case unknown, csv, json }

    private var format = Format.unknown
    private var csv = CSVParser()
    private var columns: [ImportColumn]?
    private var head: [UInt8] = []
    private var lineOctets: [UInt8] = []
    private var line = 1

    package init() {}

    /// Reads more octets. Throws `ImportFileError` if the header is not valid.
    package mutating func push(_ octets: [UInt8], _ take: (ImportRecord) throws -> Void) throws {
        switch format {
        case .unknown:
            head += octets
            if let found = try detect() {
                format = found
                let start = head
                head = []
                try push(start, take)
            }
        case .csv: try pushCSV(octets, take)
        case .json: try pushJSON(octets, take)
        }
    }

    /// Ends the file. Throws `ImportFileError` if the file was empty.
    package mutating func finish(_ take: (ImportRecord) throws -> Void) throws {
        if format == .unknown {
            format = .csv
            let start = head
            head = []
            try push(start, take)
        }
        if format == .json {
            try endLine(take)
            return
        }
        var records: [CSVRecord] = []
        csv.finish { records.append($0) }
        for record in records { try self.take(record, take) }
        guard columns != nil else {
            throw ImportFileError(
                description: "there is no header: the first line must name the columns")
        }
    }

    /// The format of the file: `{` begins JSON lines. Nil while only white space was read.
    private func detect() throws -> Format? {
        let mark = PlainText.byteOrderMark
        if head.count < 3,
            head.elementsEqual(mark.prefix(head.count)) || head.elementsEqual([0xFF])
                || head.elementsEqual([0xFE])
        {
            return nil
        }
        if let fault = PlainText.fileFault(head[...]) {
            throw ImportFileError(description: fault.description)
        }
        let start = head.starts(with: mark) ? head.dropFirst(3) : head[...]
        guard let first = start.first(where: { ![0x20, 0x09, 0x0D, 0x0A].contains($0) }) else {
            return nil
        }
        return first == UInt8(ascii: "{") ? .json : .csv
    }

    // MARK: CSV

    private mutating func pushCSV(_ octets: [UInt8], _ take: (ImportRecord) throws -> Void) throws {
        var records: [CSVRecord] = []
        csv.push(octets) { records.append($0) }
        for record in records { try self.take(record, take) }
    }

    private mutating func take(_ record: CSVRecord, _ take: (ImportRecord) throws -> Void) throws {
        guard let columns else {
            self.columns = try Self.header(record)
            return
        }
        try take(ImportRecord(line: record.line, fields: Self.fields(record, columns)))
    }

    private static func header(_ record: CSVRecord) throws -> [ImportColumn] {
        if let defect = record.defect {
            throw ImportFileError(description: "line \(record.line), the header: \(defect)")
        }
        var columns: [ImportColumn] = []
        for (place, name) in record.columnNames.enumerated() {
            // A file without a header may begin with an inbox, so the error repeats nothing of it.
            guard let column = ImportColumn(rawValue: name) else {
                throw ImportFileError(
                    description: "line \(record.line) must name the columns: column \(place + 1) "
                        + (name.isEmpty ? "has no name" : "is none of: \(ImportColumn.names)"))
            }
            guard !columns.contains(column) else {
                throw ImportFileError(
                    description: "line \(record.line) names the column \(column.rawValue) twice")
            }
            columns.append(column)
        }
        guard columns.contains(.user) else {
            throw ImportFileError(description: "line \(record.line) does not name the column user")
        }
        return columns
    }

    private static func fields(
        _ record: CSVRecord, _ columns: [ImportColumn]
    ) -> Result<ImportFields, StoreFailure> {
        if let defect = record.defect { return .failure(.refused(.invalid, defect)) }
        guard let texts = record.fields(columns.count) else {
            return .failure(
                .refused(
                    .invalid,
                    "the row has \(record.fields.count) fields, but the header has \(columns.count)"
                ))
        }
        var fields = ImportFields()
        for (column, text) in zip(columns, texts) { fields[column] = text }
        return .success(fields)
    }

    // MARK: JSON lines

    private mutating func pushJSON(_ octets: [UInt8], _ take: (ImportRecord) throws -> Void) throws
    {
        for octet in octets {
            guard octet == 0x0A else {
                // One octet over the maximum shows that the line is too long; no more octets are
                // kept.
                if lineOctets.count <= ImportJSONLine.maximum { lineOctets.append(octet) }
                continue
            }
            try endLine(take)
            line += 1
        }
    }

    private mutating func endLine(_ take: (ImportRecord) throws -> Void) throws {
        var octets = lineOctets[...]
        if line == 1, octets.starts(with: PlainText.byteOrderMark) { octets = octets.dropFirst(3) }
        lineOctets = []
        guard octets.contains(where: { ![0x20, 0x09, 0x0D].contains($0) }) else { return }
        let fields = Result { () throws(StoreFailure) in try ImportJSONLine.fields(Array(octets)) }
        try take(ImportRecord(line: line, fields: fields))
    }
}
