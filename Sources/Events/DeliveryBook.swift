// Records results of attempts: those that end while one transaction is written go together into the next one.

/// Each attempt waits until its result is written; so the disk, not the endpoints, sets the rate of transactions.
actor DeliveryBook {
    /// Attempts in one transaction.
    private static let batch = 256

    private struct Entry {
        let result: DeliveryResult
        let lease: Lease
        let written: CheckedContinuation<Bool, any Error>
    }

    private let write: @Sendable ([DeliveryResult], Lease) async throws -> Bool
    private var waiting: [Entry] = []
    private var isWriting = false

    /// - Parameter write: one transaction; returns false if another process has the lease.
    init(write: @escaping @Sendable ([DeliveryResult], Lease) async throws -> Bool) { self.write = write }

    /// Returns when the result is written; false if it is not, because another process has the lease.
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
