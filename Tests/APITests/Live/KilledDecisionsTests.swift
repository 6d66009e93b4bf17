// The service is killed while it decides: answers that are a second old are in the log, and no
// nonce serves twice.

import Decisions
import Foundation
import Glibc
import PosternConfiguration
import PostfixHarness
import SignIn
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct KilledDecisionsTests {
    private struct Response: Sendable {
        let id: String
        let at: ContinuousClock.Instant
    }

    /// The delay of this machine now: the longest time that a thread slept too long.
    private final class Lateness: Sendable {
        private static let nap = 20_000
        private let longest = Mutex<Duration>(.zero)
        private let isOver = Mutex(false)

        init() {
            Thread.detachNewThread { [self] in
                while !isOver.withLock({ $0 }) {
                    let start = ContinuousClock.now
                    usleep(UInt32(Self.nap))
                    let late = ContinuousClock.now - start - .microseconds(Self.nap)
                    longest.withLock { $0 = max($0, late) }
                }
            }
        }

        func end() -> Duration {
            isOver.withLock { $0 = true }
            return longest.withLock { $0 }
        }
    }

    @Test func decisions_serviceKilled_loseASecondOfLogAndNoNonce() async throws {
        let service = try LiveService()
        let (signing, _) = try IdentitySigningKey.generate()
        let keys = service.folder + "/issuer.json"
        try Data(PublishedKeys.document([signing.publicJWK])).write(to: URL(fileURLWithPath: keys))
        try service.run("team", "add", "juice", "--name", "Juice")
        try service.run("app", "add", "juice", "com.juice.app")
        try service.run(
            "issuer", "add", "other", "--iss", "https://issuer.example", "--jwks-inline", keys)
        let key = try service.key(
            "juice", "--scope", "decisions:write", "--scope", "decisions:read")
        let installation = try Installation.open(flag: service.folder, environment: [:], now: 1)
        defer { try? installation.close() }
        let store = installation.store
        func logged() throws -> Set<String> {
            Set(try store.decisions.newest(DecisionFilter(), limit: 100_000).map(\.record.id))
        }
        /// Its id, if it was answered.
        func ask(_ body: String) throws -> String? {
            let answer = try service.ask("POST", "/v1/decisions", key: key, body: body)
            return answer.status == 200 ? Self.id(answer.body) : nil
        }
        let plain = #"{"event":"sign_in","client_id":"com.juice.app","sub":"nobody"}"#
        func signUp(_ number: Int, event: String = "sign_up") throws -> String {
            let now = Int64(Date().timeIntervalSince1970)
            let token = try signing.sign([
                "iss": "https://issuer.example", "aud": "com.juice.app",
                "sub": .string("s\(number)"), "iat": .integer(now),
                "exp": .integer(now + 3_600), "nonce": .string("n\(number)"),
                "real_user_status": .integer(1),
            ])
            return
                #"{"event":"\#(event)","client_id":"com.juice.app","identity_token":"\#(token)","nonce":"n\#(number)"}"#
        }
        // A key is accepted within a second of its issue, an issuer's key within some seconds.
        let deadline = ContinuousClock.now + .seconds(120)
        while try ask(signUp(0)) == nil {
            try #require(ContinuousClock.now < deadline, "the service never answers")
        }

        let lateness = Lateness()
        var answers: [Response] = []
        var nonces: [(number: Int, body: String, id: String)] = []
        func both() throws {
            if let id = try ask(plain) { answers.append(Response(id: id, at: .now)) }
            let body = try signUp(nonces.count + 1)
            if let id = try ask(body) { nonces.append((nonces.count + 1, body, id)) }
        }
        // Until the log is written while requests continue…
        repeat {
            for _ in 0..<20 { try both() }
            try #require(ContinuousClock.now < deadline, "the log is never written")
        } while try !logged().contains(answers[0].id)
        // …and some more, with a kill between two answers.
        for _ in 0..<30 { try both() }
        let killed = ContinuousClock.now
        try service.kill()
        let late = lateness.end()

        let written = try logged()
        let lost = answers.drop { written.contains($0.id) }
        #expect(
            lost.allSatisfy { !written.contains($0.id) }, "what is lost are the last ones alone")
        #expect(lost.count < answers.count)
        // On a machine without delays: a second.
        if let first = lost.first {
            #expect(killed - first.at <= .seconds(1) + late * 10, "late by \(late)")
        }
        try #require(nonces.count > 20)
        #expect(
            nonces.allSatisfy { written.contains($0.id) },
            "what consumed a nonce was durable before its answer")

        try service.restart()
        while try ask(plain) == nil {
            try #require(ContinuousClock.now < deadline, "the service never answers again")
        }
        for nonce in nonces {
            let again = try service.ask("POST", "/v1/decisions", key: key, body: nonce.body)
            #expect(again.status == 200)
            #expect(Self.id(again.body) == nonce.id, "the same token gets the answer of before")
            let other = nonce.body.replacingOccurrences(
                of: "\"sign_up\"", with: "\"sensitive_action\"")
            #expect(try service.ask("POST", "/v1/decisions", key: key, body: other).status == 409)
        }
    }

    private static func id(_ body: String) -> String? {
        let parts = body.components(separatedBy: "\"decision_id\":\"")
        return parts.count == 2 ? parts[1].components(separatedBy: "\"").first : nil
    }
}
