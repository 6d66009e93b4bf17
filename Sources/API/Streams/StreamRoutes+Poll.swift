// POST /ssf/poll/{stream_id}: SETs for receivers that fetch them (RFC 8936).

import Accounts
import Events
import HTTP
import HTTPTypes
import Hummingbird
import ServiceLifecycle
import SharedSignals
import SignIn
import Support
import Synchronization

extension StreamRoutes {
    /// How long a poll waits for an event: less than the usual time limit of proxies between the
    /// service and the receiver.
    private static let longest: Duration = .seconds(25)
    /// How often a waiting poll checks: as often as delivery checks for changes by other hosts.
    private static let interval: Duration = .milliseconds(500)

    func poll(_ request: Request, _ context: TeamContext) async throws -> Response {
        let wanted = try await Self.body(request, context, PollRequest.init)
        let (owner, id) = (Self.owner(context.caller), try context.pathParameter("stream_id"))
        let time = parts.now()
        let stream = try await run { store in
            let stream = try store.streams.stream(owner, id)
            guard stream.isPolled else { throw Problem.conflict("the stream is pushed") }
            try store.outbox.note(wanted, stream: stream, now: time)
            return stream
        }
        let limit = min(wanted.maxEvents ?? OutboxRepository.pollLimit, OutboxRepository.pollLimit)
        let found = try await next(
            stream, of: owner, limit: limit, waits: !wanted.returnImmediately)
        var sets: JSONObject = [:]
        for event in found.events {
            sets[event.jti] = .string(
                try await signer.token(event, stream: stream.id, issuer: rules.issuer))
        }
        var answer: JSONObject = ["sets": .object(sets)]
        if found.hasMore { answer["moreAvailable"] = .bool(true) }
        return .object(answer, headers: HTTPFields().notStored)
    }

    /// The events, as soon as there are any, the time is up, or the service ends. Not found if the
    /// stream was removed.
    private func next(
        _ stream: EventStream, of owner: StreamRepository.Owner, limit: Int, waits: Bool
    ) async throws -> PollResult {
        let end = ContinuousClock.now + Self.longest
        let place = waits ? waiting.take(stream.id) : nil
        defer { if place != nil { waiting.giveBack(stream.id) } }
        while true {
            let found = try await run {
                try $0.outbox.poll($0.streams.stream(owner, stream.id), limit: limit)
            }
            guard place != nil, found.events.isEmpty, !found.hasMore, ContinuousClock.now < end
            else { return found }
            await cancelWhenGracefulShutdown { try? await Task.sleep(for: Self.interval) }
            if Task.isShuttingDownGracefully { return found }
        }
    }
}

/// Polls that wait. Each costs two queries of the store a second, so their number is limited.
/// Beyond the limit, a poll gets its answer at once.
final class PollWaiting: Sendable {
    /// The limit of this process, and of one stream: a receiver may poll again before its last poll
    /// ended.
    private static let (maximum, perStream) = (200, 2)
    private let polls = Mutex<[String: Int]>([:])

    struct Place: Sendable {}

    /// A place, which the caller must give back; nil if none is free.
    func take(_ stream: String) -> Place? {
        polls.withLock { polls in
            guard polls.values.reduce(0, +) < Self.maximum,
                polls[stream, default: 0] < Self.perStream
            else { return nil }
            polls[stream, default: 0] += 1
            return Place()
        }
    }

    func giveBack(_ stream: String) {
        polls.withLock { polls in
            polls[stream, default: 1] -= 1
            if polls[stream] == 0 { polls[stream] = nil }
        }
    }
}
