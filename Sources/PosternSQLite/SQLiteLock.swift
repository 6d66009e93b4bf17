// A lock that one of several processes on one machine holds.

import Database
import Glibc
import Synchronization

/// An open file with a lock of flock(2). The file stays: without it two could hold the lock, each on its own file.
final class SQLiteLock: DatabaseLock {
    /// -1 once it is released.
    private let file: Mutex<Int32>

    /// Nil if another process, or another part of this one, holds it.
    /// - Parameter isShared: several hold it together, and no one holds it alone meanwhile.
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
