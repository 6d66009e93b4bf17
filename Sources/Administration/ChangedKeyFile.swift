// A key file that changed while the service runs: read again, and compared with the keys of the
// database.

import Accounts
import Database
import PosternConfiguration

extension Installation {
    /// New keys in the key file.
    package enum ChangedKeys: Sendable {
        /// Keys that may be used.
        case usable(KeyRing)
        /// Keys that do not belong to the database, and the reason.
        case refused(KeyRing, reason: StoreFailure)
    }

    /// Reads the key file again. Nil if it contains the keys in use, or those that were refused
    /// before.
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
