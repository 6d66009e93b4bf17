// What one of all processes and hosts on a store does at a time.

import PosternStore
import Synchronization

/// A turn at a job. It is lost with the process, or with the connection to the database.
package final class JobTurn: Sendable {
    private let lock: @Sendable () throws -> (any DatabaseLock)?
    private let held = Mutex<(any DatabaseLock)?>(nil)

    /// - Parameter lock: takes the lock of the job; nil where somebody has it.
    package init(lock: @escaping @Sendable () throws -> (any DatabaseLock)?) { self.lock = lock }

    /// Takes the turn, or sees whether it is ours still. Blocks. False where somebody else has it, or the database is away.
    package func take() -> Bool {
        held.withLock { held in
            if held?.isHeld == true { return true }
            held = (try? lock()) ?? nil
            return held != nil
        }
    }

    package func end() {
        held.withLock { held in
            held?.release()
            held = nil
        }
    }
}
