// The schema of this program, from the text files of `Schema`. Every database stores the checksums
// of the migrations that were applied to it.

import Database

extension Migrator {
    /// With every migration of this program.
    package init() { self.init(migrations: Migration.all) }
}

extension Migration {
    /// Every migration of this program in order. Each entry of `Schema` is a migration: a file
    /// `0002-name.sql`, or a folder whose files are joined in the order of their names.
    package static let all = Embedded.files.reduce(into: [Migration]()) { all, file in
        guard let part = Migration(file.path, file.text) else { return }
        guard let first = all.last, first.version == part.version else { return all.append(part) }
        all[all.count - 1] = Migration(
            version: first.version, name: first.name, sql: first.sql + "\n" + part.sql)
    }

    /// One file. Comment lines are left out, so that an edited comment does not change the
    /// checksum.
    private init?(_ path: String, _ text: String) {
        let parts = path.split(separator: "/")
        guard parts.count > 1, let end = parts[1].firstIndex(of: "-"),
            let version = Int64(parts[1][..<end])
        else { return nil }
        let name = parts[1][end...].dropFirst()
        self.init(
            version: version,
            name: String(name.hasSuffix(".sql") ? name.dropLast(".sql".count) : name),
            sql: text.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n"))
    }
}
