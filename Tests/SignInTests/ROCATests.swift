// Keys of issuers whose private part anyone could have.

import Foundation
import MailCrypto
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct ROCATests {
    /// Of 2048 bits, made for this test in the way of the library of CVE-2017-15361.
    private static let marked =
        "2mvjjJwEjnyV-H8HB9CVT70upZdXUXkDm6DBYJV32_BvTO_jZIusdMyKCnndIcnmGPdWzHjYmNFstb3GghHXVziNCtISh5JLOmq7dsZPnjq6Wlvwsa4BwAggG4P2"
        + "CwvQkrY8mB7MDkPUG3rDTgm9yd97BQGTSDxDevWtWP8IvqB5rJwDpCqTXLo_HOcR7a-qRfWO4-NBjtiU9IEdxFXyNiWegeGJKAoOVGv8JZffzGf8w-MKNLRGeWrq"
        + "nEoXUQL0PhpRR8rZDRvuVUUTAzDHoCYWSyDxTiFtEqfxLQUt1B7znGP-GlMMSj9SXy1svUR_UO2e43_gNM68nmA9o9jvDw"

    /// Wycheproof's `rejectsKeyWithRocaVulnerability`.
    @Test func rsaKey_withROCAWeakness_isUnusable() async throws {
        let set = try JWKSet.parse(
            Array(
                #"{"keys": [{"kty": "RSA", "kid": "a", "alg": "RS256", "e": "AQAB", "n": "\#(Self.marked)"}]}"#
                    .utf8))
        #expect(set.keys.isEmpty)
        guard case .unusable(let reason) = set.find("a", .rs256) else {
            Issue.record("taken")
            return
        }
        #expect(reason == "an RSA key with the weakness of CVE-2017-15361 (ROCA)")
    }

    /// Only the remainders have the mark: the same number with one bit changed has none.
    @Test func rsaKey_oneBitChanged_hasNoROCAMark() throws {
        let base64 =
            Self.marked.replacingOccurrences(of: "-", with: "+").replacingOccurrences(
                of: "_", with: "/") + "=="
        let modulus = Array(try #require(Data(base64Encoded: base64)))
        #expect(ROCA.marks(modulus: modulus))
        for bit in 0..<64 {
            var other = modulus
            other[200 + bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(!ROCA.marks(modulus: other), "\(bit)")
        }
    }
}
