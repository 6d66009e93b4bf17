// The keys in force, which may change while the process runs.

import Database
import Synchronization

/// One for a store and everything that uses its keys.
package final class KeyHolder: Sendable {
    private let ring: Mutex<KeyRing>

    package init(_ ring: KeyRing) { self.ring = Mutex(ring) }

    package var current: KeyRing { ring.withLock { $0 } }

    /// Puts other keys in force, with the next value that is made or read.
    package func exchange(_ other: KeyRing) { ring.withLock { $0 = other } }
}

extension DatabaseConnection {
    /// Which key new values are to be made with, once a rotation said so.
    private static func setting(_ purpose: KeyPurpose) -> String { "\(purpose.rawValue)_key" }

    /// Throws `staleKeys` where new values are made with another key than this process would use: it has
    /// an older key file, and what it wrote could not be read once the old key is gone.
    package func require(_ purpose: KeyPurpose, _ id: String) throws(StoreFailure) {
        let wanted: String? = try value("SELECT value FROM settings WHERE name = \(Self.setting(purpose))")
        guard let wanted, wanted != id else { return }
        throw .temporary(
            .staleKeys,
            "new values are made with \(purpose.rawValue) key \(wanted), but this host's key file still names \(id): "
                + "copy the key file from the host where postern key-file rotate ran")
    }

    /// From now on new values are made with this key, or not at all.
    package func demand(_ purpose: KeyPurpose, _ id: String) throws(StoreFailure) {
        try run(
            """
            INSERT INTO settings (name, value) VALUES (\(Self.setting(purpose)), \(id))
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """)
    }
}
