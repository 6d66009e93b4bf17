// SQLite's result codes as the store's two kinds of trouble.

import GRDB
import PosternStore

/// Runs `body` with GRDB's errors turned into `TemporaryStoreError` and `PermanentStoreError`; others pass.
func storeErrors<T>(_ body: () throws -> T) throws -> T {
    do {
        return try body()
    } catch let error as DatabaseError {
        throw storeError(error)
    }
}

/// SQLite's message names tables and columns, never values; statement and arguments are left out.
func storeError(_ error: DatabaseError) -> any Error {
    let message = error.message ?? "SQLite result \(error.extendedResultCode.rawValue)"
    return switch error.resultCode {
    case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL: TemporaryStoreError(.busy, message)
    case .SQLITE_IOERR: TemporaryStoreError(.inputOutput, message)
    case .SQLITE_FULL: TemporaryStoreError(.diskFull, message)
    case .SQLITE_CANTOPEN: TemporaryStoreError(.unreachable, message)
    case .SQLITE_NOMEM, .SQLITE_INTERRUPT, .SQLITE_ABORT, .SQLITE_NOLFS: TemporaryStoreError(.resources, message)
    case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: PermanentStoreError(.corrupted, message)
    case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH: PermanentStoreError(.readOnly, message)
    case .SQLITE_CONSTRAINT: PermanentStoreError(.constraint, message)
    default: PermanentStoreError(.statement, message)
    }
}
