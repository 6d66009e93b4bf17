// SQLite's result codes as temporary and permanent failures of the store.

import CSQLite
import Database

/// The store's failure for a result code, primary or extended.
/// - Parameter message: SQLite's message, which names tables and columns, never values.
func storeFailure(_ status: Int32, _ message: String) -> StoreFailure {
    switch status & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .temporary(.busy, message)
    // SQLITE_IOERR_SHMSIZE: no space for the file -shm, which readers need too.
    case SQLITE_IOERR where status >> 8 == 19: .temporary(.diskFull, message)
    case SQLITE_IOERR: .temporary(.inputOutput, message)
    case SQLITE_FULL: .temporary(.diskFull, message)
    case SQLITE_CANTOPEN: .temporary(.unreachable, message)
    case SQLITE_NOMEM, SQLITE_INTERRUPT, SQLITE_ABORT, SQLITE_NOLFS: .temporary(.resources, message)
    case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_FORMAT: .permanent(.corrupted, message)
    case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .permanent(.readOnly, message)
    case SQLITE_CONSTRAINT: .permanent(.constraint, message)
    default: .permanent(.statement, message)
    }
}
