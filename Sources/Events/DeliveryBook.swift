// Records results of attempts. Results that arrive while one transaction is written are written
// together in the next one.

/// Each attempt waits until its result is written. So the disk sets the rate of transactions, and
/// not the endpoints.
actor DeliveryBook {
    /// Maximum number of attempts in one transaction.
    private static let batch = 256

    private struct Entry {
        let result: DeliveryResult
        let lease: Lease
        let written: CheckedContinuation<Bool, any Error>
    }

    private let write: @Sendable ([DeliveryResult], Lease) async throws -> Bool
    private var waiting: [Entry] = []
    private var isWriting = false

    /// - Parameter write: runs one transaction; returns false if another process has the lease.
    init(write: @escaping @Sendable ([DeliveryResult], Lease) async throws -> Bool) {
        self.write = write
    }

    /// Returns true when the result is written, and false if another process has the lease.
    func note(_ result: DeliveryResult, under lease: Lease) async throws -> Bool {
        try await withCheckedThrowingContinuation { written in
            waiting.append(Entry(result: result, lease: lease, written: written))
            guard !isWriting else { return }
            isWriting = true
            Task { await self.work() }
        }
    }

    private func work() async {
        while let lease = waiting.first?.lease {
            // Results under one lease, in the order in which they ended.
            let entries = Array(waiting.prefix(Self.batch).prefix { $0.lease == lease })
            waiting.removeFirst(entries.count)
            do {
                let isWritten = try await write(entries.map(\.result), lease)
                for entry in entries { entry.written.resume(returning: isWritten) }
            } catch {
                for entry in entries { entry.written.resume(throwing: error) }
            }
        }
        isWriting = false
    }
}
