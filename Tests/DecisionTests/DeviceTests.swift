// The device signals of policies, for the device that a request names.

import Accounts
import Decisions
import PasskeyTesting
import RiskPolicy
import TestSupport
import Testing
import WebAuthn

@Suite(.blocking) struct DeviceTests {
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}]
        defaults: {challenge: human_check}
        signals: {event: string, device.attested: bool?, device.assertions: int?, device.accounts: int?}
        rules:
        - {id: unattested, effect: always, events: [sign_up, sign_in], challenge: human_check, reason: UNATTESTED, condition: '!device.attested'}
        - {id: shared, effect: always, events: [sign_up, sign_in], challenge: human_check, reason: SHARED, condition: device.accounts >= 3}
        - {id: asserted, effect: always, events: [sign_up, sign_in], challenge: human_check, reason: ASSERTED, condition: device.assertions >= 2}
        """

    /// A service with that policy, and an authority whose devices juice's app accepts.
    private struct Setting {
        let bench: DecisionFixture
        let authority: TestDevice.Authority

        var team: Int64 { bench.juice.number }

        func challenge() throws -> String {
            try bench.store.devices.challenge(
                team: team, clientID: DecisionFixture.app, now: bench.clock.now
            ).text
        }

        /// The id of a device that attested.
        func attested(_ device: TestDevice) throws -> String {
            let challenge = try challenge()
            return try bench.store.devices.attest(
                team: team, clientID: DecisionFixture.app, challenge: challenge,
                keyID: device.keyID,
                attestation: device.attestation(Array(challenge.utf8)), now: bench.clock.now
            ).id
        }

        func assert(_ device: TestDevice, counter: UInt32) throws {
            let clientData = Array(#"{"challenge":"\#(try challenge())"}"#.utf8)
            _ = try bench.store.devices.assert(
                team: team, clientID: DecisionFixture.app, keyID: device.keyID,
                assertion: device.assertion(clientData, counter: counter), clientData: clientData,
                now: bench.clock.now)
        }

        func ask(
            _ sub: String, _ device: String?, app: String = DecisionFixture.app
        ) async throws -> String {
            try await bench.ask(
                DecisionRequest(event: .signIn, clientID: app, sub: sub, device: device)
            ).decision
        }
    }

    private func setting() async throws -> Setting {
        let stored = StoredPolicy(
            name: "p", version: "1",
            document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored))
        let authority = try TestDevice.Authority()
        try bench.store.attestedApps.add(
            team: "juice", clientID: DecisionFixture.app, appID: "0352187391.com.juice.app",
            environment: .production,
            root: authority.certificate, Change(actor: "uid:0", now: bench.clock.now))
        return Setting(bench: bench, authority: authority)
    }

    @Test func device_notAttestedByThisApp_isUnattested() async throws {
        let setting = try await setting()
        #expect(try await setting.ask("a", nil) == "allow", "missing where none is named")
        #expect(try await setting.ask("a", "dv_no-such-device") == "require_verification")
        let device = try setting.attested(TestDevice(setting.authority))
        #expect(try await setting.ask("a", device) == "allow")
        // Only this app knows the device.
        #expect(
            try await setting.ask("a", device, app: DecisionFixture.otherApp)
                == "require_verification")
    }

    @Test func device_usedByAccounts_countsThem() async throws {
        let setting = try await setting()
        let device = try setting.attested(TestDevice(setting.authority))
        for _ in 0..<3 {
            #expect(try await setting.ask("a", device) == "allow")
            #expect(try await setting.ask("b", device) == "allow")
        }
        #expect(try await setting.ask("c", device) == "require_verification")
        #expect(try await setting.ask("a", device) == "require_verification")
        let other = try setting.attested(TestDevice(setting.authority))
        #expect(try await setting.ask("a", other) == "allow")
        // Accounts that were not named with it for long do not count.
        setting.bench.clock.advance(DeviceLimits.account)
        #expect(try await setting.ask("a", device) == "allow")
        #expect(try setting.bench.store.devices.deleteExpired(now: setting.bench.clock.now) == 3)
        #expect(try await setting.ask("b", device) == "allow")
        #expect(try await setting.ask("c", device) == "require_verification")
    }

    /// The rows of a device are limited, even if a team names very many accounts.
    @Test func device_tooManyAccounts_stopsCounting() async throws {
        let setting = try await setting()
        let device = try setting.attested(TestDevice(setting.authority))
        let (store, now) = (setting.bench.store, setting.bench.clock.now)
        let found: Int64? = try store.database.value(
            "SELECT id FROM apps WHERE client_id = \(DecisionFixture.app)")
        let app = try #require(found)
        var last: Int64?
        for number in 0..<DeviceLimits.accounts + 5 {
            last = try store.devices.facts(
                device: device, app: app, account: "a\(number)", now: now
            ).accounts
        }
        #expect(last == DeviceLimits.accounts + 1)
        let rows: Int64? = try store.database.value("SELECT COUNT(*) FROM device_accounts")
        #expect(rows == DeviceLimits.accounts)
        // The stored accounts are still known, and make room in time.
        #expect(
            try store.devices.facts(device: device, app: app, account: "a0", now: now).accounts
                == DeviceLimits.accounts)
        let later = now + DeviceLimits.account
        #expect(
            try store.devices.facts(device: device, app: app, account: "new", now: later).accounts
                == 1)
    }

    @Test func device_assertionsMade_countsThem() async throws {
        let setting = try await setting()
        let device = try TestDevice(setting.authority)
        let id = try setting.attested(device)
        try setting.assert(device, counter: 1)
        #expect(try await setting.ask("a", id) == "allow")
        try setting.assert(device, counter: 2)
        #expect(try await setting.ask("a", id) == "require_verification")
    }

    @Test func device_storeAway_isMissing() async throws {
        let setting = try await setting()
        #expect(try await setting.ask("a", "dv_no-such-device") == "require_verification")
        try setting.bench.storeIsAway(true)
        #expect(try await setting.ask("a", "dv_no-such-device") == "allow")
    }

    @Test func device_unusedForLong_isForgotten() async throws {
        let setting = try await setting()
        let device = try setting.attested(TestDevice(setting.authority))
        setting.bench.clock.advance(DeviceLimits.device - 1)
        #expect(try setting.bench.store.devices.deleteExpired(now: setting.bench.clock.now) == 0)
        setting.bench.clock.advance(1)
        #expect(try setting.bench.store.devices.deleteExpired(now: setting.bench.clock.now) == 1)
        #expect(try await setting.ask("a", device) == "require_verification")
    }
}
