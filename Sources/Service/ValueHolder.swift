// A value that services share and exchange.

import Synchronization

/// Whoever asks gets the value of that moment.
final class ValueHolder<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    var current: Value { value.withLock { $0 } }

    func exchange(_ other: Value) { value.withLock { $0 = other } }
}
