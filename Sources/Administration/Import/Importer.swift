// Runs an import: reads, applies in short transactions, and lets the relay write in between.

import Accounts
import Database
import Foundation

/// The progress of an import.
package struct ImportReport: Sendable {
    package var rows = 0
    /// Rows whose objects all existed already.
    package var unchanged = 0
    package var refused = 0
    /// Rows whose `verified` was ignored, because it is not trusted.
    package var passedOverVerified = 0
    /// Names from which characters were left out that a name must not contain.
    package var cleanedNames = 0
    package var counts = ImportCounts()

    package init() {}
}

package struct Importer {
    /// The planned duration of a transaction. Some take half as long again, and no other writer
    /// (counters, new tokens of the relay) should wait longer than 100 ms.
    private static let transaction: Duration = .milliseconds(60)
    /// The rows of the first transaction, and the smallest and largest number in any.
    private static let rows = (first: 100, range: 20...5_000)
    /// The pause after a transaction is its duration divided by this. SQLite lets a writer in only
    /// if it tries during a pause.
    private static let pauseDivisor = 4

    private let imports: ImportRepository
    private let reading: ImportReading
    private let change: Change
    private let pauses: Bool
    private let refused: (Int, String) throws -> Void
    private var batch: [(line: Int, row: ImportRow)] = []
    private var refusals: [(line: Int, reason: String)] = []
    private var size = rows.first

    package private(set) var report = ImportReport()

    /// - Parameters:
    ///   - pauses: whether other processes write to the same database.
    ///   - refused: called for each row that is not applied, with its line, in file order; the
    ///     reason contains no inbox address.
    package init(
        imports: ImportRepository, reading: ImportReading, change: Change, pauses: Bool = true,
        refused: @escaping (Int, String) throws -> Void
    ) {
        self.imports = imports
        self.reading = reading
        self.change = change
        self.pauses = pauses
        self.refused = refused
    }

    /// Applies the next record of the file, or adds it to the batch. Applied rows stay committed,
    /// even if a later step fails.
    package mutating func take(_ record: ImportRecord) throws {
        report.rows += 1
        do throws(StoreFailure) {
            let (row, leftOut) = try reading.row(try record.fields.get())
            if leftOut.isVerified { report.passedOverVerified += 1 }
            if leftOut.isOfName { report.cleanedNames += 1 }
            batch.append((record.line, row))
        } catch {
            refusals.append((record.line, error.message))
        }
        if batch.count + refusals.count >= size { try flush() }
    }

    /// Applies the remaining rows.
    package mutating func finish() throws { try flush() }

    private mutating func flush() throws {
        if !batch.isEmpty {
            let clock = ContinuousClock()
            let start = clock.now
            let outcomes = try imports.apply(batch.map(\.row), change)
            let took = clock.now - start
            for ((line, _), outcome) in zip(batch, outcomes) {
                switch outcome {
                case .refused(let refusal): refusals.append((line, refusal.message))
                case .done(let counts):
                    if counts.isEmpty { report.unchanged += 1 }
                    report.counts += counts
                }
            }
            adapt(took)
            batch.removeAll(keepingCapacity: true)
        }
        for (line, reason) in refusals.sorted(by: { $0.line < $1.line }) {
            report.refused += 1
            try refused(line, reason)
        }
        refusals.removeAll(keepingCapacity: true)
    }

    /// Adjusts the batch size to the planned duration, and lets other processes write in between.
    private mutating func adapt(_ took: Duration) {
        let wanted = Double(batch.count) * (Self.transaction / max(took, .microseconds(1)))
        let next = min(max(wanted, Double(size) / 2), Double(size) * 2)
        size = min(max(Int(next), Self.rows.range.lowerBound), Self.rows.range.upperBound)
        // A remainder would need additional statements, with few rows each.
        if size > BulkStatements.largest { size -= size % BulkStatements.largest }
        if pauses { Thread.sleep(forTimeInterval: (took / Self.pauseDivisor) / .seconds(1)) }
    }
}
