// Delivers the events in the outbox: in order per account, at least once, on a documented schedule.

import Accounts
import Concurrency
import Database
import InternetMessage
import Logging
import MailAuth
import MailCrypto
import PosternMetrics
import SharedSignals
import SignIn
import Support
import Synchronization

/// Delivers events under a lease that only one process has. Clock, randomness, DNS and poster are
/// parameters.
package final class EventDelivery: Sendable {
    /// The accounts of one endpoint whose events are delivered at the same time while the endpoint
    /// works. A failing endpoint gets one event as a probe.
    package static let concurrency = 8
    /// Events in one read. Those that were not tried within `batchTime` are read again, because the
    /// lease may have changed by then.
    private static let batch = 256
    private static let batchTime: Duration = .seconds(1)
    /// Endpoints with deliveries at the same time; further ones wait.
    private static let maximumEndpoints = 64
    /// Every step has a shorter limit (10 s for an attempt, 15 s for the store). A step that takes
    /// longer is stuck: then the lease is not renewed.
    private static let longestStep: Duration = .seconds(30)

    /// Another process has the lease, or it was not renewed in time: work in progress does not
    /// count.
    private struct LeaseLost: Error {}

    private let isTidying = Atomic(false)
    private let outbox: OutboxRepository
    private let signer: IdentitySigner
    private let issuer: String
    private let poster: any EventPosting
    private let resolver: any DNSResolver
    private let threads: DeliveryThreads
    /// Whether receivers of streams may be at addresses that are not globally
    /// reachable, and use http.
    private let allowsPrivateStreams: Bool
    private let now: @Sendable () -> Int64
    private let random: @Sendable () -> Double
    private let logger: Logger
    /// Endpoints with a delivery in progress, and the start of its last step. Nil during a DNS
    /// lookup, which may have to wait, and ends by itself.
    private let busy = Mutex<[Int64: ContinuousClock.Instant?]>([:])
    /// The time of the last count of all waiting events, if they are many.
    private let wholeCount = Mutex<ContinuousClock.Instant?>(nil)
    private static let wholeCountInterval: Duration = .seconds(30)
    private let metrics: ServiceMetrics?
    private let leader: LeaderLease
    private let book: DeliveryBook

    /// - Parameters:
    ///   - issuer: our own `iss`.
    ///   - resolver: may block.
    ///   - threads: for all blocking calls.
    ///   - now: seconds since 1970.
    ///   - leaseClock: the clock of the lease's expiry; it continues while the
    ///     process is suspended.
    ///   - random: 0 ..< 1, for jitter.
    package init(
        outbox: OutboxRepository, signer: IdentitySigner, issuer: String, poster: any EventPosting,
        resolver: any DNSResolver,
        threads: DeliveryThreads, allowsPrivateStreams: Bool, now: @escaping @Sendable () -> Int64,
        leaseClock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        random: @escaping @Sendable () -> Double = { Double.random(in: 0..<1) },
        metrics: ServiceMetrics? = nil, logger: Logger
    ) {
        self.outbox = outbox
        leader = LeaderLease(outbox.leases, name: OutboxRepository.lease, now: leaseClock)
        book = DeliveryBook { results, lease in
            try await threads.store.run {
                try outbox.recordResults(results, under: lease, now: now())
            }
        }
        self.signer = signer
        self.issuer = issuer
        self.poster = poster
        self.resolver = resolver
        self.threads = threads
        self.allowsPrivateStreams = allowsPrivateStreams
        self.now = now
        self.random = random
        self.metrics = metrics
        self.logger = logger
    }

    /// Delivers all due events. Returns when no event is due, or when all remaining ones have
    /// failed. Does nothing while another process has the lease.
    package func deliverDue() async {
        while let lease = await lead() {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    while (try? await Task.sleep(for: LeaderLease.renewal)) != nil {
                        _ = await self.lead()
                    }
                }
                group.addTask {
                    await withDiscardingTaskGroup { drains in
                        for endpoint in await self.waiting() {
                            drains.addTask { _ = await self.drain(endpoint, under: lease) }
                        }
                    }
                }
                await group.next()
                group.cancelAll()
            }
            if leader.current == lease || Task.isCancelled { return }
        }
    }

    /// Endpoints that have waiting events and no delivery in progress; the caller
    /// must `drain` each of them.
    package func waiting() async -> [EventEndpoint] {
        do {
            return try await blocking { try $0.outbox.waitingEndpoints(isCounted: false) }.filter {
                endpoint in
                endpoint.failures == 0 || endpoint.retryAt <= now()
            }.filter { endpoint in
                busy.withLock { busy in
                    guard busy.count < Self.maximumEndpoints, busy[endpoint.number] == nil else {
                        return false
                    }
                    busy[endpoint.number] = .now
                    return true
                }
            }
        } catch {
            logger.warning("events cannot be read yet", metadata: ["detail": "\(error)"])
            return []
        }
    }

    /// Delivers to one endpoint until nothing is due, the endpoint fails, or the lease is lost.
    /// Returns whether the endpoint accepted anything; false also if the lease was lost or the
    /// store failed.
    package func drain(_ endpoint: EventEndpoint, under lease: Lease) async -> Bool {
        defer { busy.withLock { $0[endpoint.number] = nil } }
        var run = Run(endpoint: endpoint, lease: lease, failures: endpoint.failures)
        var hasTaken = false
        while !Task.isCancelled, leader.current == lease {
            do {
                step(run)
                let isProbe = run.failures > 0
                let events = try await blocking {
                    try $0.outbox.due(
                        endpoint: endpoint.number, now: $0.now(), isProbe: isProbe,
                        limit: isProbe ? 1 : Self.batch, under: lease)
                }
                guard let events, !events.isEmpty else { return hasTaken }
                busy.withLock { $0[endpoint.number] = .some(nil) }
                let addresses: EndpointAddresses
                do {
                    addresses = try await self.addresses(endpoint)
                } catch let refusal as EndpointAddresses.Refusal {
                    guard leader.current == lease else { throw LeaseLost() }
                    try await record(
                        events[0],
                        .failed(reason: refusal.reason, isEndpoints: true, retryAfter: nil), run)
                    return hasTaken
                }
                step(run)
                if let stream = endpoint.stream {
                    run.authorization = try await blocking {
                        try $0.outbox.streams.authorization(of: stream.id)
                    }
                }
                guard try await attempt(events, addresses, run) else { return hasTaken }
                hasTaken = true
                if run.failures > 0 { try await wake(run) }
                run.failures = 0
            } catch is CancellationError {
                return hasTaken
            } catch is LeaseLost {
                return false
            } catch {
                // Events that were delivered but not recorded are delivered again: at least once.
                logger.warning("events cannot be delivered yet", metadata: ["detail": "\(error)"])
                return false
            }
        }
        return hasTaken
    }

    /// The state of a delivery to one endpoint.
    private struct Run {
        let endpoint: EventEndpoint
        let lease: Lease
        /// Failures in a row.
        var failures: Int
        /// The value of the Authorization field for a stream's pushes.
        var authorization: String?
    }

    /// Makes further waiting events of an endpoint due when it works again, in addition to those
    /// that its first response made due.
    private func wake(_ run: Run) async throws {
        let time = now()
        while try await blocking({
            try $0.outbox.wake(endpoint: run.endpoint.number, under: run.lease, now: time)
        }) { step(run) }
    }

    private func step(_ run: Run) { busy.withLock { $0[run.endpoint.number] = .now } }

    /// Tries the events, several at the same time, until the endpoint fails or the time is up;
    /// returns whether it works.
    private func attempt(
        _ events: [OutboxEvent], _ addresses: EndpointAddresses, _ run: Run
    ) async throws -> Bool {
        let queue = EventQueue(events, until: .now + Self.batchTime)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for event in queue.next(Self.concurrency) {
                group.addTask {
                    var following: OutboxEvent? = event
                    while let event = following {
                        if case .failed(_, isEndpoints: true, _) = try await self.attempt(
                            event, addresses, run)
                        {
                            queue.endpointFailed()
                        }
                        following = queue.next(1).first
                    }
                }
            }
            try await group.waitForAll()
        }
        return queue.works
    }

    /// Tries one event and records the result.
    private func attempt(
        _ event: OutboxEvent, _ addresses: EndpointAddresses, _ run: Run
    ) async throws -> PostOutcome {
        let message = try await message(event, to: run.endpoint, run.authorization)
        // Checked by our own clock, which continues while the process is suspended; the store is
        // checked before and afterwards.
        guard leader.current == run.lease else { throw LeaseLost() }
        step(run)
        let outcome = await poster.post(message, to: run.endpoint.url, at: addresses)
        step(run)
        if outcome != .delivered {
            // Interrupted by the end of the service or by a suspension: this is not a failure of
            // the endpoint.
            try Task.checkCancellation()
            guard leader.current == run.lease else { throw LeaseLost() }
        }
        try await record(event, outcome, run)
        return outcome
    }

    /// Records the result.
    private func record(_ event: OutboxEvent, _ outcome: PostOutcome, _ run: Run) async throws {
        guard case .failed(let reason, let isEndpoints, let retryAfter) = outcome else {
            metrics?.events("delivered").add()
            guard try await book.note(DeliveryResult(event), under: run.lease) else {
                throw LeaseLost()
            }
            return logger.info("event delivered", metadata: Self.metadata(event))
        }
        metrics?.events("retried").add()
        let (time, failures) = (now(), run.failures + 1)
        let failure = DeliveryFailure(
            reason: reason, isEndpoints: isEndpoints, endpointFailures: failures,
            retryEventAt: time
                + RetrySchedule.delay(failures: event.attempts + 1, random: random()),
            retryEndpointAt: time
                + max(RetrySchedule.delay(failures: failures, random: random()), retryAfter ?? 0))
        guard try await book.note(DeliveryResult(event, failure: failure), under: run.lease) else {
            throw LeaseLost()
        }
        var metadata = Self.metadata(event)
        metadata["reason"] = "\(reason)"
        logger.warning("event not delivered yet", metadata: metadata)
    }

    private static func metadata(_ event: OutboxEvent) -> Logger.Metadata {
        [
            "event": "\(event.jti)", "type": "\(event.type.rawValue)", "aud": "\(event.audience)",
            "attempt": "\(event.attempts + 1)",
        ]
    }

    /// The message for an endpoint, signed now.
    private func message(
        _ event: OutboxEvent, to endpoint: EventEndpoint, _ authorization: String?
    ) async throws -> EventMessage {
        guard let stream = endpoint.stream else {
            return EventMessage(notification: try await body(event, endpoint.dialect))
        }
        return EventMessage(
            token: try await signer.token(event, stream: stream.id, issuer: issuer),
            authorization: authorization)
    }

    /// The body of a notification, signed now.
    package func body(
        _ event: OutboxEvent, _ dialect: EventDialect = .apple
    ) async throws -> [UInt8] {
        let isNew = dialect == .apple2025
        let time = now()
        let expiry = isNew ? time + OutgoingEvent.lifetime : nil
        let address = event.email.flatMap { AddrSpec(envelope: $0) }
        if let kind = AccountEventKind(type: event.type.rawValue) {
            return try await signer.body(
                of: OutgoingEvent(
                    issuer: issuer, audience: event.audience, id: event.jti, issuedAt: time,
                    expiresAt: expiry, kind: kind,
                    typeName: isNew && kind == .accountDelete
                        ? AccountEventKind.accountDeleted : kind.rawValue,
                    subject: event.sub, relayAddress: address, happenedAt: event.eventTime))
        }
        // Test events and types that Apple's notifications do not have, in the form of Apple's
        // events.
        var own: JSONObject = [
            "type": .string(event.type.rawValue), "sub": .string(event.sub),
            "event_time": .integer(event.eventTime),
        ]
        if let decision = event.decisionID { own["decision_id"] = .string(decision) }
        if event.type == .addressUsedByOthers {
            own["email"] = event.email.map(JSONValue.string)
            for member in event.detailMembers.members { own[member.name] = member.value }
        }
        if event.type == .deliveryLimit {
            for member in event.detailMembers.members { own[member.name] = member.value }
        }
        var claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(event.audience), "iat": .integer(time),
            "jti": .string(event.jti),
        ]
        claims["exp"] = expiry.map(JSONValue.integer)
        claims["events"] = .string(JSONValue.object(own).text)
        return JSONValue.object(["payload": .string(try await signer.key().sign(claims))]).octets
    }

    /// Sends a test event, now and once; records nothing.
    package func test(_ endpoint: EventEndpoint) async throws -> PostOutcome {
        let event = OutboxEvent(
            test: endpoint, jti: Base32.characters(fromRandom: try SecureRandom.bytes(count: 32)),
            now: now())
        let addresses: EndpointAddresses
        do {
            addresses = try await self.addresses(endpoint)
        } catch let refusal as EndpointAddresses.Refusal {
            return .failed(reason: refusal.reason, isEndpoints: true, retryAfter: nil)
        }
        let message = EventMessage(notification: try await body(event, endpoint.dialect))
        return await poster.post(message, to: endpoint.url, at: addresses)
    }

    /// The addresses to post to. Throws `EndpointAddresses.Refusal`.
    private func addresses(_ endpoint: EventEndpoint) async throws -> EndpointAddresses {
        // For an endpoint, the administrator's permission is enough. The team chooses a stream's
        // receiver, so the present setting applies, even if the team chose it earlier.
        let isForbidden = endpoint.stream != nil && !allowsPrivateStreams
        guard endpoint.url.isSecure || !isForbidden else {
            throw EndpointAddresses.Refusal(
                "it is not reached over https, \(PrivateReceivers.reason)")
        }
        do {
            return try await EndpointAddresses.lookUp(
                endpoint.url, allowsPrivate: endpoint.allowsPrivate && !isForbidden,
                resolver: resolver)
        } catch let error as EndpointAddresses.Refusal {
            guard isForbidden, endpoint.allowsPrivate, error.isOfAddress else { throw error }
            throw EndpointAddresses.Refusal("\(error.reason), \(PrivateReceivers.reason)")
        }
    }

    /// Runs a blocking call on one of the store's threads.
    private func blocking<T: Sendable>(
        _ body: @escaping @Sendable (EventDelivery) throws -> T
    ) async throws -> T {
        try await threads.store.run { try body(self) }
    }

    /// Gives up events that waited for three days, deletes events that ended long ago, and reports
    /// refusals to streams.
    package func tidy() async {
        // Only one run at a time: if there is much to delete, the pauses between steps let other
        // writers in.
        guard !isTidying.exchange(true, ordering: .acquiring) else { return }
        defer { isTidying.store(false, ordering: .releasing) }
        do {
            let parked = try await blocking { try $0.outbox.parkExpired(now: $0.now()) }
            if parked > 0 {
                metrics?.events("parked").add(parked)
                logger.error(
                    "events were given up after three days: see postern event list",
                    metadata: ["events": "\(parked)"])
            }
            try await PacedSteps.run {
                try await blocking { try $0.outbox.deleteEnded(now: $0.now()) }
            }
            _ = try await blocking { try $0.outbox.streams.reportRefusals(now: $0.now()) }
            let early = try await blocking {
                try $0.outbox.endImpossibleWaits(
                    event: RetrySchedule.longestWait,
                    endpoint: max(RetrySchedule.longestWait, RetrySchedule.longestAsked),
                    now: $0.now())
            }
            if early > 0 {
                logger.warning(
                    "events were scheduled by a clock that was ahead; they are tried now",
                    metadata: ["events": "\(early)"])
            }
        } catch is CancellationError {
            // The service is ending: the next one continues.
        } catch {
            logger.warning("old events cannot be deleted yet", metadata: ["detail": "\(error)"])
        }
    }

    /// Measures how many events wait, and since when.
    package func measure() async {
        guard let metrics, var backlog = try? await blocking({ try $0.outbox.backlog() }) else {
            return
        }
        if let parked = try? await blocking({ try ParkedEvents.all($0.outbox.database) }) {
            metrics.outboxParked.set(Double(parked.reduce(0) { $0 + $1.events }))
        }
        if !backlog.isWhole {
            // The last whole count is closer to the truth than a partial one.
            let isTurn = wholeCount.withLock { last in
                guard last.map({ .now - $0 >= Self.wholeCountInterval }) ?? true else {
                    return false
                }
                last = .now
                return true
            }
            guard isTurn,
                let whole = try? await blocking({ try $0.outbox.backlog(limit: Int(Int32.max)) })
            else { return }
            backlog = whole
        }
        metrics.outboxSize.set(Double(backlog.events))
        metrics.outboxAge.set(Double(backlog.oldest.map { max(0, now() - $0) } ?? 0))
    }

    /// Takes or renews the lease to deliver. Nil if another process has it, the store is
    /// unavailable, or a step here is stuck.
    package func lead() async -> Lease? {
        if let since = busy.withLock({ $0.values.compactMap(\.self).min() }),
            ContinuousClock.now - since > Self.longestStep
        {
            logger.error("a delivery is stuck, so another process may take over")
            return nil
        }
        return (try? await threads.lease.run { [leader] in leader.acquire() }) ?? nil
    }

    /// The lease, if this process still has it.
    package var lease: Lease? { leader.current }

    func resign() async { try? await threads.lease.run { [leader] in leader.release() } }

    /// Calls the handler when a change of this process puts an event into the outbox.
    func onChange(_ handler: @escaping @Sendable () -> Void) { outbox.signal.onRaise(handler) }
}

/// Events that were read, shared by the tasks that try them.
private final class EventQueue: Sendable {
    private let state: Mutex<(rest: ArraySlice<OutboxEvent>, works: Bool)>
    private let end: ContinuousClock.Instant

    init(_ events: [OutboxEvent], until end: ContinuousClock.Instant) {
        state = Mutex((events[...], true))
        self.end = end
    }

    var works: Bool { state.withLock { $0.works } }
    func endpointFailed() { state.withLock { $0.works = false } }

    /// The next events, at most `count`; none after the endpoint failed or the time is up.
    func next(_ count: Int) -> ArraySlice<OutboxEvent> {
        state.withLock { state in
            guard state.works, ContinuousClock.now < end else { return [] }
            defer { state.rest = state.rest.dropFirst(count) }
            return state.rest.prefix(count)
        }
    }
}

extension IdentitySigner {
    /// The SET of an event in compact form, signed now with RS256, as the CAEP Interoperability
    /// Profile requires.
    package func token(_ event: OutboxEvent, stream: String, issuer: String) async throws -> String
    {
        try await key(.rs256).sign(
            StreamEvents.token(event, stream: stream, issuer: issuer).claims,
            type: SecurityEventToken.type)
    }
}
