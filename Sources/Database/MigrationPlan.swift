// What migrations will do to a database that is in use, as their text tells: to which rows, and whether older programs stand it.

/// What one migration does to what is there already.
package struct MigrationStep: Sendable, Hashable {
    /// What makes a migration take time: it goes through the rows of a table.
    package enum Work: String, Sendable, Hashable {
        /// Rows are read, for an index or to see that they keep a new rule.
        case read
        /// Rows are written again.
        case rewrite

        /// Rows a second on a slow disk; a fast one takes a fifth of the time or less.
        var rate: Int64 { self == .read ? 500_000 : 50_000 }
        /// Octets of disk that a row takes until the next checkpoint: an entry of an index, or the row again and its log.
        var octets: Int64 { self == .read ? 40 : 600 }
    }

    /// A table that a migration goes through.
    package struct Pass: Sendable, Hashable {
        package let table: String
        package let work: Work
        /// How many rows the table has now.
        package var rows: Int64 = 0

        var milliseconds: Int64 { rows * 1000 / work.rate }
        var octets: Int64 { rows * work.octets }
    }

    /// As `0001-first`.
    package let title: String
    package internal(set) var passes: [Pass]
    /// Tables, and columns as `table.column`, that were there before and are not there afterwards: a program of before asks for
    /// them.
    package let removed: [String]

    /// An estimate, as for a slow disk.
    package var milliseconds: Int64 { passes.reduce(0) { $0 + $1.milliseconds } }
    /// The same of what it takes of the disk.
    package var octets: Int64 { passes.reduce(0) { $0 + $1.octets } }
}

/// Reads migrations one after the other, and remembers what the ones before have made: that has no rows yet.
struct MigrationReader {
    private let dialect: Dialect
    private var made: Set<String> = []
    /// Tables that were made and filled, by one that their rows come from.
    private var filled: [String: String] = [:]

    init(_ dialect: Dialect) { self.dialect = dialect }

    mutating func step(_ migration: Migration, title: String) -> MigrationStep {
        var passes: [MigrationStep.Pass] = []
        var (removed, added): ([String], Set<String>) = ([], [])
        func pass(_ table: String, _ work: MigrationStep.Work) {
            // What was made and filled has as many rows as what it was filled from.
            guard let table = made.contains(table) ? filled[table] : table else { return }
            passes.append(MigrationStep.Pass(table: table, work: work))
        }
        func remove(_ name: String) {
            // What this very migration added was never there before.
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
        return MigrationStep(title: title, passes: passes, removed: removed.filter { !added.contains($0) })
    }

    /// Statements without comments, and without what triggers and functions are made of: that runs later.
    static func statements(of migration: Migration, _ dialect: Dialect) -> [SchemaStatement] {
        let lines = dialect.translate(migration.sql).split(separator: "\n")
        let text = lines.filter { !$0.drop { $0 == " " }.hasPrefix("--") }.joined(separator: "\n")
        var (statements, end): ([SchemaStatement], String?) = ([], nil)
        for piece in text.split(separator: ";") {
            let statement = SchemaStatement(piece)
            if let within = end {
                if within == "END" ? statement.words == ["END"] : statement.words.contains(within) { end = nil }
            } else {
                statements.append(statement)
                end = statement.bodyEnd
            }
        }
        return statements
    }
}

/// A statement of a migration, as far as a plan needs it.
struct SchemaStatement {
    enum Shape {
        case createTable(String), createIndex(String), dropTable(String), other
        case renameTable(String, String)
        case addColumn(String, String, isChecked: Bool)
        case dropColumn(String, String)
        case renameColumn(String, String, String)
        /// Rows of these tables are written.
        case change([String])
        /// Rows of the others are written into the first.
        case fill(String, [String])
    }

    /// Words and names, without signs between them.
    let words: [String]
    /// The word that ends what follows as a part of it: `END` of a trigger, the quote of a function or a block. Nil where it is
    /// whole.
    let bodyEnd: String?

    init(_ text: Substring) {
        words = text.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }.map(String.init)
        let quote = words.first { $0.hasPrefix("$") && $0.hasSuffix("$") }
        if let quote, !words.count(where: { $0 == quote }).isMultiple(of: 2) {
            bodyEnd = quote
        } else {
            bodyEnd = words.starts(with: ["CREATE", "TRIGGER"]) && words.contains("BEGIN") ? "END" : nil
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
            case ("ADD", "COLUMN"): return .addColumn(word(2), word(5), isChecked: words.contains("CHECK"))
            case ("DROP", "COLUMN"): return .dropColumn(word(2), word(5))
            case ("RENAME", "COLUMN"): return .renameColumn(word(2), word(5), word(7))
            case ("RENAME", "TO"): return .renameTable(word(2), word(5))
            default: return .other
            }
        case ("UPDATE", _): return .change([word(1)])
        case ("DELETE", "FROM"): return .change([word(2)])
        case ("INSERT", "INTO"):
            return .fill(word(2), words.indices.filter { ["FROM", "JOIN"].contains(words[$0]) }.map { word($0 + 1) }.reversed())
        default: return .other
        }
    }
}
