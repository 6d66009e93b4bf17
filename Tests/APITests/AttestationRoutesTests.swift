// /v1/attestations over HTTP: challenges, attestations, assertions, and the device signals of
// policies.

import API
import Accounts
import Database
import Decisions
import Foundation
import PasskeyTesting
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct AttestationRoutesTests {
    private static let appID = "0352187391.com.juice.app"

    /// Juice's app with an app id, a device of an accepted authority, and the requests of a
    /// backend.
    private struct Setting {
        let fixture: APIFixture
        let key: String
        let authority: TestDevice.Authority
        var device: TestDevice

        func post(
            _ path: String, _ body: [String: String], key: String? = nil
        ) async throws -> Response {
            let octets = try JSONEncoder().encode(body)
            return try await fixture.ask(
                .post, path, key: key ?? self.key, body: String(decoding: octets, as: UTF8.self))
        }

        func challenge() async throws -> String {
            try #require(
                try await post("/v1/attestations/challenge", ["client_id": "com.juice.app"]).json[
                    "challenge"
                ].string)
        }

        /// - Parameter signed: the data that the device attests; the challenge if nil.
        func attest(
            _ challenge: String, signed: String? = nil, key: String? = nil
        ) async throws -> Response {
            try await post(
                "/v1/attestations",
                [
                    "client_id": "com.juice.app", "challenge": challenge,
                    "key_id": Data(device.keyID).base64EncodedString(),
                    "attestation": Data(try device.attestation(Array((signed ?? challenge).utf8)))
                        .base64EncodedString(),
                ], key: key)
        }

        func assert(
            _ challenge: String, counter: UInt32, signed: String? = nil
        ) async throws -> Response {
            let clientData = Array(#"{"challenge":"\#(challenge)","action":"sign_up"}"#.utf8)
            return try await post(
                "/v1/attestations",
                [
                    "client_id": "com.juice.app",
                    "key_id": Data(device.keyID).base64EncodedString(),
                    "assertion": Data(
                        try device.assertion(
                            signed.map { Array($0.utf8) } ?? clientData, counter: counter)
                    )
                    .base64EncodedString(), "client_data": Data(clientData).base64EncodedString(),
                ])
        }
    }

    private func setting(registered: Bool = true) throws -> Setting {
        let fixture = try APIFixture { [AttestationRoutes($0.parts)] }
        _ = try fixture.store.apps.add(
            team: "juice", clientID: "com.juice.app", group: nil, APIFixture.change)
        let authority = try TestDevice.Authority()
        if registered {
            try fixture.store.attestedApps.add(
                team: "juice", clientID: "com.juice.app", appID: Self.appID,
                environment: .production,
                root: authority.certificate, APIFixture.change)
        }
        return try Setting(
            fixture: fixture, key: fixture.key("juice"), authority: authority,
            device: TestDevice(authority))
    }

    @Test func attestation_thenAssertions_keepsDeviceAndCounts() async throws {
        let setting = try setting()
        let attested = try await setting.attest(setting.challenge())
        #expect(attested.status == 200, "\(attested.text)")
        let device = try #require(attested.json["device"].string)
        #expect(device.hasPrefix("dv_") && device.utf8.count == 29)
        #expect(attested.json["app_id"].string == Self.appID)
        #expect(attested.json["environment"].string == "production")
        #expect(attested.json["assertions"].number?.integer == 0)
        for counter in [1, 5] as [UInt32] {
            let asserted = try await setting.assert(setting.challenge(), counter: counter)
            #expect(asserted.status == 200, "\(asserted.text)")
            #expect(asserted.json["device"].string == device)
        }
        let counted = try await setting.assert(setting.challenge(), counter: 6)
        #expect(counted.json["assertions"].number?.integer == 3)
        // The answer may have been lost: attesting again changes nothing.
        let again = try await setting.attest(setting.challenge())
        #expect(again.status == 200)
        #expect(again.json["assertions"].number?.integer == 3)
    }

    @Test func assertion_counterNotHigher_isRefused() async throws {
        let setting = try setting()
        #expect(try await setting.attest(setting.challenge()).status == 200)
        #expect(try await setting.assert(setting.challenge(), counter: 7).status == 200)
        for counter in [7, 6, 0] as [UInt32] {
            let refused = try await setting.assert(setting.challenge(), counter: counter)
            #expect(refused.status == 409)
            #expect(refused.json["detail"].string?.contains("counter") == true)
        }
        #expect(try await setting.assert(setting.challenge(), counter: 8).status == 200)
    }

    @Test func challenge_usedTwiceExpiredOrOfOtherApp_isRefused() async throws {
        let setting = try setting()
        let challenge = try await setting.challenge()
        #expect(try await setting.attest(challenge).status == 200)
        #expect(try await setting.attest(challenge).status == 409, "the same attestation again")
        var other = setting
        other.device = try TestDevice(setting.authority)
        #expect(try await other.attest(challenge).status == 409)
        let asserted = try await setting.challenge()
        #expect(try await setting.assert(asserted, counter: 1).status == 200)
        #expect(try await setting.assert(asserted, counter: 2).status == 409)
        let old = try await setting.challenge()
        setting.fixture.wait(seconds: Int(DeviceLimits.challenge))
        #expect(try await other.attest(old).status == 422)
        _ = try setting.fixture.store.apps.add(
            team: "juice", clientID: "com.juice.other", group: nil, APIFixture.change)
        let foreign = try await setting.post(
            "/v1/attestations/challenge", ["client_id": "com.juice.other"])
        #expect(
            try await other.attest(try #require(foreign.json["challenge"].string)).status == 422)
        #expect(try await other.attest("AAAA").status == 422)
    }

    @Test func attestation_notOfTheAppsDevice_isRefused() async throws {
        let setting = try setting()
        func refused(_ change: (inout TestDevice) throws -> Void, _ check: String) async throws {
            var other = setting
            try change(&other.device)
            let answer = try await other.attest(setting.challenge())
            #expect(
                answer.status == 422 && answer.json["detail"].string?.contains(check) == true,
                "\(answer.text)")
        }
        try await refused({ $0.appID = "0352187391.com.soda.app" }, "app-id")
        try await refused({ $0.aaguid = Array("appattestdevelop".utf8) }, "environment")
        try await refused({ $0 = try TestDevice(TestDevice.Authority()) }, "certificate")
        let other = try await setting.attest(setting.challenge(), signed: "something else")
        #expect(other.status == 422 && other.json["detail"].string?.contains("nonce") == true)
        // Not attested.
        #expect(try await setting.assert(setting.challenge(), counter: 1).status == 404)
        #expect(try await setting.attest(setting.challenge()).status == 200)
        let signed = try await setting.assert(
            setting.challenge(), counter: 1, signed: "something else")
        #expect(signed.status == 422 && signed.json["detail"].string?.contains("signature") == true)
    }

    @Test func attestation_otherTeamOrNoAppID_isRefused() async throws {
        let setting = try setting()
        let other = try setting.fixture.key("soda")
        #expect(
            try await setting.post(
                "/v1/attestations/challenge", ["client_id": "com.juice.app"], key: other
            ).status == 404)
        #expect(try await setting.attest(setting.challenge(), key: other).status == 404)
        let reading = try setting.fixture.key("juice", [.decisionsRead])
        #expect(
            try await setting.post(
                "/v1/attestations/challenge", ["client_id": "com.juice.app"], key: reading
            ).status == 403)
        let bare = try self.setting(registered: false)
        let refused = try await bare.attest(bare.challenge())
        #expect(
            refused.status == 409
                && refused.json["detail"].string?.contains("postern app attestation add") == true)
    }

    @Test func attestation_appIDRemoved_forgetsDevice() async throws {
        let setting = try setting()
        #expect(try await setting.attest(setting.challenge()).status == 200)
        try setting.fixture.store.attestedApps.remove(
            team: "juice", clientID: "com.juice.app", appID: Self.appID, environment: .production,
            APIFixture.change)
        #expect(try await setting.assert(setting.challenge(), counter: 1).status == 404)
        #expect(try await setting.attest(setting.challenge()).status == 409)
        try setting.fixture.store.attestedApps.add(
            team: "juice", clientID: "com.juice.app", appID: Self.appID, environment: .production,
            root: setting.authority.certificate,
            Change(actor: "uid:0", now: setting.fixture.now + 1))
        setting.fixture.now += 1
        #expect(try await setting.assert(setting.challenge(), counter: 1).status == 404)
        #expect(try await setting.attest(setting.challenge()).status == 200)
        #expect(try await setting.assert(setting.challenge(), counter: 1).status == 200)
    }

    /// A thief with the key of a trial root must not keep devices that Apple attested.
    @Test func attestation_rootReplaced_forgetsDevice() async throws {
        let setting = try setting()
        #expect(try await setting.attest(setting.challenge()).status == 200)
        func add(_ root: [UInt8]) throws {
            setting.fixture.now += 1
            try setting.fixture.store.attestedApps.add(
                team: "juice", clientID: "com.juice.app", appID: Self.appID,
                environment: .production, root: root,
                Change(actor: "uid:0", now: setting.fixture.now))
        }
        // The same one changes nothing.
        try add(setting.authority.certificate)
        #expect(try await setting.assert(setting.challenge(), counter: 1).status == 200)
        try add(TestDevice.Authority().certificate)
        #expect(try await setting.assert(setting.challenge(), counter: 2).status == 404)
        #expect(try await setting.attest(setting.challenge()).status == 422)
    }

    @Test(arguments: [
        [:], ["client_id": "com.juice.app"],
        ["client_id": "com.juice.app", "key_id": "!", "attestation": "AA", "challenge": "AA"],
        ["client_id": "com.juice.app", "key_id": "AAAA", "attestation": "AA", "challenge": "AA"],
        ["client_id": "", "extra": "1"],
    ])
    func attestation_invalidBody_isRefused(_ body: [String: String]) async throws {
        let answer = try await setting().post("/v1/attestations", body)
        #expect(answer.status == 422)
        #expect(answer.problem == "invalid")
    }
}
