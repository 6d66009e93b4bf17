// One step of the schema, forward only, and the list of all steps.

import MailCrypto
import Support

/// A numbered change of the schema. A released one never changes: its checksum is
/// recorded in every database.
package struct Migration: Sendable {
    /// From 1, increasing.
    package let version: Int64
    package let name: String
    /// Statements with `{…}` for the parts in which engines differ (`Dialect`).
    package let sql: String

    package init(version: Int64, name: String, sql: String) {
        self.version = version
        self.name = name
        self.sql = sql
    }

    /// Number and name, for example `0001-schema`.
    package var title: String {
        let digits = String(version)
        return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits + "-" + name
    }

    /// SHA-256 of the text before translation, in lower-case hexadecimal: the same on every engine.
    package var checksum: String { Hex.encode(SHA256.hash(Array(sql.utf8))) }
}
