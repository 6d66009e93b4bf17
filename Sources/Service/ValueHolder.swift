// A value that services share and replace.

import Synchronization

/// A caller gets the value at the time of the call.
final class ValueHolder<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    var current: Value { value.withLock { $0 } }

    func exchange(_ other: Value) { value.withLock { $0 = other } }
}
