// Reads deflate (RFC 1951) with zlib. The output is passed on in pieces, and every step is charged.

import CZlib

/// Unpacks one stream after another with the same memory. Not thread-safe.
package final class Inflater {
    /// Octets that are passed on at a time.
    private static let chunk = 65_536
    /// Maximum octets of input for one call of zlib, as its counters have 32 bits.
    private static let most = 1 << 30

    // Units of work: for the start of a stream, for each block with its codes, and for each octet
    // read and written.
    private static let beginning = 1_500
    private static let block = 3_600
    private static let input = 2
    private static let output = 2

    private let work: WorkBudget
    private let buffer = OctetBuffer(capacity: chunk)
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private let isReady: Bool

    package init(work: WorkBudget) {
        self.work = work
        stream.initialize(to: z_stream())
        isReady = inflateInitRaw(stream) == Z_OK
    }

    deinit {
        if isReady { inflateEnd(stream) }
        stream.deallocate()
    }

    /// Unpacks a stream. For damaged or truncated data, passes on the octets before the damage.
    /// - Parameter sink: receives the next octets; returns whether to continue.
    /// - Returns: the number of octets of the stream; nil if it was not read to its end.
    package func inflate(
        _ input: UnsafeBufferPointer<UInt8>, to sink: (UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Int? {
        work.charge(Self.beginning)
        guard isReady, inflateReset(stream) == Z_OK else { return nil }
        buffer.count = 0
        var taken = 0
        var status = Z_OK
        var goesOn = true
        while status == Z_OK, goesOn, !work.isSpent {
            let rest = UnsafeBufferPointer(rebasing: input[taken...].prefix(Self.most))
            // zlib does not write to its input, although its type says so. It refuses a null
            // address.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: rest.baseAddress)
            stream.pointee.avail_in = UInt32(rest.count)
            stream.pointee.next_out = buffer.base + buffer.count
            stream.pointee.avail_out = UInt32(Self.chunk - buffer.count)
            // Returns after each block, so that blocks without content are also charged.
            status = CZlib.inflate(stream, Z_BLOCK)
            let read = rest.count - Int(stream.pointee.avail_in)
            let written = Self.chunk - buffer.count - Int(stream.pointee.avail_out)
            work.charge(Self.block + read * Self.input + written * Self.output)
            taken += read
            buffer.count += written
            if buffer.count == Self.chunk { goesOn = passOn(sink) }
        }
        if goesOn { goesOn = passOn(sink) }
        return status == Z_STREAM_END && goesOn && !work.isSpent ? taken : nil
    }

    /// Passes the new octets on; returns whether to continue.
    private func passOn(_ sink: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        guard buffer.count > 0 else { return true }
        defer { buffer.count = 0 }
        return sink(UnsafeBufferPointer(start: buffer.base, count: buffer.count))
    }
}
