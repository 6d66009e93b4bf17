// Runs an import: reads, applies in short transactions, and lets the relay write in between.

import Database
import Accounts
import Foundation

/// What an import has done so far.
package struct ImportReport: Sendable {
    package var rows = 0
    /// Rows of which everything already existed.
    package var unchanged = 0
    package var refused = 0
    /// Rows whose `verified` was ignored, because it is not trusted.
    package var passedOverVerified = 0
    /// Names of which something was left out that cannot be in one.
    package var cleanedNames = 0
    package var counts = ImportCounts()

    package init() {}
}

package struct Importer {
    /// How long a transaction should take. Some take half as long again, and no other writer (counters, new tokens of the
    /// relay) should wait longer than 100 ms.
    private static let transaction: Duration = .milliseconds(60)
    /// Rows of the first transaction, and the minimum and maximum of all.
    private static let rows = (first: 100, range: 20...5_000)
    /// The part of the transaction's time that is then left to other writers: SQLite lets in the writer that tries just then.
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
    ///   - pauses: whether others write to the same database.
    ///   - refused: called for each row not applied, with its line, in file order; the reason contains no inbox address.
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

    /// Takes the next record of the file. Applied rows are committed, whatever happens later.
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

    /// Applies what is left.
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

    /// Aims at transactions of the chosen duration, and lets others write in between.
    private mutating func adapt(_ took: Duration) {
        let wanted = Double(batch.count) * (Self.transaction / max(took, .microseconds(1)))
        let next = min(max(wanted, Double(size) / 2), Double(size) * 2)
        size = min(max(Int(next), Self.rows.range.lowerBound), Self.rows.range.upperBound)
        // A remainder would need as many statements again, with fewer rows each.
        if size > BulkStatements.largest { size -= size % BulkStatements.largest }
        if pauses { Thread.sleep(forTimeInterval: (took / Self.pauseDivisor) / .seconds(1)) }
    }
}
