// Listings that grow with the number of users: read and printed page by page, so that memory and
// statements stay bounded.

import Foundation
import Support

/// The limit on the rows of a listing.
enum Limit {
    /// At most `limit` rows, and whether there are more.
    /// - Parameter read: gets the number of rows to read.
    static func read<Row>(
        _ limit: Int, _ read: (Int) throws -> [Row]
    ) throws -> (rows: [Row], isMore: Bool) {
        let rows = try read(min(limit, Int(Int32.max) - 1) + 1)
        return (Array(rows.prefix(limit)), rows.count > limit)
    }

    /// Prints on standard error that more rows exist.
    static func remark(_ limit: Int, _ what: String, _ many: String? = nil) {
        Failure.remark(
            "there are more than \(Count.text(limit)) \(many ?? what + "s"): see more with --limit")
    }
}

extension OutputOptions {
    /// The number of rows of a listing that one statement reads.
    static let page = 1_000

    /// Prints a listing like the other `print` functions, each page as soon as it is read.
    ///
    /// Throws `CommandError` if standard output cannot be written.
    /// - Parameter read: returns the rows after a place (nil for the beginning), and the place
    ///   after them (nil at the end).
    func print<Row, Place, View: Encodable>(
        _ header: [String], pages read: (Place?) throws -> (rows: [Row], next: Place?),
        json view: (Row) -> View,
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
                let elements = try jsonOctets(page.rows.map(view)).dropFirst().dropLast(
                    "\n]".utf8.count)
                try BatchOutput.write(Data((isEmpty ? "[" : ",").utf8) + elements)
            } else {
                let lines = Table(header: header, rows: page.rows.map(columns)).lines(
                    below: &widths)
                try BatchOutput.write(line: lines.joined(separator: "\n"))
            }
            isEmpty = false
        } while place != nil
        guard json else { return }
        if isEmpty { try printJSON([View]()) } else { try BatchOutput.write(line: "\n]") }
    }
}
