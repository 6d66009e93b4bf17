// A lock that only one of several processes on one machine can have.

import Database
import Glibc
import Synchronization

/// An open file with a lock of flock(2). The file is never deleted: otherwise two processes could
/// have the lock, each on another file of that name.
final class SQLiteLock: DatabaseLock {
    /// -1 after it is released.
    private let file: Mutex<Int32>

    /// Nil if another process, or another part of this one, has the lock.
    /// - Parameter isShared: whether several may have it together; then none can have it
    ///   exclusively.
    init?(path: String, isShared: Bool = false) throws(StoreFailure) {
        let file: Int32
        do { file = try OwnedFile.open(path, O_CREAT | O_RDWR) } catch {
            throw .temporary(.inputOutput, "a lock cannot be created: \(error)")
        }
        guard flock(file, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 else {
            close(file)
            return nil
        }
        self.file = Mutex(file)
    }

    var isHeld: Bool { file.withLock { $0 >= 0 } }

    func release() {
        file.withLock { file in
            if file >= 0 { close(file) }
            file = -1
        }
    }

    deinit { release() }
}
