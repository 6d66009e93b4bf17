// The keys in use, which may change while the process runs.

import Database
import Synchronization

/// Shared by a store and everything that uses its keys.
package final class KeyHolder: Sendable {
    private let ring: Mutex<KeyRing>

    package init(_ ring: KeyRing) { self.ring = Mutex(ring) }

    package var current: KeyRing { ring.withLock { $0 } }

    /// Replaces the keys. The next value that is written or read uses the new ones.
    package func exchange(_ other: KeyRing) { ring.withLock { $0 = other } }
}

extension DatabaseConnection {
    /// The setting for the key that new values must be made with; set by a rotation.
    fileprivate static func setting(_ purpose: KeyPurpose) -> String { "\(purpose.rawValue)_key" }

    /// Throws `staleKeys` if new values must use another key than this process has. Then its key
    /// file is older, and its values could not be read after the old key is removed.
    package func require(_ purpose: KeyPurpose, _ id: String) throws(StoreFailure) {
        let wanted: String? = try value(
            "SELECT value FROM settings WHERE name = \(Self.setting(purpose))")
        guard let wanted, wanted != id else { return }
        throw .temporary(
            .staleKeys,
            "new values are made with \(purpose.rawValue) key \(wanted), but this host's key file still names \(id): "
                + "copy the key file from the host where postern keys file rotate ran")
    }

    /// Throws `unsealing` if these keys lack a key that new values must use: the key file is from
    /// before a rotation.
    func requireDemanded(_ keys: KeyRing) throws(StoreFailure) {
        for purpose in KeyPurpose.allCases {
            let wanted: String? = try value(
                "SELECT value FROM settings WHERE name = \(Self.setting(purpose))")
            guard let wanted, keys[purpose]?[wanted] == nil else { continue }
            throw .permanent(
                .unsealing,
                "the key file lacks \(purpose.rawValue) key \(wanted), with which the values of this database are made: it is older than "
                    + "the last postern keys file rotate. Put the present key file in its place")
        }
    }

    /// Makes this key the one that new values must use.
    package func demand(_ purpose: KeyPurpose, _ id: String) throws(StoreFailure) {
        try run(
            """
            INSERT INTO settings (name, value) VALUES (\(Self.setting(purpose)), \(id))
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """)
    }
}
