// A valid token with any octet changed, removed or added is not a valid token.

import Foundation
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct MutationTests {
    private func isValid(_ octets: [UInt8], _ keys: JWKSet) -> Bool {
        guard let token = try? CompactJWS(octets: octets) else { return false }
        return
            (try? TokenChecks.verify(
                token, issuer: TestIssuer.configuration(), keys: keys,
                audience: TestIssuer.audience, nonce: nil,
                now: TestIssuer.now))
            != nil
    }

    @Test func token_anyBitChanged_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        let token = Array(try issuer.token().utf8)
        #expect(isValid(token, keys))
        for place in token.indices {
            for bit in 0..<8 {
                var changed = token
                changed[place] ^= 1 << bit
                #expect(!isValid(changed, keys), "bit \(bit) of octet \(place)")
            }
        }
    }

    @Test func token_octetRemovedOrInserted_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        let token = Array(try issuer.token().utf8)
        for place in token.indices {
            var changed = token
            changed.remove(at: place)
            #expect(!isValid(changed, keys), "without octet \(place)")
            for octet in Array("A=. \n\0".utf8) {
                changed = token
                changed.insert(octet, at: place)
                #expect(!isValid(changed, keys), "with \(octet) before octet \(place)")
            }
        }
        for length in token.indices { #expect(!isValid(Array(token[..<length]), keys)) }
    }

    @Test func token_randomOctets_isRefused() async throws {
        let issuer = try await TestIssuer()
        let keys = try await issuer.keys()
        var random = SeededGenerator(seed: 5)
        let alphabet = Array("ABCxyz019-_.={}\"\\ \n\0\u{FF}".utf8)
        for _ in 0..<20_000 {
            let length = Int.random(in: 0...200, using: &random)
            let octets = (0..<length).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            #expect(!isValid(octets, keys))
        }
        // Linear in its length: a megabyte of dots is refused for its length alone.
        #expect(!isValid([UInt8](repeating: UInt8(ascii: "."), count: 1 << 20), keys))
    }
}
