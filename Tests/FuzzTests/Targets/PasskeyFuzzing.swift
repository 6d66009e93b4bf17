// CBOR, and the data that authenticators and devices write with it.

import WebAuthn

enum PasskeyFuzzing {
    /// Data that the strict reader for authenticators accepts is also accepted by the general one,
    /// with the same result.
    static let cbor: FuzzTarget = { input in
        let any = try? CBORReader.firstValue(of: input[...], form: .any)
        guard let definite = try? CBORReader.firstValue(of: input[...], form: .definite) else {
            return
        }
        require(
            any?.rest == definite.rest && "\(any.map(\.value) ?? .null)" == "\(definite.value)",
            "one item has one end")
    }

    /// An attestation object, as from a browser. If it is valid, its credential's data alone too.
    static let webauthn: FuzzTarget = { input in
        let relyingParty = RelyingParty(
            id: "example.org", client: ExpectedClient(origins: ["https://example.org"]),
            requiresUserVerification: false)
        let challenge: [UInt8] = Array("fuzz".utf8)
        let clientData = Array(
            #"{"type":"webauthn.create","challenge":"ZnV6eg","origin":"https://example.org"}"#.utf8)
        let found = try? relyingParty.register(
            clientData: clientData, attestationObject: input, challenge: challenge)
        if let found {
            require(
                (1...1023).contains(found.credential.id.count),
                "a credential id has 1 to 1,023 octets")
            require(
                found.authenticatorData.flags.contains(.userPresent),
                "somebody touched the authenticator")
        }
        _ = try? AuthenticatorData(input)
        _ = try? COSEKey(octets: input)
    }

    /// A line of `verify attestation`, and an attestation and an assertion made of the octets
    /// themselves. No key here signed any of them.
    static let attest: FuzzTarget = { input in
        let answer = AttestationLine.answer(input, now: 0) { _ in nil }
        require(
            answer["valid"] != nil && (answer["valid"] == .bool(true)) == (answer["error"] == nil),
            "every line is answered")
        let expectation = AppAttestExpectation(
            appID: "TEAM.app", environment: .production, clientData: Array("fuzz".utf8))
        let found = try? AppAttestation.verify(
            input, expectation, keyID: [UInt8](repeating: 1, count: 32), roots: [],
            now: 1_700_000_000)
        require(found == nil, "nothing is attested without a root")
        _ = try? AppAssertion.verify(input, expectation, point: point, counter: 0)
    }

    /// The base point of P-256 (FIPS 186-5).
    private static let point: [UInt8] =
        [
            0x04, 0x6B, 0x17, 0xD1, 0xF2, 0xE1, 0x2C, 0x42, 0x47, 0xF8, 0xBC, 0xE6, 0xE5, 0x63,
            0xA4, 0x40, 0xF2, 0x77, 0x03,
            0x7D, 0x81,
            0x2D, 0xEB, 0x33, 0xA0, 0xF4, 0xA1, 0x39, 0x45, 0xD8, 0x98, 0xC2, 0x96, 0x4F, 0xE3,
            0x42, 0xE2, 0xFE, 0x1A, 0x7F,
            0x9B, 0x8E,
            0xE7, 0xEB, 0x4A, 0x7C, 0x0F, 0x9E, 0x16, 0x2B, 0xCE, 0x33, 0x57, 0x6B, 0x31, 0x5E,
            0xCE, 0xCB, 0xB6, 0x40, 0x68,
            0x37, 0xBF,
            0x51, 0xF5,
        ]
}
