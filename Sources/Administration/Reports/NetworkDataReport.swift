// Smart Network Data Services of Outlook, as the CSV of its automated access: no heading, one line
// for each address and period.

import Accounts
import MailAuth
import Support

enum NetworkDataReport {
    private static let reporter = "Outlook SNDS"
    private static let filterResults = ["GREEN", "YELLOW", "RED"]

    /// The columns: address, begin and end of the activity, RCPT commands, DATA commands,
    /// recipients, filter result, complaint rate, begin and end of the messages to traps, trap
    /// hits; further ones are not read.
    static func figures(_ octets: [UInt8]) throws(ReportFault) -> [ProviderFigure] {
        var records: [CSVRecord] = []
        var parser = CSVParser()
        parser.push(octets) { records.append($0) }
        parser.finish { records.append($0) }
        guard records.count <= ProviderReport.entries else {
            throw ReportFault("", "more than \(ProviderReport.entries) lines")
        }
        var figures: [ProviderFigure] = []
        for record in records {
            func fault(_ message: String) -> ReportFault {
                ReportFault("line \(record.line)", message)
            }
            if let defect = record.defect { throw fault(defect) }
            guard record.fields.count >= 11 else {
                throw fault("not a line of SNDS: \(record.fields.count) of 11 columns")
            }
            guard let address = IPAddress(record.fields[0]) else {
                throw fault("column 1: an IP address is required")
            }
            guard let day = day(record.fields[1]) else {
                throw fault("column 2: a time is required, as in 11/28/2026 1:00 AM")
            }
            // A day may have several periods, whose counts are added.
            let period = ProviderReport.text(record.fields[1], most: 40)
            func add(_ name: String, _ value: String) {
                figures.append(
                    ProviderFigure(
                        source: .networkData, reporter: reporter, subject: address.description,
                        day: day, name: name, report: period, value: value))
            }
            guard let messages = number(record.fields[4]), let traps = number(record.fields[10])
            else { throw fault("columns 5 and 11: whole numbers are required") }
            add("messages", messages)
            add("trap hits", traps)
            guard
                let result = filterResults.first(where: {
                    $0.hasSameOctets(as: record.fields[6])
                })
            else { throw fault("column 7: GREEN, YELLOW or RED is required") }
            add("filter result", result)
            guard isRate(record.fields[7]) else {
                throw fault("column 8: a percentage is required")
            }
            add("complaint rate", record.fields[7])
        }
        guard !figures.isEmpty else { throw ReportFault("", "no line") }
        return figures
    }

    /// The digits of a number without separators; `0` for an empty field.
    private static func number(_ text: String) -> String? {
        let digits = text.utf8.filter { $0 != UInt8(ascii: ",") && $0 != 0x20 }
        guard digits.allSatisfy(\.isASCIIDigit), digits.count <= 12 else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self)).map(String.init)
            ?? (digits.isEmpty ? "0" : nil)
    }

    /// `< 0.1%`, `0.3%`.
    private static func isRate(_ text: String) -> Bool {
        text.utf8.count <= 12
            && text.utf8.allSatisfy { $0.isASCIIDigit || " <>.%".utf8.contains($0) }
    }

    /// `11/28/2026 1:00 AM`, in the order of the United States.
    private static func day(_ text: String) -> Int64? {
        let parts = text.utf8.prefix { $0 != 0x20 }.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 3,
            parts.allSatisfy({ (1...4).contains($0.count) && $0.allSatisfy(\.isASCIIDigit) })
        else { return nil }
        let numbers = parts.map { $0.reduce(Int64(0)) { $0 * 10 + Int64($1) - 0x30 } }
        return CivilDate.checkedDays(numbers[2], numbers[0], numbers[1])
    }
}
