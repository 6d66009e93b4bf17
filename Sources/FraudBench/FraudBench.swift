// How well a policy tells people and attackers apart: thirty days of a made-up population, put to the HTTP API as an app's
// backend does. A model, not a measurement: it compares one policy with another.

import AsyncHTTPClient
import Decisions
import NIOPosix

package enum FraudBench {
    /// The first of the thirty days, in seconds since 1970.
    private static let start: Int64 = 1_790_000_000
    /// How long before them the first accounts were made, in seconds.
    private static let history: Int64 = 500 * 86_400

    /// Lives the thirty days in a store of its own, in a temporary folder that is deleted afterwards.
    /// - Parameters:
    ///   - policy: decides for the app.
    ///   - status: decides how likely users are to be real; nil: the one in the program.
    /// - Returns: the counts, and how many questions there were.
    package static func run(
        _ policy: LoadedPolicy, status: StoredPolicy? = nil, _ parameters: PopulationParameters
    ) async throws -> (report: FraudReport, questions: Int) {
        let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        do {
            let world = try await World(policy, status: status, client, start: start - history)
            defer { world.end() }
            let result = try await Lives.run(world, Population(parameters), start: start)
            try await client.shutdown().get()
            return result
        } catch {
            try? await client.shutdown().get()
            throw error
        }
    }
}
