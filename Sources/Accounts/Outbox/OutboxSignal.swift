// Wakes the event delivery as soon as an event is committed.

import Synchronization

/// Raised after the commit of a transaction that wrote events. Events of other processes
/// are found by polling.
package final class OutboxSignal: Sendable {
    private let handlers = Mutex<[@Sendable () -> Void]>([])

    package init() {}

    /// Calls the handler at every raise from now on, on the thread that made the change. The
    /// handler must return at once.
    package func onRaise(_ handler: @escaping @Sendable () -> Void) {
        handlers.withLock { $0.append(handler) }
    }

    package func raise() {
        for handler in handlers.withLock({ $0 }) { handler() }
    }
}
