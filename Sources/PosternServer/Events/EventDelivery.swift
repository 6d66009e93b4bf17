// Delivers what the outbox holds: in order per account, at least once, on a stated schedule.

import Identity
import InternetMessage
import Logging
import MailAuth
import MailCrypto
import NIOPosix
import PosternMetrics
import PosternStore
import Synchronization

/// Delivers events. Clock, randomness, DNS and the way to endpoints are handed in.
package final class EventDelivery: Sendable {
    /// Accounts of one endpoint whose events are under way at one time, while it works; a failing one is probed with one.
    package static let concurrency = 8
    /// Endpoints delivered to at one time; further ones wait for one to be done.
    private static let maximumEndpoints = 64

    private let outbox: OutboxRepository
    private let signer: IdentitySigner
    private let issuer: String
    private let poster: any EventPosting
    private let resolver: any DNSResolver
    private let threads: NIOThreadPool
    private let now: @Sendable () -> Int64
    private let random: @Sendable () -> Double
    private let logger: Logger
    /// Endpoints somebody delivers to just now.
    private let busy = Mutex<Set<Int64>>([])
    private let metrics: ServiceMetrics?
    private let turn: JobTurn

    /// - Parameters:
    ///   - issuer: our own `iss`.
    ///   - resolver: may block; it is asked on `threads`.
    ///   - threads: for everything that blocks.
    ///   - now: seconds since 1970.
    ///   - random: 0 ..< 1, for jitter.
    package init(
        outbox: OutboxRepository, signer: IdentitySigner, issuer: String, poster: any EventPosting, resolver: any DNSResolver,
        threads: NIOThreadPool, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) }, metrics: ServiceMetrics? = nil, logger: Logger
    ) {
        self.outbox = outbox
        turn = JobTurn { try outbox.deliveryLock() }
        self.signer = signer
        self.issuer = issuer
        self.poster = poster
        self.resolver = resolver
        self.threads = threads
        self.now = now
        self.random = random
        self.metrics = metrics
        self.logger = logger
    }

    /// Delivers everything that is due, and returns when nothing is any more or all that is left has failed.
    package func deliverDue() async {
        await withDiscardingTaskGroup { group in
            for endpoint in await waiting() { group.addTask { await self.drain(endpoint) } }
        }
    }

    /// Endpoints that something waits for and nobody delivers to; whoever gets one has to `drain` it.
    package func waiting() async -> [EventEndpoint] {
        do {
            return try await blocking { try $0.outbox.waitingEndpoints() }.filter { endpoint in
                endpoint.failures == 0 || endpoint.retryAt <= now()
            }.filter { endpoint in
                busy.withLock { $0.count < Self.maximumEndpoints && $0.insert(endpoint.number).inserted }
            }
        } catch {
            logger.warning("events cannot be read yet", metadata: ["detail": "\(error)"])
            return []
        }
    }

    /// Delivers to one endpoint until nothing is due, or it fails.
    package func drain(_ endpoint: EventEndpoint) async {
        defer { busy.withLock { _ = $0.remove(endpoint.number) } }
        var isProbe = endpoint.failures > 0
        var failures = endpoint.failures
        while !Task.isCancelled {
            do {
                let limit = isProbe ? 1 : Self.concurrency
                let probe = isProbe
                let events = try await blocking {
                    try $0.outbox.due(endpoint: endpoint.number, now: $0.now(), isProbe: probe, limit: limit)
                }
                guard !events.isEmpty else { return }
                let addresses: EndpointAddresses
                do {
                    addresses = try await blocking {
                        try EndpointAddresses(of: endpoint.url, allowsPrivate: endpoint.allowsPrivate, resolver: $0.resolver)
                    }
                } catch let refusal as EndpointAddresses.Refusal {
                    let outcome = PostOutcome.failed(reason: refusal.reason, isEndpoints: true, retryAfter: nil)
                    return try await settle(events[0], endpoint, outcome, failures: failures + 1)
                }
                let worked = try await attempt(events, endpoint, addresses, failures: failures)
                guard worked else { return }
                isProbe = false
                failures = 0
            } catch is CancellationError {
                return
            } catch {
                // Whatever was delivered and not written down is delivered again: at least once.
                logger.warning("events cannot be delivered yet", metadata: ["detail": "\(error)"])
                return
            }
        }
    }

    /// Tries the events side by side; whether the endpoint works.
    private func attempt(
        _ events: [OutboxEvent], _ endpoint: EventEndpoint, _ addresses: EndpointAddresses, failures: Int
    ) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for event in events {
                group.addTask {
                    let outcome = await self.poster.post(try await self.body(event), to: endpoint.url, at: addresses)
                    if outcome == .delivered {
                        try await self.settle(event, endpoint, outcome, failures: 0)
                        return true
                    }
                    // Cut off by the end of the service: that says nothing of the endpoint.
                    try Task.checkCancellation()
                    try await self.settle(event, endpoint, outcome, failures: failures + 1)
                    if case .failed(_, isEndpoints: true, _) = outcome { return false }
                    return true
                }
            }
            var works = true
            for try await result in group { works = works && result }
            return works
        }
    }

    /// Writes down how it went.
    private func settle(_ event: OutboxEvent, _ endpoint: EventEndpoint, _ outcome: PostOutcome, failures: Int) async throws {
        let time = now()
        switch outcome {
        case .delivered:
            metrics?.events("delivered").add()
            try await blocking { try $0.outbox.delivered(event, now: time) }
            logger.info("event delivered", metadata: Self.metadata(event))
        case .failed(let reason, let isEndpoints, let retryAfter):
            metrics?.events("retried").add()
            let endpointDelay = max(RetrySchedule.delay(failures: failures, random: random()), retryAfter ?? 0)
            let failure = DeliveryFailure(
                reason: reason, isEndpoints: isEndpoints, endpointFailures: failures,
                retryEventAt: time + RetrySchedule.delay(failures: event.attempts + 1, random: random()),
                retryEndpointAt: time + endpointDelay)
            try await blocking { try $0.outbox.failed(event, failure, now: time) }
            var metadata = Self.metadata(event)
            metadata["reason"] = "\(reason)"
            logger.warning("event not delivered yet", metadata: metadata)
        }
    }

    private static func metadata(_ event: OutboxEvent) -> Logger.Metadata {
        ["event": "\(event.jti)", "type": "\(event.type.rawValue)", "aud": "\(event.audience)", "attempt": "\(event.attempts + 1)"]
    }

    /// The body to send, signed now.
    package func body(_ event: OutboxEvent) async throws -> [UInt8] {
        let address = event.email.flatMap { AddrSpec(envelope: $0) }
        if let kind = AccountEventKind(type: event.type.rawValue) {
            return try await signer.body(
                of: OutgoingEvent(
                    issuer: issuer, audience: event.audience, id: event.jti, issuedAt: now(), kind: kind, subject: event.sub,
                    relayAddress: address, happenedAt: event.eventTime))
        }
        // A test has the form of an event and a type that means nothing.
        let test: JSONObject = [
            "type": .string(event.type.rawValue), "sub": .string(event.sub), "event_time": .integer(event.eventTime),
        ]
        let claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(event.audience), "iat": .integer(now()), "jti": .string(event.jti),
            "events": .string(JSONValue.object(test).text),
        ]
        return JSONValue.object(["payload": .string(try await signer.key().sign(claims))]).octets
    }

    /// Sends an event that means nothing, now and once; nothing is written down.
    package func test(_ endpoint: EventEndpoint) async throws -> PostOutcome {
        let event = OutboxEvent(test: endpoint, jti: Base32.characters(fromRandom: try SecureRandom.bytes(count: 32)), now: now())
        let addresses: EndpointAddresses
        do {
            addresses = try await blocking {
                try EndpointAddresses(of: endpoint.url, allowsPrivate: endpoint.allowsPrivate, resolver: $0.resolver)
            }
        } catch let refusal as EndpointAddresses.Refusal {
            return .failed(reason: refusal.reason, isEndpoints: true, retryAfter: nil)
        }
        return await poster.post(try await body(event), to: endpoint.url, at: addresses)
    }

    /// Runs what blocks on a thread for it.
    private func blocking<T: Sendable>(_ body: @escaping @Sendable (EventDelivery) throws -> T) async throws -> T {
        do {
            return try await threads.runIfActive { try body(self) }
        } catch is NIOThreadPoolError.ThreadPoolInactive {
            throw CancellationError()
        }
    }

    /// Parks what waited for three days and deletes what ended long ago.
    package func tidy() async {
        do {
            let parked = try await blocking { try $0.outbox.parkExpired(now: $0.now()) }
            if parked > 0 {
                metrics?.events("parked").add(parked)
                logger.error("events were parked after three days: see postern event list", metadata: ["events": "\(parked)"])
            }
            while try await blocking({ try $0.outbox.deleteEnded(now: $0.now()) }) == 1000 {}
        } catch {
            logger.warning("old events cannot be tidied yet", metadata: ["detail": "\(error)"])
        }
    }

    /// Notes how many events wait, and since when.
    func measure() async {
        guard let metrics, let backlog = try? await blocking({ try $0.outbox.backlog() }) else { return }
        metrics.outboxSize.set(Double(backlog.events))
        metrics.outboxAge.set(Double(backlog.oldest.map { max(0, now() - $0) } ?? 0))
    }

    /// Takes or keeps the turn to deliver, which one of all processes has; false where another one does, or the store is away.
    func takeTurn() async -> Bool { (try? await threads.runIfActive { [turn] in turn.take() }) ?? false }

    func endTurn() async { try? await threads.runIfActive { [turn] in turn.end() } }

    /// Calls the handler whenever a change of this process put an event into the outbox.
    func onChange(_ handler: @escaping @Sendable () -> Void) { outbox.signal.onRaise(handler) }
}
