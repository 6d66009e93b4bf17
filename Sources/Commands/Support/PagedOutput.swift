// Listings that grow with the users: read and printed page by page, so that neither memory nor a statement grows with them.

import Foundation

extension OutputOptions {
    /// Rows that one statement reads of a listing.
    package static let page = 1_000

    /// Prints a listing as the other `print` do, each page as soon as it is read.
    ///
    /// Throws `CommandError` where standard output cannot be written.
    /// - Parameter read: rows behind a place, nil for the beginning, and the place behind them; nil at the end.
    package func print<Row, Place, View: Encodable>(
        _ header: [String], pages read: (Place?) throws -> (rows: [Row], next: Place?), json view: (Row) -> View,
        columns: (Row) -> [String]
    ) throws {
        var place: Place?
        var widths: [Int] = []
        var isEmpty = true
        repeat {
            let page = try read(place)
            place = page.next
            guard !page.rows.isEmpty else { continue }
            if json {
                // The elements without the brackets: all pages are one array.
                let elements = try jsonOctets(page.rows.map(view)).dropFirst().dropLast("\n]".utf8.count)
                try BatchOutput.write(Data((isEmpty ? "[" : ",").utf8) + elements)
            } else {
                let lines = Table(header: header, rows: page.rows.map(columns)).lines(below: &widths)
                try BatchOutput.write(line: lines.joined(separator: "\n"))
            }
            isEmpty = false
        } while place != nil
        guard json else { return }
        if isEmpty { try printJSON([View]()) } else { try BatchOutput.write(line: "\n]") }
    }
}
