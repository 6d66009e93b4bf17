// How well a policy separates people from attackers, in thirty days of a simulated population that
// uses the HTTP API like an app's backend. A model, not a measurement: it compares one policy with
// another.

import AsyncHTTPClient
import Decisions
import NIOPosix

package enum FraudBench {
    /// The first of the thirty days, in seconds since 1970.
    private static let start: Int64 = 1_790_000_000
    /// Seconds before that day at which the first accounts were created.
    private static let history: Int64 = 500 * 86_400

    /// The beginning of the name of its temporary folder; the number of the process follows.
    package static let folderStem = "postern-fraud-"

    /// Runs the thirty days in a separate store, in a temporary folder that is deleted afterwards.
    /// - Parameters:
    ///   - policy: the policy that decides for the app.
    ///   - status: the policy that decides how likely users are to be real; nil: the built-in one.
    /// - Returns: the counts, and the number of requests.
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
