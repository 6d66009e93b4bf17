// Seeds: the accepted form, and errors that name their line.

import Rehearsal
import TestSupport
import Testing

@Suite(.blocking) struct SeedTests {
    @Test func seed_builtIn_isRead() throws {
        let seed = try AppleSeed.standard()
        #expect(
            seed.issuer == "https://appleid.apple.com"
                && seed.clients.map(\.id) == ["com.example.app"])
        #expect(seed.users.map(\.realUserStatus) == [2, 1, 0])
        #expect(seed.teams[0].keys[0].privatePEM?.contains("BEGIN PRIVATE KEY") == true)
        // Tests may contain these.
        #expect(
            AppleState.subject("anna", team: "SANDBOXTEA")
                == "000533.e7287eeb2e56b833c9ae17e6c0ffc6aa.0209")
        #expect(
            AppleState.subject("anna", team: "SANDBOXTEA")
                != AppleState.subject("anna", team: "OTHERTEAMA"))
    }

    private static func text(
        client: String = "", user: String = "", key: String = "", top: String = ""
    ) -> String {
        """
        teams:
          - id: T
            keys: [{id: K\(key)}]
            clients:
              - id: c
                \(client)
        users:
          - id: u
            email: u@example.com
            \(user)
        \(top)
        """
    }

    @Test(arguments: [
        ("", "seed.yaml:1: the seed is empty"), ("teams: [", "seed.yaml:"),
        ("users: []", "seed.yaml:1: teams: it is missing"),
        (
            text(client: "redirect_uri: x"),
            "seed.yaml:6: teams.0.clients.0.redirect_uri: there is no such member"
        ),
        (
            text(client: "redirect_uris: [http://app.example/]"),
            "seed.yaml:6: teams.0.clients.0.redirect_uris.0: must be an https address, or one of this machine"
        ),
        (
            text(client: "notifications: https://app.example/"),
            "seed.yaml:6: teams.0.clients.0.notifications: must be an address of this machine: http://127.0.0.1:PORT/PATH"
        ),
        (
            text(client: "dialect: new"),
            "seed.yaml:6: teams.0.clients.0.dialect: must be one of wire, documentation"
        ),
        (
            text(user: "real_user_status: 3"),
            "seed.yaml:10: users.0.real_user_status: must be 0, 1 or 2"
        ),
        (
            text(user: "hide_my_email: 1"),
            "seed.yaml:10: users.0.hide_my_email: must be true or false, not a number"
        ),
        (text(key: ", public_key: x"), "seed.yaml:3: teams.0.keys.0.public_key: not a public key"),
        (
            text(key: ", private_key: x"),
            "seed.yaml:3: teams.0.keys.0.private_key: is not a private key"
        ),
        (text(top: "issuer: apple"), "seed.yaml:11: issuer: must be an https address"),
        (text(top: "id_token_lifetime: 0"), "seed.yaml:11: id_token_lifetime: must be 1 to"),
        (text(top: "booleans: yes"), "seed.yaml:11: booleans: must be one of boolean, string"),
        (text() + "\nusers: []", "seed.yaml:"),
        (
            text().replacing("- id: u\n", with: "- id: u\n    email: a@b\n  - id: u\n"),
            "seed.yaml:8: users: there are two of the user u"
        ),
    ])
    func seed_invalid_isRefusedWithLine(_ text: String, _ message: String) {
        do {
            _ = try AppleSeed.read(text, name: "seed.yaml")
            Issue.record("it was read")
        } catch {
            #expect("\(error)".hasPrefix(message), "\(error)")
        }
    }

    @Test(arguments: [
        ("http://127.0.0.1:8000/a", true), ("https://localhost/", true), ("http://[::1]:1/", true),
        ("http://127.9.9.9", true),
        ("http://127.0.0.1.example/", false), ("http://localhost.example/", false),
        ("http://127.1/", false),
        ("http://u@127.0.0.1/", false), ("http://127.0.0.1\\@a.example/", false),
        ("ftp://127.0.0.1/", false),
        ("http://0.0.0.0/", false), ("http://[::2]/", false), ("http://127.0.0.256/", false),
        ("127.0.0.1", false),
    ])
    func loopbackAddress_otherHost_isNotLoopback(_ address: String, _ isLoopback: Bool) {
        #expect(LoopbackAddress.isLoopback(address) == isLoopback)
    }
}
