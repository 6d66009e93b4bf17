// Where an octet is next in a buffer: by the C library, which looks at many at once.

import Glibc

extension UnsafeBufferPointer<UInt8> {
    /// The index of the next such octet from `start` on; nil where there is none.
    @inlinable
    package func firstIndex(of octet: UInt8, from start: Int) -> Int? {
        guard let base = baseAddress, start < count, let found = memchr(base + start, Int32(octet), count - start) else {
            return nil
        }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }
}
