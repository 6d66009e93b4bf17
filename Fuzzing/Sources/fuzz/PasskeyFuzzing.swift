// CBOR, and what authenticators write with it.

import CBOR
import WebAuthn

enum PasskeyFuzzing {
    /// What is taken where authenticators write is taken elsewhere too, and is the same.
    static let cbor: FuzzTarget = { input in
        let any = try? CBORReader.firstValue(of: input[...], form: .any)
        guard let definite = try? CBORReader.firstValue(of: input[...], form: .definite) else { return }
        require(any?.rest == definite.rest && "\(any.map(\.value) ?? .null)" == "\(definite.value)", "one item has one end")
    }

    /// An attestation object, as a browser would hand it over; where it is one, its credential's data by themselves.
    static let webauthn: FuzzTarget = { input in
        let relyingParty = RelyingParty(
            id: "example.org", client: ExpectedClient(origins: ["https://example.org"]), requiresUserVerification: false)
        let challenge: [UInt8] = Array("fuzz".utf8)
        let clientData = Array(#"{"type":"webauthn.create","challenge":"ZnV6eg","origin":"https://example.org"}"#.utf8)
        let found = try? relyingParty.register(clientData: clientData, attestationObject: input, challenge: challenge)
        if let found {
            require((1...1023).contains(found.credential.id.count), "a credential id has 1 to 1,023 octets")
            require(found.authenticatorData.flags.contains(.userPresent), "somebody touched the authenticator")
        }
        _ = try? AuthenticatorData(input)
        _ = try? COSEKey(octets: input)
    }
}
