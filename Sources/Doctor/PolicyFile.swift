// Fetches an MTA-STS policy over HTTPS.

import AsyncHTTPClient
import NIOCore
import NIOPosix
import Transport

package enum PolicyFile {
    /// The largest accepted policy, in octets (RFC 8461 section 3.3).
    private static let limit = 65_536

    /// Fetches a policy, without redirects (RFC 8461 section 3.3) and within a few seconds.
    package static func fetch(_ url: String) async -> Result<String, CheckInputError> {
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow, timeout: .init(connect: .seconds(3)))
        configuration.decompression = .disabled
        let client = HTTPClient(
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
        let result: Result<String, CheckInputError>
        do {
            let end = NIODeadline.now() + .seconds(5)
            let response = try await client.execute(HTTPClientRequest(url: url), deadline: end)
            if response.status == .ok {
                result = .success(
                    String(
                        decoding: try await response.octets(limit: limit, until: end), as: UTF8.self
                    ))
            } else {
                result = .failure(
                    CheckInputError("the response has status \(response.status.code)"))
            }
        } catch let error as HTTPClientError {
            result = .failure(CheckInputError(error.shortDescription))
        } catch {
            result = .failure(
                CheckInputError(
                    "\(error)".prefix(200).split(whereSeparator: \.isNewline).joined(separator: " ")
                ))
        }
        try? await client.shutdown()
        return result
    }
}
