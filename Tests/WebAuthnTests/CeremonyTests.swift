// Each check of a relying party, failing once.

import MailCrypto
import PasskeyTesting
import Support
import TestSupport
import Testing

@testable import WebAuthn

@Suite(.blocking) struct CeremonyTests {
    private func step(_ body: () throws -> Void) -> WebAuthnError.Step? {
        do { try body() } catch { return (error as? WebAuthnError)?.step }
        return nil
    }

    @Test func ceremony_everythingRight_isAccepted() throws {
        let registration = try TestAuthenticator(.create).register()
        #expect(
            registration.format == "none" && registration.trust == .none
                && registration.credential.id.count == 32)
        var packed = try TestAuthenticator(.create)
        packed.statementFormat = "packed"
        #expect(try packed.register().trust == .ownKey)
        #expect(try TestAuthenticator(.get).authenticate().flags.contains(.backedUp))
    }

    @Test(arguments: [
        (TestAuthenticator.clientData(.get), WebAuthnError.Step.type),
        (TestAuthenticator.clientData(.create, challenge: [1, 2, 3]), .challenge),
        (TestAuthenticator.clientData(.create, challenge: []), .challenge),
        (TestAuthenticator.clientData(.create, origin: "https://id.example.evil.example"), .origin),
        (TestAuthenticator.clientData(.create, origin: "https://id.example/"), .origin),
        (TestAuthenticator.clientData(.create, origin: "http://id.example"), .origin),
        (TestAuthenticator.clientData(.create, more: #","crossOrigin":true"#), .crossOrigin),
        (TestAuthenticator.clientData(.create, more: #","crossOrigin":"no""#), .crossOrigin),
        (
            TestAuthenticator.clientData(
                .create, more: #","crossOrigin":false,"topOrigin":"https://a.example""#),
            .crossOrigin
        ),
        (
            TestAuthenticator.clientData(.create, more: #","topOrigin":"https://a.example""#),
            .crossOrigin
        ),
        (TestAuthenticator.clientData(.create, more: #","type":"webauthn.create""#), .clientData),
        (TestAuthenticator.clientData(.create) + "x", .clientData), ("[]", .clientData),
        ("", .clientData),
    ])
    func clientData_ofAnotherCeremony_isRefused(
        _ text: String, _ expected: WebAuthnError.Step
    ) throws {
        var authenticator = try TestAuthenticator(.create)
        authenticator.clientData = text
        #expect(step { _ = try authenticator.register() } == expected)
    }

    /// Browsers add members, and a byte order mark is removed before the text is read.
    @Test func clientData_browserMembersAdded_isAccepted() throws {
        var authenticator = try TestAuthenticator(.create)
        let more =
            #","crossOrigin":false,"tokenBinding":{"status":"supported"},"other_keys_can_be_added_here":"do not compare""#
        authenticator.clientData = "\u{FEFF}" + TestAuthenticator.clientData(.create, more: more)
        #expect(throws: Never.self) { try authenticator.register() }
    }

    @Test func clientData_framed_isTakenWhereExpected() throws {
        let framed = TestAuthenticator.clientData(
            .create, more: #","crossOrigin":true,"topOrigin":"https://a.example""#)
        for (framing, isTaken) in [
            (ExpectedClient.Framing.none, false), (.within(["https://b.example"]), false),
            (.within(["https://a.example"]), true),
            (.anywhere, true),
        ] {
            let client = ExpectedClient(origins: ["https://id.example"], framing: framing)
            let step = step {
                try ClientData.check(
                    Array(framed.utf8), .create, challenge: TestAuthenticator.challenge, client)
            }
            #expect(step == (isTaken ? nil : .crossOrigin))
        }
    }

    @Test func flags_inconsistent_areRefused() throws {
        for (flags, expected) in [
            (AuthenticatorData.Flags.userVerified, WebAuthnError.Step.userPresence),
            (.userPresent, .userVerification),
            ([.userPresent, .userVerified, .backedUp], .backup),
            ([.userPresent, .userVerified, .extensionData], .authenticatorData),
        ] {
            var authenticator = try TestAuthenticator(.create)
            authenticator.flags = flags
            #expect(step { _ = try authenticator.register() } == expected)
            authenticator.clientData = TestAuthenticator.clientData(.get)
            #expect(step { _ = try authenticator.authenticate() } == expected)
        }
    }

    @Test func credential_otherRelyingParty_isRefused() throws {
        var authenticator = try TestAuthenticator(.get)
        authenticator.rpID = "evil.example"
        #expect(step { _ = try authenticator.authenticate() } == .relyingParty)
    }

    @Test func authenticatorData_octetsLeftOver_isRefused() throws {
        var authenticator = try TestAuthenticator(.create)
        authenticator.trailing = [0]
        #expect(step { _ = try authenticator.register() } == .authenticatorData)
        authenticator = try TestAuthenticator(.create)
        let object = try authenticator.attestationObject() + [0]
        #expect(
            step {
                _ = try authenticator.relyingParty.register(
                    clientData: Array(authenticator.clientData.utf8), attestationObject: object,
                    challenge: TestAuthenticator.challenge)
            } == .attestation)
    }

    @Test func signCount_notHigher_isRefused() throws {
        var authenticator = try TestAuthenticator(.get)
        for (known, now, isTaken) in [
            (UInt32(0), UInt32(0), true), (0, 1, true), (5, 6, true), (5, 5, false), (5, 4, false),
            (5, 0, false),
            (.max, .max, false),
        ] {
            authenticator.signCount = now
            #expect(
                step { _ = try authenticator.authenticate(known: known) }
                    == (isTaken ? nil : .signCount))
            #expect(
                step { _ = try authenticator.authenticate(known: known, isBackupEligible: true) }
                    == nil)
        }
    }

    @Test func signature_ofAnotherKey_isRefused() throws {
        let authenticator = try TestAuthenticator(.get)
        let other = try TestAuthenticator(.get)
        let publicKey = try COSEKey(octets: CBORWriter.octets(other.coseKey))
        #expect(
            step {
                _ = try authenticator.relyingParty.authenticate(
                    clientData: Array(authenticator.clientData.utf8),
                    authenticatorData: authenticator.authenticatorData(withCredential: false),
                    signature: try authenticator.signature(),
                    challenge: TestAuthenticator.challenge,
                    known: RelyingParty.KnownCredential(publicKey: publicKey, signCount: 0))
            } == .signature)
    }

    @Test func attestationFormat_invalid_isRefused() throws {
        var authenticator = try TestAuthenticator(.create)
        for (format, isTaken) in [
            ("none", true), ("tpm", true), ("None", false), ("", false), ("packed ", false),
        ] {
            authenticator.statementFormat = format
            #expect(step { _ = try authenticator.register() } == (isTaken ? nil : .attestation))
        }
        let data = authenticator.authenticatorData(withCredential: true)
        let object = CBORWriter.octets(
            .members(["fmt": "none", "attStmt": .members(["alg": -7]), "authData": .bytes(data)]))
        #expect(
            step {
                _ = try authenticator.relyingParty.register(
                    clientData: Array(authenticator.clientData.utf8), attestationObject: object,
                    challenge: TestAuthenticator.challenge)
            } == .attestation)
    }

    // MARK: Keys

    @Test func coseKey_invalid_isRefused() throws {
        let (x, y) = try { ($0.x, $0.y) }(P256PrivateKey.generate().publicKey)
        let even = [UInt8](repeating: 0xC0, count: 256)
        let small = [UInt8](repeating: 0xC1, count: 128)
        let keys: [CBORValue] = [
            .members([1: 2, 3: -7, -1: 1, -2: .bytes(x)]),
            .members([1: 2, 3: -7, -1: 1, -2: .bytes(x), -3: .bool(true)]),
            .members([1: 2, 3: -7, -1: 1, -2: .bytes(y), -3: .bytes(x)]),
            .members([1: 2, 3: -7, -1: 2, -2: .bytes(x), -3: .bytes(y)]),
            .members([1: 2, 3: -35, -1: 1, -2: .bytes(x), -3: .bytes(y)]),
            .members([1: 3, 3: -7, -1: 1, -2: .bytes(x), -3: .bytes(y)]),
            .members([1: 2, 3: -7, -1: 1, -2: .bytes([0] + x), -3: .bytes(y)]),
            .members([1: 2, 3: -7, -1: 1, -2: .bytes(x), -3: .bytes(y), -4: .bytes(x)]),
            .members([1: 2, 3: -7, -1: 1, -2: .bytes(x), -3: .bytes(y), 4: .array([2])]),
            .members([1: 2, -1: 1, -2: .bytes(x), -3: .bytes(y)]),
            .members([1: 2, 3: "ES256", -1: 1, -2: .bytes(x), -3: .bytes(y)]),
            .members([1: 1, 3: -8, -1: 6, -2: .bytes(Array(x.dropLast()))]),
            .members([1: 1, 3: -8, -1: 7, -2: .bytes(x)]),
            .members([1: 3, 3: -257, -1: .bytes(small), -2: .bytes([1, 0, 1])]),
            .members([1: 3, 3: -257, -1: .bytes(even), -2: .bytes([1, 0, 1])]),
            .members([1: 3, 3: -257, -1: .bytes(even.dropLast() + [0xC1]), -2: .bytes([1])]),
            .members([
                1: 3, 3: -65535, -1: .bytes(even.dropLast() + [0xC1]), -2: .bytes([1, 0, 1]),
            ]), .array([]), .null,
        ]
        for key in keys {
            #expect(step { _ = try COSEKey(octets: CBORWriter.octets(key)) } == .publicKey)
        }
        #expect(
            step {
                _ = try COSEKey(
                    octets: CBORWriter.octets(
                        .members([1: 2, 3: -7, -1: 1, -2: .bytes(x), -3: .bytes(y)])))
            }
                == nil)
    }

    @Test func credentialID_emptyOrTooLong_isRefused() throws {
        for (length, isTaken) in [(0, false), (1, true), (1023, true), (1024, false)] {
            var authenticator = try TestAuthenticator(.create)
            authenticator.credentialID = Array(repeating: 1, count: length)
            #expect(
                step { _ = try authenticator.register() } == (isTaken ? nil : .authenticatorData))
        }
    }

    // MARK: Questions

    @Test func line_notAQuestion_isAnsweredWithError() throws {
        for line in [
            "", "[]", "{", #"{"id":1}"#, #"{"id":1,"ceremony":"create","rp_id":"a","origins":"b"}"#,
        ] {
            let answer = PasskeyQuestion.answer(Array(line.utf8))
            #expect(answer["valid"] == .bool(false))
            #expect(answer["error"]?.string?.hasPrefix("question: ") == true)
        }
        #expect(
            PasskeyQuestion.answer(Array(#"{"id":{"a":[1]}}"#.utf8))["id"]?.object?["a"]?.array?
                .count == 1)
    }
}
