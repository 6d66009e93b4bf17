// The body of a response, limited in time and size.

import AsyncHTTPClient
import NIOCore

extension HTTPClientResponse {
    /// The whole body. The deadline of `HTTPClient.execute` ends with the head of the response.
    /// Without this limit, a server that sends one octet from time to time could keep the client
    /// reading for as long as it wants.
    /// - Throws: `HTTPClientError.deadlineExceeded` at `end`; `NIOTooManyBytesError` for more than
    ///   `limit` octets; the client's error for a connection that ends early.
    package func octets(limit: Int, until end: NIODeadline) async throws -> [UInt8] {
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            group.addTask { Array(try await body.collect(upTo: limit).readableBytesView) }
            group.addTask {
                try await Task.sleep(for: .nanoseconds(max(0, (end - .now()).nanoseconds)))
                throw HTTPClientError.deadlineExceeded
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }
}
