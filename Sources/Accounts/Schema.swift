// The schema of this program: the files of `Schema` in order. A released file never changes: every database has its checksum.

import Database

extension Migrator {
    /// With every migration of this program.
    package init() { self.init(migrations: Migration.all) }
}

extension Migration {
    /// `Schema/0001-first.sql`: number and name. Its first paragraph describes the migration; the rest is its SQL.
    private init?(_ path: String, _ text: String) {
        guard let file = path.split(separator: "/").last, let end = file.firstIndex(of: "-"), let number = Int64(file[..<end]),
            file.hasSuffix(".sql")
        else { return nil }
        let start = text.firstRange(of: "\n\n")?.upperBound ?? text.startIndex
        self.init(
            version: number, name: String(file[file.index(after: end)...].dropLast(".sql".count)),
            sql: String(text[start...].dropLast()))
    }

    /// Every migration of this program in order.
    package static let all = Embedded.files.compactMap { Migration($0.path, $0.text) }
}
