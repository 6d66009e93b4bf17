// The cache of key sets, with a clock and a fetcher that the test controls.

import Foundation
import SignIn
import Support
import Synchronization
import TestSupport
import Testing

/// A fetcher with the test's answers, which counts, and can be paused.
private final class ScriptedFetcher: KeySetFetcher {
    private struct State {
        var answer: Result<FetchedKeySet, KeySetFetchError> = .failure(
            KeySetFetchError("nothing was set"))
        var count = 0
        var isHeld = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var arrivals: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    var count: Int { state.withLock { $0.count } }

    func answer(_ document: [UInt8], maxAge: Int64? = nil) {
        state.withLock { $0.answer = .success(FetchedKeySet(document: document, maxAge: maxAge)) }
    }
    func fail(_ reason: String = "away") {
        state.withLock { $0.answer = .failure(KeySetFetchError(reason)) }
    }
    func hold() { state.withLock { $0.isHeld = true } }
    func release() {
        let waiting = state.withLock { state in
            state.isHeld = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when a fetch is paused.
    func arrival() async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.waiting.isEmpty { state.arrivals.append(continuation) }
                return !state.waiting.isEmpty
            }
            if isThere { continuation.resume() }
        }
    }

    func fetch(_ source: KeySource) async throws(KeySetFetchError) -> FetchedKeySet {
        await withCheckedContinuation { continuation in
            let (isHeld, arrivals) = state.withLock { state in
                state.count += 1
                if state.isHeld { state.waiting.append(continuation) }
                defer { if state.isHeld { state.arrivals = [] } }
                return (state.isHeld, state.isHeld ? state.arrivals : [])
            }
            for arrival in arrivals { arrival.resume() }
            if !isHeld { continuation.resume() }
        }
        return try state.withLock { $0.answer }.get()
    }
}

/// Storage in memory.
private final class MemoryStorage: KeySetStorage {
    private let stored = Mutex<[String: StoredKeySet]>([:])
    func load(_ issuer: IssuerConfiguration) async -> StoredKeySet? {
        stored.withLock { $0[issuer.name] }
    }
    func save(_ keys: StoredKeySet, of issuer: IssuerConfiguration) async {
        stored.withLock { $0[issuer.name] = keys }
    }
}

@Suite(.blocking) struct KeySetCacheTests {
    private let clock = ManualClock()
    private let fetcher = ScriptedFetcher()
    private let issuer = TestIssuer.configuration()

    private func cache(_ storage: (any KeySetStorage)? = nil) -> KeySetCache {
        KeySetCache(fetcher: fetcher, storage: storage, now: clock.now, logger: silence)
    }

    private func key() async throws -> (id: String, document: [UInt8], jwk: JSONObject) {
        let key = try IdentitySigningKey.generate().key
        return (key.keyID, PublishedKeys.document([key.publicJWK]), key.publicJWK)
    }

    private func has(_ keys: JWKSet, _ id: String) -> Bool {
        if case .key = keys.find(id, .es256) { true } else { false }
    }

    @Test func cache_freshSet_fetchesOnce() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        for _ in 0..<5 { #expect(has(try await cache.keys(of: issuer, for: key.id), key.id)) }
        #expect(fetcher.count == 1)
        clock.advance(3599)
        _ = try await cache.keys(of: issuer, for: key.id)
        #expect(fetcher.count == 1)
    }

    @Test func cache_maxAgeOfIssuer_isBounded() async throws {
        for (maxAge, fresh) in [(0, 300), (10, 300), (600, 600), (1_000_000, 86_400)]
            as [(Int64, Int64)]
        {
            let clock = ManualClock()
            let fetcher = ScriptedFetcher()
            let cache = KeySetCache(fetcher: fetcher, storage: nil, now: clock.now, logger: silence)
            let key = try await key()
            fetcher.answer(key.document, maxAge: maxAge)
            _ = try await cache.keys(of: issuer, for: key.id)
            clock.advance(fresh - 1)
            await cache.refresh([issuer])
            #expect(fetcher.count == 1, "max-age \(maxAge)")
            clock.advance(1)
            await cache.refresh([issuer])
            #expect(fetcher.count == 2, "max-age \(maxAge)")
        }
    }

    @Test func cache_staleSet_isUsedWhileFetching() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        _ = try await cache.keys(of: issuer, for: key.id)
        clock.advance(3600)
        fetcher.hold()
        // Answered although the fetch hangs.
        #expect(has(try await cache.keys(of: issuer, for: key.id), key.id))
        await fetcher.arrival()
        #expect(fetcher.count == 2)
        // A second one joins it rather than making another.
        #expect(has(try await cache.keys(of: issuer, for: key.id), key.id))
        #expect(fetcher.count == 2)
        fetcher.release()
    }

    /// A key that its issuer has withdrawn must not be accepted after a day without requests.
    @Test func cache_setOfADayAgo_isRenewedFirst() async throws {
        let cache = cache()
        let (old, new) = (try await key(), try await key())
        fetcher.answer(old.document)
        _ = try await cache.keys(of: issuer, for: old.id)
        clock.advance(86_400)
        fetcher.answer(new.document)
        #expect(!has(try await cache.keys(of: issuer, for: old.id), old.id))
        #expect(fetcher.count == 2)
    }

    @Test func cache_unknownKeyID_fetchesRotatedSet() async throws {
        let cache = cache()
        let (old, new) = (try await key(), try await key())
        fetcher.answer(old.document)
        _ = try await cache.keys(of: issuer, for: old.id)
        fetcher.answer(PublishedKeys.document([old.jwk, new.jwk]))
        let keys = try await cache.keys(of: issuer, for: new.id)
        #expect(has(keys, new.id) && has(keys, old.id))
        #expect(fetcher.count == 2)
    }

    @Test func cache_manyUnknownKeyIDs_fetchesAtBoundedRate() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        _ = try await cache.keys(of: issuer, for: key.id)
        for number in 0..<1000 {
            #expect(!has(try await cache.keys(of: issuer, for: "unknown-\(number)"), key.id + "x"))
        }
        #expect(fetcher.count == 2)
        clock.advance(29)
        _ = try await cache.keys(of: issuer, for: "unknown")
        #expect(fetcher.count == 2)
        clock.advance(1)
        for number in 0..<1000 { _ = try await cache.keys(of: issuer, for: "unknown-\(number)") }
        #expect(fetcher.count == 3)
        // Each issuer has its own budget.
        let other = TestIssuer.configuration("other")
        _ = try await cache.keys(of: other, for: key.id)
        _ = try await cache.keys(of: other, for: "unknown")
        #expect(fetcher.count == 5)
    }

    @Test func cache_concurrentRequests_fetchesOnce() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        fetcher.hold()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 {
                group.addTask { has(try await cache.keys(of: issuer, for: key.id), key.id) }
            }
            await fetcher.arrival()
            fetcher.release()
            for try await result in group { #expect(result) }
        }
        #expect(fetcher.count == 1)
    }

    @Test func cache_firstFetchFails_isUnavailable() async throws {
        let cache = cache()
        fetcher.fail("no complete response in time")
        let error = await #expect(throws: KeysUnavailable.self) {
            try await cache.keys(of: issuer, for: "k")
        }
        #expect(error?.issuer == "test")
        #expect(error?.reason == "no complete response in time")
        #expect(error?.retryAfter == 5)
        // No second fetch before its time.
        clock.advance(4)
        await #expect(throws: KeysUnavailable.self) { try await cache.keys(of: issuer, for: "k") }
        #expect(fetcher.count == 1)
        clock.advance(1)
        let key = try await key()
        fetcher.answer(key.document)
        #expect(has(try await cache.keys(of: issuer, for: key.id), key.id))
        #expect(fetcher.count == 2)
    }

    @Test func cache_repeatedFailures_backsOffToFiveMinutes() async throws {
        let cache = cache()
        fetcher.fail()
        var waits: [Int64] = []
        for _ in 0..<9 {
            let error = await #expect(throws: KeysUnavailable.self) {
                try await cache.keys(of: issuer, for: "k")
            }
            waits.append(error?.retryAfter ?? 0)
            clock.advance(error?.retryAfter ?? 0)
        }
        #expect(waits == [5, 10, 20, 40, 80, 160, 300, 300, 300])
        #expect(fetcher.count == 9)
    }

    @Test func cache_outage_keepsLastSetForAWeek() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        _ = try await cache.keys(of: issuer, for: key.id)
        fetcher.fail()
        for _ in 0..<7 {
            clock.advance(86_400)
            #expect(has(try await cache.keys(of: issuer, for: key.id), key.id))
        }
        #expect(await cache.status.first?.lastFailure == "away")
        clock.advance(1)
        await #expect(throws: KeysUnavailable.self) {
            try await cache.keys(of: issuer, for: key.id)
        }
        // It is available again with the issuer.
        clock.advance(300)
        fetcher.answer(key.document)
        #expect(has(try await cache.keys(of: issuer, for: key.id), key.id))
        #expect(await cache.status.first?.lastFailure == nil)
    }

    /// During an outage it is unknown whether an unknown key is new: that is not a refusal.
    @Test func cache_unknownKeyIDInOutage_isUnavailable() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        _ = try await cache.keys(of: issuer, for: key.id)
        fetcher.fail()
        await #expect(throws: KeysUnavailable.self) { try await cache.keys(of: issuer, for: "new") }
        await #expect(throws: KeysUnavailable.self) { try await cache.keys(of: issuer, for: "new") }
        #expect(has(try await cache.keys(of: issuer, for: key.id), key.id))
        #expect(fetcher.count == 2)
    }

    @Test func cache_unusableSet_keepsGoodOne() async throws {
        let good = try await key()
        for bad in [
            "", "{}", "{\"keys\":[]}",
            "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"AAAA\"}]}", "<html>",
        ] {
            let clock = ManualClock()
            let fetcher = ScriptedFetcher()
            let cache = KeySetCache(fetcher: fetcher, storage: nil, now: clock.now, logger: silence)
            fetcher.answer(good.document)
            _ = try await cache.keys(of: issuer, for: good.id)
            fetcher.answer(Array(bad.utf8))
            clock.advance(86_400)
            #expect(has(try await cache.keys(of: issuer, for: good.id), good.id), "\(bad)")
            #expect(fetcher.count == 2)
            #expect(await cache.status.first?.consecutiveFailures == 1)
        }
    }

    @Test func cache_restartInOutage_keepsSet() async throws {
        let storage = MemoryStorage()
        let key = try await key()
        fetcher.answer(key.document)
        _ = try await cache(storage).keys(of: issuer, for: key.id)
        fetcher.fail()
        clock.advance(2 * 86_400)
        let restarted = cache(storage)
        #expect(has(try await restarted.keys(of: issuer, for: key.id), key.id))
        clock.advance(6 * 86_400)
        await #expect(throws: KeysUnavailable.self) {
            try await cache(storage).keys(of: issuer, for: key.id)
        }
    }

    /// A clock that was a year ahead, and was set right: what was fetched then
    /// is not fresh for a year.
    @Test func cache_clockSetBack_fetchesAgain() async throws {
        let cache = cache()
        let key = try await key()
        clock.advance(365 * 86_400)
        fetcher.answer(key.document)
        _ = try await cache.keys(of: issuer, for: key.id)
        _ = try await cache.keys(of: issuer, for: "unknown")
        #expect(fetcher.count == 2)
        clock.advance(-365 * 86_400)
        await cache.refresh([issuer])
        #expect(fetcher.count == 3)
        _ = try await cache.keys(of: issuer, for: "unknown")
        #expect(fetcher.count == 4)
        // A failure dated in the future delays nothing either.
        fetcher.fail()
        clock.advance(365 * 86_400)
        await cache.refresh([issuer])
        clock.advance(7200 - 365 * 86_400)
        fetcher.answer(key.document)
        await cache.refresh([issuer])
        #expect(fetcher.count == 6)
        #expect(await cache.status.first?.consecutiveFailures == 0)
    }

    @Test func cache_issuerAddressChanged_dropsOldKeys() async throws {
        let cache = cache()
        let (old, new) = (try await key(), try await key())
        fetcher.answer(old.document)
        _ = try await cache.keys(of: issuer, for: old.id)
        fetcher.answer(new.document)
        let moved = TestIssuer.configuration(source: .uri("https://new.example/keys"))
        let keys = try await cache.keys(of: moved, for: new.id)
        #expect(has(keys, new.id) && !has(keys, old.id))
    }

    @Test func cache_issuerRemoved_forgetsIt() async throws {
        let cache = cache()
        let key = try await key()
        fetcher.answer(key.document)
        _ = try await cache.keys(of: issuer, for: key.id)
        #expect(await cache.status.count == 1)
        await cache.refresh([])
        #expect(await cache.status.isEmpty)
    }

    // MARK: The verifier over the cache

    private struct OneIssuer: IssuerDirectory {
        let configuration: IssuerConfiguration
        func issuer(_ iss: String) async throws -> IssuerConfiguration? {
            iss == configuration.issuer ? configuration : nil
        }
    }

    @Test func tokenVerifier_invalidToken_fetchesNothing() async throws {
        let test = try await TestIssuer()
        fetcher.answer(PublishedKeys.document([test.key.publicJWK]))
        let verifier = TokenVerifier(issuers: OneIssuer(configuration: issuer), keys: cache())
        let good = try test.token()
        let parts = good.split(separator: ".").map(String.init)
        let none = Base64URL.encode(#"{"alg":"none","kid":"k"}"#.utf8)
        for token in [
            "", "a.b.c", "\(none).\(parts[1]).", "\(parts[0]).\(parts[1]).AAAA",
            try test.token { $0["iss"] = "https://other.example" },
        ] {
            do {
                _ = try await verifier.verify(
                    token, audience: TestIssuer.audience, nonce: nil, now: TestIssuer.now)
                Issue.record("taken")
            } catch TokenVerificationFailure.rejected {}
        }
        #expect(fetcher.count == 0)
        let verified = try await verifier.verify(
            good, audience: TestIssuer.audience, nonce: nil, now: TestIssuer.now)
        #expect(verified.claims.subject == "001999.0a1b2c.1200")
        #expect(fetcher.count == 1)
    }

    @Test func tokenVerifier_keysMissing_isUnavailable() async throws {
        let test = try await TestIssuer()
        fetcher.fail()
        let verifier = TokenVerifier(issuers: OneIssuer(configuration: issuer), keys: cache())
        let error = await #expect(throws: TokenVerificationFailure.self) {
            try await verifier.verify(
                try test.token(), audience: TestIssuer.audience, nonce: nil, now: TestIssuer.now)
        }
        guard case .unavailable? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }
}
