// Memory of a fixed size for the loops over every octet of a message: no growth, and no check of
// uniqueness for each octet.

/// Octets up to a capacity. Not thread-safe.
package final class OctetBuffer {
    package private(set) var base: UnsafeMutablePointer<UInt8>
    package private(set) var capacity: Int
    /// Octets in use, at most `capacity`.
    package var count = 0

    package init(capacity: Int) {
        self.capacity = max(1, capacity)
        base = .allocate(capacity: self.capacity)
    }

    deinit { base.deallocate() }

    /// Makes room for this many octets. The content is lost if the buffer must grow.
    package func reserve(_ wanted: Int) {
        guard wanted > capacity else { return }
        base.deallocate()
        capacity = wanted
        base = .allocate(capacity: wanted)
        count = 0
    }

    /// Makes room for this many octets and keeps the content.
    package func grow(to wanted: Int) {
        guard wanted > capacity else { return }
        let (old, size) = (base, max(wanted, 2 * capacity))
        base = .allocate(capacity: size)
        base.update(from: old, count: count)
        old.deallocate()
        capacity = size
    }

    package var contents: UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base, count: count)
    }
}
