// Fetches security event tokens by polling issuers (RFC 8936).

import Accounts
import AsyncHTTPClient
import Database
import Foundation
import Logging
import NIOCore
import SharedSignals
import SignIn
import Support
import Transport

/// Polls each configured issuer; only one process polls at a time. Accepted SETs are acknowledged
/// in the next request of the same round. If that fails, they come again and are recognized by
/// their `jti`.
package final class SignalPoller: Sendable {
    /// Maximum SETs in each request, and requests in one round: the rest waits for the next round.
    private static let (maxEvents, requests) = (100, 50)
    /// Maximum octets of a response: this number of SETs of the maximum accepted length.
    private static let answerLimit = 100 * 17_000
    /// Seconds for a whole response; we do not request long polling.
    private static let timeout: TimeAmount = .seconds(20)
    /// The lease for polling.
    static let lease = "signals"

    private let store: Store
    private let issuers: any NamedIssuers
    private let intake: SignalIntake
    private let client: HTTPClient
    private let leader: LeaderLease
    private let logger: Logger

    package init(_ store: Store, issuers: any NamedIssuers, intake: SignalIntake, logger: Logger) {
        (self.store, self.issuers, self.intake, self.logger) = (store, issuers, intake, logger)
        client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        leader = LeaderLease(store.leases, name: Self.lease)
    }

    /// Stops the client. Call it once, after the last poll.
    package func stop() async {
        try? await BlockingPool.issuers.run { [leader] in leader.release() }
        try? await client.shutdown()
    }

    /// One round, unless another process polls.
    package func round() async {
        do {
            let (lease, polls) = try await BlockingPool.issuers.run { [leader, store] in
                let polls = try store.issuerPolls.all()
                return (polls.isEmpty ? nil : leader.acquire(), polls)
            }
            guard lease != nil else { return }
            for (poll, token) in polls {
                guard let issuer = try await issuers.issuer(named: poll.issuer) else { continue }
                await fetch(poll, token, issuer)
            }
        } catch {
            logger.warning("signals cannot be fetched yet", metadata: ["detail": "\(error)"])
        }
    }

    private struct Failure: Error, CustomStringConvertible { let description: String }

    private func fetch(_ poll: IssuerPoll, _ token: String?, _ issuer: IssuerConfiguration) async {
        var (acknowledged, refused): ([String], JSONObject) = ([], [:])
        do {
            for _ in 0..<Self.requests {
                _ = try await BlockingPool.issuers.run { [leader] in leader.acquire() }
                let sets = try await ask(poll, token, acknowledged, refused)
                (acknowledged, refused) = ([], [:])
                guard !sets.isEmpty else { return }
                for (jti, text) in sets {
                    do {
                        guard try await intake.take(text, of: issuer) == jti else {
                            throw IncomingSignal.Refusal(.invalidRequest, "jti is another one")
                        }
                        acknowledged.append(jti)
                    } catch let refusal as IncomingSignal.Refusal {
                        refused[jti] = .object([
                            "err": .string(refusal.error.rawValue),
                            "description": .string(refusal.description),
                        ])
                    }
                }
            }
        } catch {
            logger.warning(
                "signals of an issuer cannot be fetched yet",
                metadata: ["issuer": "\(poll.issuer)", "detail": "\(error)"])
        }
    }

    /// One request; returns SETs by `jti`, in the order of the response.
    private func ask(
        _ poll: IssuerPoll, _ token: String?, _ acknowledged: [String], _ refused: JSONObject
    ) async throws -> [(String, String)] {
        if let objection = KeySetAddress.objection(poll.url, allowingHTTP: poll.allowsHTTP) {
            throw Failure(description: objection)
        }
        var body: JSONObject = [
            "maxEvents": .integer(Int64(Self.maxEvents)), "returnImmediately": .bool(true),
        ]
        if !acknowledged.isEmpty { body["ack"] = .array(acknowledged.map(JSONValue.string)) }
        if !refused.members.isEmpty { body["setErrs"] = .object(refused) }
        var request = HTTPClientRequest(url: poll.url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Accept", value: "application/json")
        request.headers.add(name: "User-Agent", value: "postern")
        if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
        request.body = .bytes(ByteBuffer(bytes: JSONValue.object(body).octets))
        let response: HTTPClientResponse
        let octets: [UInt8]
        do {
            let end = NIODeadline.now() + Self.timeout
            response = try await client.execute(request, deadline: end)
            octets = try await response.octets(limit: Self.answerLimit, until: end)
        } catch let error as HTTPClientError {
            throw Failure(description: "the request failed: \(error.shortDescription)")
        }
        guard response.status == .ok else {
            throw Failure(description: "the response has status \(response.status.code)")
        }
        guard let answer = try? StrictJSON.parseObject(octets, limit: Self.answerLimit),
            let sets = answer["sets"]?.object
        else {
            throw Failure(description: "the response is not that of a poll")
        }
        return sets.members.compactMap { member in member.value.string.map { (member.name, $0) } }
    }
}

/// Issuers by the operator's names for them.
package protocol NamedIssuers: Sendable {
    /// Nil if it does not exist. Throws errors of the store.
    func issuer(named name: String) async throws -> IssuerConfiguration?
}

extension StoredIssuers: NamedIssuers {}
