// Writes down how attempts ended: what ends while one transaction is written goes into the next one, together.

/// Each attempt waits until it is written; the disk sets the pace of transactions, and not the endpoints.
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

    /// - Parameter write: one transaction; false where the lease is another's.
    init(write: @escaping @Sendable ([DeliveryResult], Lease) async throws -> Bool) { self.write = write }

    /// Returns when it is written; false where it is not, as the lease is another's.
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
            // Of one lease, in the order in which they ended.
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
