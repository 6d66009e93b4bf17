// Several things that block, at the same time.

import Foundation

/// Runs each on its own thread, and throws the first error.
func together(_ bodies: [@Sendable () throws -> Void]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for body in bodies {
            group.addTask {
                try await withCheckedThrowingContinuation { continuation in
                    Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
                }
            }
        }
        try await group.waitForAll()
    }
}
