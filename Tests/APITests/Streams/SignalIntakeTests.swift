// SETs of other transmitters: accepted once, refused by name, and only ever signals.

import Accounts
import Database
import Decisions
import Foundation
import InternetMessage
import SharedSignals
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct SignalIntakeTests {
    private typealias Fixture = NotificationRoutesTests.Fixture

    private static func claims(
        _ fixture: Fixture, _ uri: String, _ payload: JSONObject = [:], jti: String,
        subject: SubjectIdentifier? = nil
    ) -> JSONObject {
        SecurityEventToken(
            issuer: NotificationRoutesTests.iss, audience: "com.juice", id: jti,
            issuedAt: fixture.fixture.now, transaction: nil,
            happenedAt: nil,
            event: SecurityEvent(
                uri,
                of: subject
                    ?? .issuerSubject(issuer: NotificationRoutesTests.iss, subject: "001.abc"),
                payload)
        ).claims
    }

    private static func push(
        _ fixture: Fixture, _ claims: JSONObject, by key: IdentitySigningKey? = nil,
        type: String? = SecurityEventToken.type,
        to issuer: String = "apple"
    ) async throws -> Response {
        try await fixture.fixture.ask(
            .post, "/v1/notifications/\(issuer)",
            body: (key ?? fixture.key).sign(claims, type: type),
            headers: ["Content-Type": SecurityEventToken.mediaType])
    }

    private static func history(_ fixture: Fixture) throws -> GrantHistory {
        let client = try #require(try fixture.fixture.store.clients.client("com.juice"))
        return try #require(
            try fixture.fixture.store.history.history(
                team: client.teamNumber, group: client.groupNumber,
                subject: .external(issuer: NotificationRoutesTests.iss, subject: "001.abc"),
                now: fixture.fixture.now))
    }

    @Test func riskEvent_everyKind_isCountedOnce() async throws {
        let fixture = try await Fixture()
        #expect(
            try Self.history(fixture).riskEvents30d == 0
                && Self.history(fixture).lastRiskEvent == nil)
        let events: [(String, JSONObject, String)] = [
            (SecurityEventURI.sessionRevoked, [:], "session-revoked"),
            (SecurityEventURI.sessionsRevoked, [:], "session-revoked"),
            (
                SecurityEventURI.credentialCompromise, ["credential_type": "password"],
                "credential-compromise"
            ),
            (
                SecurityEventURI.credentialChange,
                ["change_type": "revoke", "credential_type": "password"], "credential-change"
            ),
            (
                SecurityEventURI.deviceComplianceChange,
                ["current_status": "not-compliant", "previous_status": "compliant"],
                "device-compliance-change"
            ),
            (SecurityEventURI.accountDisabled, ["reason": "hijacking"], "account-disabled"),
        ]
        for (number, (uri, payload, kind)) in events.enumerated() {
            for _ in 0..<2 {
                let taken = try await Self.push(
                    fixture, Self.claims(fixture, uri, payload, jti: "j\(number)"))
                #expect(taken.status == 202 && taken.text.isEmpty, "\(uri): \(taken.text)")
            }
            #expect(try Self.history(fixture).riskEvents30d == Int64(number + 1))
            #expect(try Self.history(fixture).lastRiskEvent == kind)
        }
        #expect(try fixture.state() == .authorized)
        #expect(try fixture.fixture.store.outbox.events().isEmpty)
        // After a month it is deleted.
        fixture.fixture.now += 31 * 86_400
        #expect(
            try Self.history(fixture).riskEvents30d == 0
                && Self.history(fixture).lastRiskEvent == nil)
    }

    @Test func riskEvent_harmlessOrUnknownSubject_isNotCounted() async throws {
        let fixture = try await Fixture()
        let revoked = SecurityEventURI.sessionRevoked
        let harmless: [JSONObject] = [
            Self.claims(
                fixture, SecurityEventURI.verification, ["state": "x"], jti: "1",
                subject: .opaque("stream")),
            Self.claims(
                fixture, SecurityEventURI.credentialChange, ["change_type": "create"], jti: "2"),
            Self.claims(
                fixture, SecurityEventURI.deviceComplianceChange, ["current_status": "compliant"],
                jti: "3"),
            Self.claims(fixture, "urn:example:new", jti: "4"),
            Self.claims(
                fixture, revoked, jti: "5",
                subject: .issuerSubject(issuer: "https://other.example", subject: "001.abc")),
            Self.claims(
                fixture, revoked, jti: "6",
                subject: .issuerSubject(issuer: NotificationRoutesTests.iss, subject: "unknown")),
            Self.claims(fixture, revoked, jti: "7", subject: .email("x@home.example")),
            Self.claims(fixture, revoked, jti: "8a", subject: .opaque("001.abc")),
            Self.claims(
                fixture, revoked, jti: "8b",
                subject: try SubjectIdentifier([
                    "format": "account", "uri": "acct:001.abc@idp.example",
                ])),
            Self.claims(
                fixture, revoked, jti: "8c",
                subject: try SubjectIdentifier([
                    "format": "complex",
                    "session": .object(SubjectIdentifier.opaque("001.abc").json),
                    "device": .object(
                        SubjectIdentifier.issuerSubject(
                            issuer: NotificationRoutesTests.iss, subject: "001.abc"
                        ).json),
                ])),
            // Credentials that their user adds, renews or deletes.
            Self.claims(
                fixture, SecurityEventURI.credentialChange, ["change_type": "update"], jti: "8d"),
            Self.claims(
                fixture, SecurityEventURI.credentialChange, ["change_type": "delete"], jti: "8e"),
            Self.claims(
                fixture, SecurityEventURI.credentialChange,
                ["change_type": "delete", "initiating_entity": "user"], jti: "8f"),
        ]
        for claims in harmless { #expect(try await Self.push(fixture, claims).status == 202) }
        #expect(try Self.history(fixture).riskEvents30d == 0)
        // Within a complex subject, and for all apps at once, it counts.
        let complex = try SubjectIdentifier([
            "format": "complex",
            "user": .object(
                SubjectIdentifier.issuerSubject(
                    issuer: NotificationRoutesTests.iss, subject: "001.abc"
                ).json),
        ])
        var claims = Self.claims(fixture, revoked, jti: "8", subject: complex)
        claims["aud"] = .array(["https://id.example"])
        #expect(try await Self.push(fixture, claims).status == 202)
        #expect(try Self.history(fixture).riskEvents30d == 1)
    }

    @Test func riskEvent_credentialDeletedByOthers_isCounted() async throws {
        let fixture = try await Fixture()
        for (number, entity) in ["admin", "policy", "system"].enumerated() {
            let payload: JSONObject = [
                "change_type": "delete", "initiating_entity": .string(entity),
            ]
            let claims = Self.claims(
                fixture, SecurityEventURI.credentialChange, payload, jti: "\(number)")
            #expect(try await Self.push(fixture, claims).status == 202)
            #expect(try Self.history(fixture).riskEvents30d == Int64(number + 1))
        }
        #expect(try Self.history(fixture).lastRiskEvent == "credential-change")
    }

    /// An address names accounts of this issuer only: by their relay address, or by a confirmed
    /// inbox of their user.
    @Test func riskEvent_emailSubject_findsIssuersAccountsOnly() async throws {
        let fixture = try await Fixture()
        let store = fixture.fixture.store
        _ = try fixture.fixture.address(user: "anna", team: "juice", inbox: "anna@home.example")
        let own = try #require(try store.addresses.addresses(team: "juice", user: "anna").first)
        _ = try store.inboxes.add(
            user: "anna", InboxAddress(AddrSpec(localPart: "anna", domain: "second.example")),
            isVerified: false,
            isReplyOnly: false, APIFixture.change)
        func push(_ text: String, _ jti: String) async throws {
            let complex = try SubjectIdentifier([
                "format": "complex", "user": .object(SubjectIdentifier.email(text).json),
            ])
            let claims = Self.claims(
                fixture, SecurityEventURI.sessionRevoked, jti: jti, subject: complex)
            #expect(try await Self.push(fixture, claims).status == 202)
        }
        // The account is anna's own, and not one of the issuer's: nothing is recorded.
        try await push("anna@home.example", "1")
        try await push(own.address.wireForm, "2")
        #expect(try Self.history(fixture).riskEvents30d == 0)
        // The state of an account that began with the issuer and got a relay address of ours.
        try store.database.write(.durable) { connection throws(StoreFailure) in
            try connection.run("UPDATE external_identities SET account_id = \(own.account.number)")
        }
        func count() throws -> Int {
            try store.counters.count(
                account: own.account.number, kind: .riskEvents, day: Day.number(fixture.fixture.now)
            )
        }
        try await push("Anna@Home.example", "3")
        #expect(try count() == 1)
        try await push(own.address.wireForm.uppercased(), "4")
        #expect(try count() == 2)
        for (number, text) in [
            "anna@second.example", "other@home.example", "x@relay.example", "no address",
        ].enumerated() {
            try await push(text, "5\(number)")
        }
        #expect(try count() == 2)
        for line in fixture.fixture.log.lines { #expect(!line.contains("home.example"), "\(line)") }
    }

    @Test func securityEventToken_invalid_isRefusedWithErrCode() async throws {
        let fixture = try await Fixture()
        let (stranger, _) = try IdentitySigningKey.generate()
        let good = Self.claims(fixture, SecurityEventURI.sessionRevoked, jti: "1")
        func changed(_ name: String, _ value: JSONValue?) -> JSONObject {
            var claims = good
            claims[name] = value
            return claims
        }
        func expect(_ code: String, _ answer: Response, _ line: Int = #line) {
            #expect(
                answer.status == 400 && answer.json["err"].string == code,
                "line \(line): \(answer.status) \(answer.text)")
            #expect(
                answer.headers[.contentType] == "application/json"
                    && answer.headers[.contentLanguage] == "en")
            #expect(answer.json["description"].string?.isEmpty == false)
        }
        expect("invalid_key", try await Self.push(fixture, good, by: stranger))
        expect(
            "invalid_issuer", try await Self.push(fixture, changed("iss", "https://other.example")))
        expect("invalid_audience", try await Self.push(fixture, changed("aud", "com.unknown")))
        expect("invalid_audience", try await Self.push(fixture, changed("aud", nil)))
        expect("invalid_request", try await Self.push(fixture, good, type: "JWT"))
        expect("invalid_request", try await Self.push(fixture, good, type: nil))
        expect("invalid_request", try await Self.push(fixture, changed("sub", "001.abc")))
        expect(
            "invalid_request",
            try await Self.push(fixture, changed("exp", .integer(fixture.fixture.now + 60))))
        expect("invalid_request", try await Self.push(fixture, changed("sub_id", nil)))
        expect("invalid_request", try await Self.push(fixture, changed("events", "{}")))
        expect(
            "invalid_request",
            try await Self.push(fixture, changed("iat", .integer(fixture.fixture.now - 8 * 86_400)))
        )
        expect(
            "invalid_request",
            try await Self.push(fixture, changed("iat", .integer(fixture.fixture.now + 3_600))))
        for body in ["", "x", "a.b.c", "{}"] {
            expect(
                "invalid_request",
                try await fixture.fixture.ask(
                    .post, "/v1/notifications/apple", body: body,
                    headers: ["Content-Type": SecurityEventToken.mediaType]))
        }
        #expect(try await Self.push(fixture, good, to: "nobody").status == 404)
        #expect(try Self.history(fixture).riskEvents30d == 0)
    }
}
