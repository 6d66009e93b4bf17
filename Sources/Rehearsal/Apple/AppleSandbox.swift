// A double of Sign in with Apple on loopback, for the tests of an app's backend.

import Foundation
import HTTP
import Logging
import MailCrypto
import ServiceLifecycle

/// All data is in memory, and lost at the end. The keys are made at each start and
/// are valid nowhere else.
package enum AppleSandbox {
    /// The sandbox's settings.
    package struct Settings: Sendable {
        /// 0: any free port.
        package let port: Int
        package let seed: AppleSeed
        /// Whether the first user signs in without the page.
        package let auto: Bool

        package init(port: Int, seed: AppleSeed, auto: Bool) {
            self.port = port
            self.seed = seed
            self.auto = auto
        }
    }

    /// The most requests per second; a test suite makes fewer.
    private static let requestsPerSecond = 10_000

    /// Serves until SIGTERM, SIGINT or the end of the task.
    /// - Parameters:
    ///   - now: seconds since 1970; `/sandbox/clock` adds to it.
    ///   - logger: gets a line for each refusal.
    ///   - announce: called with `http://127.0.0.1:PORT` once it listens.
    package static func run(
        _ settings: Settings, now: @escaping @Sendable () -> Int64, logger: Logger,
        announce: @escaping @Sendable (String) -> Void
    ) async throws {
        let keys = try (0...AppleState.publishedKeys).map { _ in try AppleSigningKey.generate() }
        let state = AppleState(
            seed: settings.seed, secret: try SecureRandom.bytes(count: 32),
            keys: Array(keys.dropLast()),
            strayKey: keys[AppleState.publishedKeys], auto: settings.auto)
        let place = AppleStatePlace(state, auto: settings.auto, now: now, logger: logger)
        let sender = AppleEventSender()
        var listener = APISettings(
            host: "127.0.0.1", port: settings.port, requestsPerSecond: requestsPerSecond)
        listener.listenSetting = "--port"
        let views = try AppleViews()
        let api = APIService(
            settings: listener,
            modules: [
                AppleRoutes(place: place, views: views), AppleControlRoutes(place: place),
                AppleActingRoutes(place: place, sender: sender),
                ApplePageRoutes(place: place, views: views),
            ], keys: KeyCache(), clock: APIClock(now: { place.now }), logger: logger
        ) { address in
            place.change { state, _ in state.address = "http://\(address)" }
            announce("http://\(address)")
        }
        var group = ServiceGroupConfiguration(
            services: [.init(service: api)], gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        group.maximumGracefulShutdownDuration = .seconds(10)
        do {
            try await ServiceGroup(configuration: group).run()
        } catch {
            await sender.stop()
            throw error
        }
        await sender.stop()
    }
}
