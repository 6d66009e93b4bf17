// Several things at the same time, and waiting for what other processes do.

import Foundation

/// What did not happen in time.
package struct WaitedInVain: Error, CustomStringConvertible {
    package let description: String
}

/// Waits for what another process does, which wakes nobody here: asks again until it holds.
/// - Parameter seconds: the bound, for what never happens.
package func wait(_ what: String, atMost seconds: TimeInterval, until holds: () throws -> Bool) throws {
    let end = Date(timeIntervalSinceNow: seconds)
    while try !holds() {
        guard Date() < end else { throw WaitedInVain(description: "\(what): it did not happen") }
        usleep(20_000)
    }
}

/// Runs what blocks on a thread of its own. The task's values come along: an expectation in it belongs to the test.
package func onThread<Value: Sendable>(_ body: @Sendable () throws -> Value) async throws -> Value {
    try await withTaskExecutorPreference(ThreadExecutor.shared) { try body() }
}

/// Runs each on its own thread until all have ended; throws the first error.
package func together(_ bodies: [@Sendable () throws -> Void]) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for body in bodies { group.addTask { try await onThread(body) } }
        try await group.waitForAll()
    }
}
