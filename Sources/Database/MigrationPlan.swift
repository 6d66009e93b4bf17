// The effects of migrations on a database in use, read from their text: the rows that they process,
// and whether older programs still work.

/// The effects of one migration on existing data.
package struct MigrationStep: Sendable, Hashable {
    /// The slow part of a migration: it processes all rows of a table.
    package enum Work: String, Sendable, Hashable {
        /// Rows are read, for an index or to check a new constraint.
        case read
        /// Rows are rewritten.
        case rewrite

        /// Rows a second on a slow disk. A fast disk takes a fifth of the time, or less.
        var rate: Int64 { self == .read ? 500_000 : 50_000 }
        /// Octets of disk that a row needs until the next checkpoint: an index entry, or the
        /// rewritten row and its log.
        var octets: Int64 { self == .read ? 40 : 600 }
    }

    /// A table whose rows a migration processes.
    package struct Pass: Sendable, Hashable {
        package let table: String
        package let work: Work
        /// The present number of rows in the table.
        package var rows: Int64 = 0

        var milliseconds: Int64 { rows * 1000 / work.rate }
        var octets: Int64 { rows * work.octets }
    }

    /// For example `0002-name`.
    package let title: String
    package internal(set) var passes: [Pass]
    /// Tables, and columns as `table.column`, that do not exist after the migration, although an
    /// older program uses them.
    package let removed: [String]

    /// The estimated time on a slow disk.
    package var milliseconds: Int64 { passes.reduce(0) { $0 + $1.milliseconds } }
    /// The estimated octets of disk space.
    package var octets: Int64 { passes.reduce(0) { $0 + $1.octets } }
}

/// Reads migrations in order, and remembers the tables that earlier ones created, which have no
/// rows yet.
struct MigrationReader {
    private let dialect: Dialect
    private var made: Set<String> = []
    /// Tables that were created and filled, each with the table from which its rows come.
    private var filled: [String: String] = [:]

    init(_ dialect: Dialect) { self.dialect = dialect }

    mutating func step(_ migration: Migration) -> MigrationStep {
        var passes: [MigrationStep.Pass] = []
        var (removed, added): ([String], Set<String>) = ([], [])
        func pass(_ table: String, _ work: MigrationStep.Work) {
            // A table that was created and filled has as many rows as the table that filled it.
            guard let table = made.contains(table) ? filled[table] : table else { return }
            passes.append(MigrationStep.Pass(table: table, work: work))
        }
        func remove(_ name: String) {
            // An object that this migration itself added did not exist before.
            if added.remove(name) == nil { removed.append(name) }
        }
        for statement in Self.statements(of: migration, dialect) {
            switch statement.shape {
            case .createTable(let table): made.insert(table)
            case .createIndex(let table): pass(table, .read)
            case .dropTable(let table): if made.remove(table) == nil { remove(table) }
            case .renameTable(let table, let name):
                if made.remove(table) != nil {
                    made.insert(name)
                    filled[name] = filled.removeValue(forKey: table)
                } else {
                    removed.append(table)
                }
            case .addColumn(let table, let column, let isChecked):
                added.insert("\(table).\(column)")
                if isChecked { pass(table, .read) }
            case .dropColumn(let table, let column):
                if !made.contains(table) { remove("\(table).\(column)") }
                pass(table, .rewrite)
            case .renameColumn(let table, let column, let name):
                if !made.contains(table) { remove("\(table).\(column)") }
                added.insert("\(table).\(name)")
            case .change(let tables): for table in tables { pass(table, .rewrite) }
            case .fill(let table, let sources):
                for source in sources { pass(source, .rewrite) }
                if made.contains(table), let source = sources.first {
                    filled[table] = made.contains(source) ? filled[source] : source
                }
            case .other: break
            }
        }
        return MigrationStep(
            title: migration.title, passes: passes, removed: removed.filter { !added.contains($0) })
    }

    /// Statements without comments, and without the bodies of triggers and
    /// functions: these run later.
    static func statements(of migration: Migration, _ dialect: Dialect) -> [SchemaStatement] {
        let lines = dialect.translate(migration.sql).split(separator: "\n")
        let text = lines.filter { !$0.drop { $0 == " " }.hasPrefix("--") }.joined(separator: "\n")
        var (statements, end): ([SchemaStatement], String?) = ([], nil)
        for piece in text.split(separator: ";") {
            let statement = SchemaStatement(piece)
            if let within = end {
                if within == "END" ? statement.words == ["END"] : statement.words.contains(within) {
                    end = nil
                }
            } else {
                statements.append(statement)
                end = statement.bodyEnd
            }
        }
        return statements
    }
}

/// A statement of a migration, with the parts that a plan needs.
struct SchemaStatement {
    enum Shape {
        case createTable(String), createIndex(String), dropTable(String), other
        case renameTable(String, String)
        case addColumn(String, String, isChecked: Bool)
        case dropColumn(String, String)
        case renameColumn(String, String, String)
        /// Rows of these tables are written.
        case change([String])
        /// Rows of the other tables are written into the first one.
        case fill(String, [String])
    }

    /// Words and names, without punctuation.
    let words: [String]
    /// The word that ends the body that follows: `END` of a trigger, the quote of a function or a
    /// block. Nil if the statement is complete.
    let bodyEnd: String?

    init(_ text: Substring) {
        words = text.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.map(
            String.init)
        let quote = words.first { $0.hasPrefix("$") && $0.hasSuffix("$") }
        if let quote, !words.count(where: { $0 == quote }).isMultiple(of: 2) {
            bodyEnd = quote
        } else {
            bodyEnd =
                words.starts(with: ["CREATE", "TRIGGER"]) && words.contains("BEGIN") ? "END" : nil
        }
    }

    private func word(_ index: Int) -> String { index < words.count ? words[index] : "" }

    var shape: Shape {
        switch (word(0), word(1)) {
        case ("CREATE", "TABLE"): return .createTable(word(2))
        case ("CREATE", "INDEX"), ("CREATE", "UNIQUE"):
            return words.firstIndex(of: "ON").map { .createIndex(word($0 + 1)) } ?? .other
        case ("DROP", "TABLE"): return .dropTable(word(2))
        case ("ALTER", "TABLE"):
            switch (word(3), word(4)) {
            case ("ADD", "COLUMN"):
                return .addColumn(word(2), word(5), isChecked: words.contains("CHECK"))
            case ("DROP", "COLUMN"): return .dropColumn(word(2), word(5))
            case ("RENAME", "COLUMN"): return .renameColumn(word(2), word(5), word(7))
            case ("RENAME", "TO"): return .renameTable(word(2), word(5))
            default: return .other
            }
        case ("UPDATE", _): return .change([word(1)])
        case ("DELETE", "FROM"): return .change([word(2)])
        case ("INSERT", "INTO"):
            return .fill(
                word(2),
                words.indices.filter { ["FROM", "JOIN"].contains(words[$0]) }.map { word($0 + 1) }
                    .reversed())
        default: return .other
        }
    }
}
