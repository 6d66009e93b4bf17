// How many questions are with the store at a time: what comes beyond is refused at once, and does not wait behind all others.

import Synchronization

/// Lets questions in.
final class Admission: Sendable {
    /// As many as the store answers in some 25 ms where it answers ten thousand a second. They share what is read and written.
    static let standardLimit = 256

    private let limit: Int
    private let underWay = Atomic(0)

    init(limit: Int = standardLimit) { self.limit = limit }

    /// Runs `body`, or throws `DecisionError.busy` where the limit is reached.
    func run<Value>(_ body: () async throws -> Value) async throws -> Value {
        defer { underWay.subtract(1, ordering: .relaxed) }
        guard underWay.add(1, ordering: .relaxed).newValue <= limit else { throw DecisionError.busy }
        return try await body()
    }
}
