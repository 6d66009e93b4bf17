// POST /v1/notifications/{issuer}: events of other issuers, through every check.

import API
import Accounts
import Database
import Foundation
import Logging
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct NotificationRoutesTests {
    static let iss = "https://issuer.example"

    /// An issuer with a key in a file, and an account of its with team juice.
    final class Fixture: Sendable {
        let fixture: APIFixture
        let key: IdentitySigningKey
        let sub = "a234567a234567a234567a234567a234"

        init() async throws {
            let (key, _) = try IdentitySigningKey.generate()
            self.key = key
            fixture = try APIFixture { fixture in
                let now: @Sendable () -> Int64 = { [weak fixture] in fixture?.now ?? 0 }
                let cache = KeySetCache(
                    fetcher: InlineFetcher(), storage: nil, now: now, logger: fixture.log.logger)
                return [
                    NotificationRoutes(
                        fixture.parts,
                        issuers: StoredIssuers(
                            fixture.store.issuers, now: now, logger: fixture.log.logger),
                        keys: cache,
                        signals: SignalIntake(
                            fixture.store, keys: cache, ownIssuer: "https://id.example", now: now,
                            logger: fixture.log.logger))
                ]
            }
            let document = JSONObject(dictionaryLiteral: ("keys", .array([.object(key.publicJWK)])))
            let text = JSONValue.object(document).text
            try fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                try connection.run(
                    """
                    INSERT INTO issuers (name, iss, source, location, allows_http, algorithms, nonce_form, leeway, created_at)
                    VALUES ('apple', ?1, 'inline', ?2, 0, 'ES256', 'raw', 60, 1)
                    """, [.text(NotificationRoutesTests.iss), .text(text)])
            }
            _ = try fixture.store.apps.add(
                team: "juice", clientID: "com.juice", group: nil, APIFixture.change)
            let sub = sub
            try fixture.store.database.write(.durable) { connection throws(StoreFailure) in
                let account = try connection.inserted(
                    "INSERT INTO accounts (team_id, sub, created_at) VALUES (1, \(sub), 1) RETURNING id"
                )
                try connection.run(
                    """
                    INSERT INTO external_identities (team_id, issuer, subject, account_id, created_at)
                    VALUES (1, \(NotificationRoutesTests.iss), '001.abc', \(account), 1)
                    """)
                try connection.run(
                    """
                    INSERT INTO grants (account_id, group_id, state, first_authorized_at, last_authorized_at)
                    SELECT ?1, group_id, 'authorized', ?2, ?2 FROM apps WHERE client_id = 'com.juice'
                    """, [.integer(account), .integer(APIFixture.start - 60)])
            }
        }

        func post(
            _ type: String, jti: String, iss: String = iss, aud: String = "com.juice",
            issuedAt: Int64? = nil,
            by signer: IdentitySigningKey? = nil,
            to issuer: String = "apple"
        ) async throws -> Response {
            let event: JSONObject = [
                "type": .string(type), "sub": "001.abc", "email": "x@privaterelay.example",
                "is_private_email": "true",
                "event_time": .integer(fixture.now * 1000),
            ]
            let claims: JSONObject = [
                "iss": .string(iss), "aud": .string(aud), "iat": .integer(issuedAt ?? fixture.now),
                "jti": .string(jti),
                "events": .string(JSONValue.object(event).text),
            ]
            let body: JSONObject = ["payload": .string(try (signer ?? key).sign(claims))]
            return try await fixture.ask(
                .post, "/v1/notifications/\(issuer)", body: JSONValue.object(body).text)
        }

        func state() throws -> CredentialState {
            try fixture.store.grants.credentialState(team: "juice", sub: sub)
        }
    }

    private struct InlineFetcher: KeySetFetcher {
        func fetch(_ source: KeySource) async throws(KeySetFetchError) -> FetchedKeySet {
            guard case .inline(let text) = source else { throw KeySetFetchError("not inline") }
            return FetchedKeySet(document: Array(text.utf8), maxAge: nil)
        }
    }

    @Test func notification_repeated_isTakenOnce() async throws {
        let world = try await Fixture()
        for _ in 0..<3 { #expect(try await world.post("consent-revoked", jti: "1").status == 200) }
        #expect(try world.state() == .revoked)
        #expect(world.fixture.log.lines.count { $0.contains("outcome=taken") } == 1)
        #expect(world.fixture.log.lines.count { $0.contains("outcome=repeated") } == 2)
        for line in world.fixture.log.lines { #expect(!line.contains("privaterelay"), "\(line)") }
    }

    @Test func notification_eitherDeletionName_deletesAccount() async throws {
        for type in ["account-delete", "account-deleted"] {
            let world = try await Fixture()
            #expect(try await world.post("something-new", jti: "1").status == 200)
            #expect(try world.state() == .authorized)
            #expect(try await world.post(type, jti: "2").status == 200)
            #expect(try world.state() == .notFound)
        }
    }

    @Test func notification_wrongSignerIssuerOrAudience_isRefused() async throws {
        let world = try await Fixture()
        let (stranger, _) = try IdentitySigningKey.generate()
        let answers = [
            try await world.post("account-delete", jti: "1", by: stranger),
            try await world.post("account-delete", jti: "2", iss: "https://other.example"),
            try await world.post("account-delete", jti: "3", aud: "com.unknown"),
            try await world.post(
                "account-delete", jti: "4", issuedAt: world.fixture.now - 8 * 86_400),
            try await world.post("account-delete", jti: "5", issuedAt: world.fixture.now + 3600),
            try await world.fixture.ask(.post, "/v1/notifications/apple", body: "{}"),
            try await world.fixture.ask(
                .post, "/v1/notifications/apple", body: #"{"payload":"a.b.c"}"#),
        ]
        for (number, answer) in answers.enumerated() {
            #expect(answer.status == 400, "\(number): \(answer.text)")
            #expect(answer.problem == "event-refused")
        }
        #expect(try world.state() == .authorized)
        #expect(try await world.post("account-delete", jti: "6", to: "nobody").status == 404)
        #expect(
            try await world.fixture.ask(
                .post, "/v1/notifications/apple", body: String(repeating: " ", count: 200_000)
            ).status
                == 413)
        #expect(
            try await world.fixture.ask(
                .post, "/v1/notifications/apple", body: "{}",
                headers: ["Content-Type": "text/plain"]
            )
            .status
                == 415)
    }
}
