// Checks that the key file belongs to the database.

import Database
import MailCrypto
import Support

extension Store {
    /// Compares the keys with the mark in the database, and creates that mark if the database has
    /// none yet. Without this check, a wrong key file would show only at the first sealed value,
    /// and new inboxes would not be found by the old index. Throws `unsealing` for another key
    /// file, and for one from before a rotation, which would find no inbox.
    /// - Parameter isInUse: whether the database is in use. A copy may be older than the key file.
    package static func checkKeys(
        _ keys: KeyRing, of database: any Database, isInUse: Bool = true
    ) throws(StoreFailure) {
        let mark = HMACSHA256.authenticationCode(
            for: Array("postern key check 1".utf8), key: keys.marks.active.secret)
        let text = Base32.characters(fromRandom: mark)
        func stored(_ connection: any DatabaseConnection) throws(StoreFailure) -> String? {
            try connection.value("SELECT value FROM settings WHERE name = 'key_check'")
        }
        let known = try database.read { connection throws(StoreFailure) in
            let known = try stored(connection)
            if let known {
                try compare(known, text)
                if isInUse { try connection.requireDemanded(keys) }
            }
            return known
        }
        guard known == nil else { return }
        try database.write(.durable) { connection throws(StoreFailure) in
            try connection.run(
                "INSERT INTO settings (name, value) VALUES ('key_check', \(text)) ON CONFLICT (name) DO NOTHING"
            )
            try compare(try stored(connection) ?? "", text)
        }
    }

    /// Whether a migrated database already belongs to a key file.
    package static func hasKeys(_ database: any Database) throws(StoreFailure) -> Bool {
        try database.row("SELECT value FROM settings WHERE name = 'key_check'") != nil
    }

    private static func compare(_ stored: String, _ computed: String) throws(StoreFailure) {
        guard stored == computed else {
            throw .permanent(
                .unsealing, "the key file does not belong to this database: restore the right one")
        }
    }
}
