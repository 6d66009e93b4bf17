// The state between requests: one change at a time, each with the time of the sandbox's clock.

import Logging
import Synchronization

/// Contains the state.
final class AppleStatePlace: Sendable {
    private let state: Mutex<AppleState>
    private let base: @Sendable () -> Int64
    private let logger: Logger
    /// The setting at the start, for a reset.
    let auto: Bool

    init(_ state: AppleState, auto: Bool, now: @escaping @Sendable () -> Int64, logger: Logger) {
        self.state = Mutex(state)
        self.auto = auto
        base = now
        self.logger = logger
    }

    /// Seconds since 1970, by the sandbox's clock.
    var now: Int64 { change { _, now in now } }

    /// Reads or changes the state. Even a call that throws may have changed it, because
    /// each request is recorded.
    func change<Value: Sendable>(
        _ body: (inout AppleState, Int64) throws -> Value
    ) rethrows -> Value {
        try state.withLock { state in try body(&state, base() + state.clockOffset) }
    }

    /// Logs a line for the test run's output.
    func say(_ entry: AppleJournal.Entry) {
        guard entry.isRefusal else { return }
        logger.notice(
            "\(entry.method) \(entry.path): \(entry.status.map(String.init) ?? "no answer") \(entry.error ?? ""): \(entry.cause)"
        )
    }
}
