// Limits the number of requests that use the store at a time. Further ones are refused at once
// instead of waiting.

import Synchronization

/// Admits requests.
final class Admission: Sendable {
    /// The number that the store answers in some 25 ms, at ten thousand a second. They share reads
    /// and writes.
    static let standardLimit = 256

    private let limit: Int
    private let underWay = Atomic(0)

    init(limit: Int = standardLimit) { self.limit = limit }

    /// Runs `body`, or throws `DecisionError.busy` where the limit is reached.
    func run<Value>(_ body: () async throws -> Value) async throws -> Value {
        defer { underWay.subtract(1, ordering: .relaxed) }
        guard underWay.add(1, ordering: .relaxed).newValue <= limit else {
            throw DecisionError.busy
        }
        return try await body()
    }
}
