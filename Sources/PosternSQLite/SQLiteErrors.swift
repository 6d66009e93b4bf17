// SQLite's result codes as the store's two kinds of trouble.

import Database
import CSQLite

/// What the store says of a result code, primary or extended.
/// - Parameter message: SQLite's, which names tables and columns, never values.
func storeError(_ status: Int32, _ message: String) -> any Error {
    switch status & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: TemporaryStoreError(.busy, message)
    case SQLITE_IOERR: TemporaryStoreError(.inputOutput, message)
    case SQLITE_FULL: TemporaryStoreError(.diskFull, message)
    case SQLITE_CANTOPEN: TemporaryStoreError(.unreachable, message)
    case SQLITE_NOMEM, SQLITE_INTERRUPT, SQLITE_ABORT, SQLITE_NOLFS: TemporaryStoreError(.resources, message)
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT: PermanentStoreError(.corrupted, message)
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: PermanentStoreError(.readOnly, message)
    case SQLITE_CONSTRAINT: PermanentStoreError(.constraint, message)
    default: PermanentStoreError(.statement, message)
    }
}
