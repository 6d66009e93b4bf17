// A key file that was changed while the service runs: read again, and compared with what the database was sealed with.

import Accounts
import Database
import PosternConfiguration

extension Installation {
    /// What a key file holds that is not in force.
    package enum ChangedKeys: Sendable {
        /// Keys that may be put in force.
        case usable(KeyRing)
        /// Keys that the database is not sealed with, and why.
        case refused(KeyRing, reason: StoreFailure)
    }

    /// Reads the key file again; nil where it holds the keys in force, or those that were refused before.
    package func changedKeys(refused: KeyRing?) throws -> ChangedKeys? {
        let ring = try KeyFile.read(path: configuration.keyFilePath)
        guard ring != keys, ring != refused else { return nil }
        do {
            try Store.checkKeys(ring, of: store.database)
            return .usable(ring)
        } catch {
            guard !error.isTemporary else { throw error }
            return .refused(ring, reason: error)
        }
    }
}
