// The resolver of the running relay: a cache, one query for many callers, and an answer or a
// temporary failure in limited time.

import Concurrency
import Glibc
import MailAuth
import Support
import Synchronization

/// A caching stub resolver on c-ares. Any thread may call it. Each caller waits for its own answer,
/// and callers with the same query at the same time share it. `close`, or the release of the last
/// reference, ends its thread.
package final class AresResolver: TimedDNSResolver {
    /// Counts of the resolver's work since it was made.
    package struct Counters: Sendable, Hashable {
        /// Queries from callers.
        package var asked = 0
        /// Queries answered from the cache.
        package var cached = 0
        /// Queries that waited for the same query of another caller.
        package var joined = 0
        /// Queries sent by c-ares.
        package var sent = 0
        /// Temporary failures given to callers.
        package var failed = 0
    }

    /// The data that a query in flight needs; it does not keep the resolver alive.
    private final class Shared: Sendable {
        struct State {
            var cache: DNSCache
            var inFlight: [DNSQuestion: Monitor<DNSAnswer?>] = [:]
            var counters = Counters()
        }

        let state: Mutex<State>
        let now: @Sendable () -> Int64

        init(limits: DNSCacheLimits, now: @escaping @Sendable () -> Int64) {
            state = Mutex(State(cache: DNSCache(limits: limits)))
            self.now = now
        }

        func finish(
            _ question: DNSQuestion, _ promise: Monitor<DNSAnswer?>, _ answer: DNSAnswer,
            ttl: Int64?
        ) {
            state.withLock { state in
                state.inFlight[question] = nil
                if let ttl { state.cache.store(answer, for: question, ttl: ttl, now: now()) }
            }
            promise.with { $0 = $0 ?? answer }
        }
    }

    private let settings: DNSClientSettings
    private let shared: Shared
    private let loop: AresEventLoop

    /// Opens the client.
    ///
    /// - Parameters:
    ///   - settings: servers, timeouts and bounds.
    ///   - now: seconds for the cache, on a clock that does not go back; by default the system's.
    package init(
        settings: DNSClientSettings = DNSClientSettings(),
        now: @escaping @Sendable () -> Int64 = MonotonicClock.seconds
    ) throws(DNSClientError) {
        self.settings = settings
        shared = Shared(limits: settings.cache, now: now)
        loop = try AresEventLoop(settings: settings)
    }

    deinit { loop.close() }

    /// Closes the client: waiting callers, and all later ones, get a temporary failure.
    package func close() { loop.close() }

    package var counters: Counters { shared.state.withLock { $0.counters } }

    /// Number and octets of the cached answers.
    package var cached: (entries: Int, bytes: Int) {
        shared.state.withLock { ($0.cache.count, $0.cache.bytes) }
    }

    /// Queries for which callers wait.
    package var waiting: Int { shared.state.withLock { $0.inFlight.count } }

    package func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
        query(name, type, within: settings.questionMilliseconds)
    }

    package func query(
        _ name: String, _ type: DNSRecordType, within milliseconds: Int64
    ) -> DNSAnswer {
        // A name that is not valid in the DNS does not exist.
        guard let name = DomainName.queryable(name) else { return .nxDomain }
        let question = DNSQuestion(name: name, type: type)
        let (known, promise, isNew) = shared.state.withLock {
            state -> (DNSAnswer?, Monitor<DNSAnswer?>?, Bool) in
            state.counters.asked += 1
            if let answer = state.cache.answer(question, now: shared.now()) {
                state.counters.cached += 1
                return (answer, nil, false)
            }
            if let promise = state.inFlight[question] {
                state.counters.joined += 1
                return (nil, promise, false)
            }
            let promise = Monitor<DNSAnswer?>(nil)
            state.inFlight[question] = promise
            state.counters.sent += 1
            return (nil, promise, true)
        }
        if let known { return known }
        if isNew, let promise { send(question, promise) }
        let answer =
            promise?.wait(atMost: .milliseconds(min(milliseconds, settings.questionMilliseconds))) {
                $0
            }
            ?? .temporaryFailure("no answer in time")
        if case .temporaryFailure = answer { shared.state.withLock { $0.counters.failed += 1 } }
        return answer
    }

    private func send(_ question: DNSQuestion, _ promise: Monitor<DNSAnswer?>) {
        let payload = UInt16(clamping: settings.udpPayload)
        guard
            let packet = DNSMessage.question(
                id: 0, name: question.name, type: question.type.code, udpPayload: payload)
        else {
            return shared.finish(question, promise, .nxDomain, ttl: nil)
        }
        Self.ask(packet, question, promise, shared, loop: loop, mayRetry: true)
    }

    /// - Parameter mayRetry: whether to repeat the query without the OPT record if the server does
    ///   not understand it. c-ares itself does so only once in the life of a channel.
    private static func ask(
        _ packet: [UInt8], _ question: DNSQuestion, _ promise: Monitor<DNSAnswer?>,
        _ shared: Shared, loop: AresEventLoop,
        mayRetry: Bool
    ) {
        loop.submit(packet) { [weak loop] outcome in
            switch outcome {
            case .failure(let reason):
                shared.finish(question, promise, .temporaryFailure(reason), ttl: nil)
            case .message(let bytes):
                switch bytes.withUnsafeBufferPointer({
                    DNSMessage.reply($0, to: question.name, question.type)
                }) {
                case .answer(let answer, let ttl):
                    shared.finish(question, promise, answer, ttl: ttl)
                case .unusable(let reason):
                    shared.finish(question, promise, .temporaryFailure(reason), ttl: nil)
                case .formatError:
                    guard mayRetry, let loop else {
                        return shared.finish(
                            question, promise, .temporaryFailure("FORMERR"), ttl: nil)
                    }
                    var plain = Array(packet.dropLast(DNSMessage.optLength))
                    plain[11] = 0
                    ask(plain, question, promise, shared, loop: loop, mayRetry: false)
                }
            }
        }
    }
}

/// The system's clock since boot, which does not go backwards.
package enum MonotonicClock {
    /// Milliseconds.
    @Sendable package static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Seconds.
    @Sendable package static func seconds() -> Int64 { milliseconds() / 1000 }
}
