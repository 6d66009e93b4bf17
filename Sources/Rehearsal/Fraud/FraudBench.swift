// How well a policy separates people from attackers: thirty days of a simulated population, sent to the HTTP API as by an app's
// backend. A model, not a measurement: it compares one policy with another.

import AsyncHTTPClient
import Decisions
import NIOPosix

package enum FraudBench {
    /// The first of the thirty days, in seconds since 1970.
    private static let start: Int64 = 1_790_000_000
    /// How long before that day the first accounts were created, in seconds.
    private static let history: Int64 = 500 * 86_400

    /// What the name of its temporary folder begins with; the number of the process follows.
    package static let folderStem = "postern-fraud-"

    /// Runs the thirty days in a separate store, in a temporary folder that is deleted afterwards.
    /// - Parameters:
    ///   - policy: decides for the app.
    ///   - status: decides how likely users are to be real; nil: the built-in one.
    /// - Returns: the counts, and the number of questions.
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
