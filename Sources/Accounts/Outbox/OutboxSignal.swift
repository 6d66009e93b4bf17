// Wakes whoever delivers events as soon as one is committed.

import Synchronization

/// Raised after the commit of a transaction that wrote events. Other processes' events are found by looking.
package final class OutboxSignal: Sendable {
    private let handlers = Mutex<[@Sendable () -> Void]>([])

    package init() {}

    /// Calls the handler at every raise from now on, on the thread of whoever changed something: it must return at once.
    package func onRaise(_ handler: @escaping @Sendable () -> Void) { handlers.withLock { $0.append(handler) } }

    package func raise() {
        for handler in handlers.withLock({ $0 }) { handler() }
    }
}
