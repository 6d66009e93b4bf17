// The memory of this process: nonces and first statuses, so that no one can try again while the
// store is unavailable.

import Synchronization

/// Limited: beyond the capacity the oldest entry is dropped.
struct BoundedMemory<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    /// Each value with its position in the order.
    private var values: [Key: (value: Value, number: Int)] = [:]
    /// Oldest first. A key that was removed, or removed and set again, leaves an empty entry.
    private var order: [(key: Key, number: Int)] = []
    private var first = 0
    private var lastNumber = 0
    private let capacity: Int

    init(capacity: Int) { self.capacity = max(1, capacity) }

    var count: Int { values.count }
    /// Entries of the list, empty ones included: at most three times the capacity.
    var listed: Int { order.count }
    subscript(key: Key) -> Value? { values[key]?.value }

    mutating func set(_ key: Key, _ value: Value) {
        if let number = values[key]?.number {
            values[key] = (value, number)
            return
        }
        lastNumber += 1
        values[key] = (value, lastNumber)
        order.append((key, lastNumber))
        while values.count > capacity, first < order.count {
            let oldest = order[first]
            if values[oldest.key]?.number == oldest.number { values[oldest.key] = nil }
            first += 1
        }
        // The list is rebuilt only sometimes, not at every step.
        if order.count >= 3 * capacity {
            order = order[first...].filter { values[$0.key]?.number == $0.number }
            first = 0
        }
    }

    mutating func remove(_ key: Key) { values[key] = nil }
}

/// The memory of one process.
package final class DecisionMemory: Sendable {
    private struct State {
        var nonces: BoundedMemory<[UInt8], ConsumedNonce>
        var statuses: BoundedMemory<[UInt8], Int>
    }

    /// Maximum number of nonces and of first statuses: some 200 octets each.
    package static let standardCapacity = 100_000

    private let state: Mutex<State>

    package init(capacity: Int = standardCapacity) {
        state = Mutex(
            State(
                nonces: BoundedMemory(capacity: capacity),
                statuses: BoundedMemory(capacity: capacity)))
    }

    /// The earlier use of a nonce in this process.
    package func nonce(_ mark: [UInt8]) -> ConsumedNonce? { state.withLock { $0.nonces[mark] } }

    /// Consumes a nonce; returns its earlier use, nil if it is new.
    package func consume(_ nonce: ConsumedNonce) -> ConsumedNonce? {
        state.withLock { state in
            if let before = state.nonces[nonce.mark] { return before }
            state.nonces.set(nonce.mark, nonce)
            return nil
        }
    }

    /// Records a nonce that the store has consumed.
    package func remember(_ nonce: ConsumedNonce) {
        state.withLock { $0.nonces.set(nonce.mark, nonce) }
    }

    /// The first status that a subject's tokens gave while the store was unavailable; if there is
    /// none, `given` becomes the first.
    package func firstStatus(_ subject: [UInt8], given: Int?) -> Int? {
        state.withLock { state in
            if let known = state.statuses[subject] { return known }
            if let given { state.statuses.set(subject, given) }
            return given
        }
    }
}
