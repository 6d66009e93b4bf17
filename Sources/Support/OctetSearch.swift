// The next position of an octet in a buffer, found by the C library, which
// compares many octets at once.

import Glibc

extension UnsafeBufferPointer<UInt8> {
    /// The index of the next such octet at or after `start`; nil if there is none.
    @inlinable
    package func firstIndex(of octet: UInt8, from start: Int) -> Int? {
        guard let base = baseAddress, start < count,
            let found = memchr(base + start, Int32(octet), count - start)
        else {
            return nil
        }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }
}
