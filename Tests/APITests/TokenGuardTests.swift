// The access tokens that the store looks up.

import TestSupport
import Testing

@testable import HTTP

@Suite(.blocking) struct TokenGuardTests {
    private static let client = [ClientNetwork(name: "192.0.2.1", share: 1)]
    private static let neighbour = [ClientNetwork(name: "192.0.2.2", share: 1)]

    /// Twenty made-up tokens a second of one client must not delay the look-ups of others.
    @Test func tokenGuard_manyUnknownTokens_delaysThatClientOnly() {
        let tokens = TokenGuard()
        for number in 0..<20 {
            #expect(tokens.wait(for: "\(number)", from: Self.client, now: 0) == nil)
        }
        #expect(tokens.wait(for: "20", from: Self.client, now: 0) == 1)
        #expect(tokens.wait(for: "20", from: Self.neighbour, now: 0) == nil)
        #expect(tokens.wait(for: "20", from: Self.client, now: 1) == nil)
    }

    /// Expired tokens must be forgotten before valid ones.
    @Test func tokenGuard_full_forgetsExpiredTokensFirst() {
        let tokens = TokenGuard()
        for number in 0..<9_999 { tokens.note("old \(number)", isGood: true, now: 0) }
        tokens.note("good", isGood: true, now: 1_000)
        tokens.note("new", isGood: true, now: 3_700)
        for number in 0..<20 {
            #expect(tokens.wait(for: "\(number)", from: Self.client, now: 3_700) == nil)
        }
        #expect(tokens.wait(for: "old 0", from: Self.client, now: 3_700) == 1)
        for known in ["good", "new"] {
            #expect(tokens.wait(for: known, from: Self.client, now: 3_700) == nil)
        }
        tokens.note("good", isGood: false, now: 3_700)
        #expect(tokens.wait(for: "good", from: Self.client, now: 3_700) == 1)
    }
}
