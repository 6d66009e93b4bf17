// Values sealed for a browser open only with their key and for their purpose.

import TestSupport
import Testing

@testable import Accounts
@testable import SignIn

@Suite(.blocking) struct SealedTokenTests {
    private struct Value: Codable, Equatable { var user = "anna" }

    private static func tokens(first: UInt8 = 0) throws -> SealedTokens {
        let ring = try #require(KeyRing(random: (0..<96).map { UInt8($0) &+ first }))
        return SealedTokens(secrets: SecretHash(keys: ring.marks))
    }

    @Test func sealedToken_otherPurpose_doesNotOpen() throws {
        let tokens = try Self.tokens()
        let sealed = try tokens.seal(Value(), .signUp)
        let opened: Value? = tokens.open(sealed, .signUp)
        #expect(opened == Value())
        for purpose: SecretHash.Purpose in [
            .upstream, .authorizationRequest, .session, .authorizationContent,
        ] {
            let other: Value? = tokens.open(sealed, purpose)
            #expect(other == nil, "\(purpose)")
        }
    }

    @Test func sealedToken_otherKeyOrChangedOctet_doesNotOpen() throws {
        let tokens = try Self.tokens()
        let sealed = try tokens.seal(Value(), .signUp)
        let foreign: Value? = try Self.tokens(first: 1).open(sealed, .signUp)
        #expect(foreign == nil)
        for place in [0, sealed.utf8.count / 2, sealed.utf8.count - 2] {
            var octets = Array(sealed.utf8)
            octets[place] =
                octets[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let changed: Value? = tokens.open(String(decoding: octets, as: UTF8.self), .signUp)
            #expect(changed == nil, "octet \(place)")
        }
    }
}
