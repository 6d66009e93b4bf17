// Concurrent functions, and waiting for other processes.

import Foundation

/// A condition that was not met in time.
package struct WaitedInVain: Error, CustomStringConvertible {
    package let description: String
}

/// Waits for another process, which does not wake this one: repeats the check until it holds.
/// - Parameter seconds: the maximum time.
package func wait(
    _ what: String, atMost seconds: TimeInterval, until holds: () throws -> Bool
) throws {
    let end = Date(timeIntervalSinceNow: seconds)
    while try !holds() {
        guard Date() < end else { throw WaitedInVain(description: "\(what): it did not happen") }
        usleep(20_000)
    }
}

/// Runs a blocking body on a separate thread. The task's values are kept: an expectation in it
/// belongs to the test.
package func onThread<Value: Sendable>(_ body: @Sendable () throws -> Value) async throws -> Value {
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try body() }
}

/// Runs each on a separate thread until all have ended; throws the first error.
package func together(_ bodies: [@Sendable () throws -> Void]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for body in bodies { group.addTask { try await onThread(body) } }
        try await group.waitForAll()
    }
}
