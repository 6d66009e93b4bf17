// Polls issuers for their events, every ten seconds.

import Concurrency
import Events
import ServiceLifecycle

struct SignalPollService: Service {
    private static let interval: Duration = .seconds(10)
    let poller: SignalPoller

    func run() async throws {
        await PeriodicTask.untilShutdown(every: Self.interval) { await poller.round() }
        await poller.stop()
    }
}
