// Redirect URIs that are accepted, and those that are refused.

import Accounts
import InternetMessage
import Support
import TestSupport
import Testing

@Suite(.blocking) struct RedirectURITests {
    @Test(arguments: [
        "https://juice.example/cb", "https://juice.example",
        "https://juice.example:8443/cb?x=1&y=%20", "HTTPS://juice.example/",
        "http://127.0.0.1:3000/cb", "http://[::1]/cb", "http://localhost/cb",
        "com.example.juice:/cb", "com.example.juice://cb",
    ]) func redirectURI_valid_isAccepted(_ uri: String) throws {
        #expect(try RedirectURI.checked(uri) == uri)
    }

    @Test(arguments: [
        "", "juice.example", "/cb", "http://juice.example/cb", "http://localhost.evil.example/",
        "http://127.0.0.1@evil.example/",
        "http://127.0.0.1.evil.example/", "http://[::1].evil.example/", "http://[::1]x:80/",
        "http://localhost:80.evil.example/",
        "http://localhost:99999/", "http://[::1]:a/", "https://user@juice.example/",
        "https://juice.example/#x",
        "https://*.juice.example/",
        "https:/juice.example", "https://", "https:///cb", "javascript:alert(1)",
        "data:text/html,x", "myapp://cb",
        "https://juice.example/a b", "https://juice.example/ü",
        "https://juice.example\\@evil.example/", "http://[::1",
        "1com.example:/x", "https://juice.example:99999/", "https://juice.example:0/",
        "https://juice.example:/",
        "https://juice.example;b/", "https://ju!ce$.example/", "https://juice..example/",
        "https://juice.example/%zz",
        "https://juice.example/%4", "https://[::1/", "https://[::1]x/", "https://[juice.example]/",
        "https://juice.example/" + String(repeating: "a", count: 2_000), "com.example:",
    ]) func redirectURI_invalid_isRefused(_ uri: String) {
        expectRefusal(.invalid) { _ = try RedirectURI.checked(uri) }
    }

    @Test(arguments: [
        ("http://127.0.0.1/cb", "http://127.0.0.1:51999/cb"),
        ("http://127.0.0.1:3000/cb", "http://127.0.0.1/cb"),
        ("http://[::1]:1/cb?a=1", "http://[::1]:65535/cb?a=1"),
        ("http://127.0.0.1", "http://127.0.0.1:8080"),
        ("https://juice.example/cb", "https://juice.example/cb"),
    ]) func matches_loopbackAddressWithAnotherPort_isTheSame(registered: String, asked: String) {
        #expect(RedirectURI.matches(asked, registered: registered))
    }

    @Test(arguments: [
        ("http://127.0.0.1/cb", "http://127.0.0.1:51999/other"),
        ("http://127.0.0.1/cb", "http://[::1]:1/cb"),
        ("http://127.0.0.1/cb", "https://127.0.0.1:1/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:0/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:65536/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:1@evil.example/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:80.evil.example/cb"),
        ("http://localhost/cb", "http://localhost:51999/cb"),
        ("http://127.0.0.1/cb", "http://127.0.0.1:１/cb"),
        ("https://juice.example/cb", "https://juice.example:8443/cb"),
        ("https://juice.example/K", "https://juice.example/\u{212A}"),
        ("http://127.0.0.1/cb", "http://127.0.0.2:1/cb"),
        ("http://127.0.0.1/cb", "HTTP://127.0.0.1:1/cb"),
        ("http://127.0.0.1/cb", "http://127.1/cb"),
    ]) func matches_anythingElse_isAnother(registered: String, asked: String) {
        #expect(!RedirectURI.matches(asked, registered: registered))
    }

    @Test(arguments: Engine.all) func redirectURI_ofAnApp_isAddedAndRemoved(_ engine: Engine) throws
    {
        let test = try TestStore(engine)
        let (apps, clients) = (test.store.apps, test.store.clients)
        _ = try apps.add(
            team: "juice", clientID: "a.b", group: nil, redirectURIs: ["https://a.example/"],
            TestStore.change)
        #expect(
            try clients.addRedirect(
                team: "juice", clientID: "a.b", uri: "https://b.example/", TestStore.change))
        #expect(
            try !clients.addRedirect(
                team: "juice", clientID: "a.b", uri: "https://b.example/", TestStore.change))
        #expect(
            try clients.redirects(team: "juice") == [
                "a.b": ["https://a.example/", "https://b.example/"]
            ])
        try clients.removeRedirect(
            team: "juice", clientID: "a.b", uri: "https://a.example/", TestStore.change)
        expectRefusal(.notFound) {
            try clients.removeRedirect(
                team: "juice", clientID: "a.b", uri: "https://a.example/", TestStore.change)
        }
        expectRefusal(.notFound) {
            _ = try clients.addRedirect(
                team: "juice", clientID: "x", uri: "https://b.example/", TestStore.change)
        }
        for number in 1..<ClientRepository.maximumRedirects {
            _ = try clients.addRedirect(
                team: "juice", clientID: "a.b", uri: "https://b.example/\(number)", TestStore.change
            )
        }
        expectRefusal(.limit) {
            _ = try clients.addRedirect(
                team: "juice", clientID: "a.b", uri: "https://c.example/", TestStore.change)
        }
        // An app whose redirect URI is refused is not added.
        expectRefusal(.invalid) {
            _ = try apps.add(
                team: "juice", clientID: "c.d", group: nil, redirectURIs: ["x"], TestStore.change)
        }
        #expect(try apps.apps(team: "juice").map(\.clientID) == ["a.b"])
    }
}

@Suite(.blocking) struct NameTests {
    @Test(arguments: [
        "\u{202E}", "\u{200B}", "\u{2066}", "\u{FEFF}", "\u{7}", "\u{85}", "\u{2028}", "\u{AD}",
        "\u{E0041}", "\u{200E}", "\n",
    ])
    func name_invisibleCharacter_isRefused(_ character: String) throws {
        let test = try TestStore(.sqlite)
        let name = "Good\(character)dooG"
        #expect(!PersonText.isPlain(name))
        expectRefusal(.invalid) {
            _ = try test.store.teams.add(id: "evil", name: name, TestStore.change)
        }
        expectRefusal(.invalid) {
            let inbox = InboxAddress(try AddrSpec.typed("u9@home.example"))
            _ = try test.store.users.add(
                id: "u9", name: name, inbox: inbox, isVerified: true, TestStore.change)
        }
        for id in ["a\(character)b", "\(character)"] {
            expectRefusal(.invalid) {
                _ = try test.store.teams.add(id: id, name: "x", TestStore.change)
            }
            expectRefusal(.invalid) {
                _ = try test.store.apps.add(
                    team: "juice", clientID: id, group: nil, TestStore.change)
            }
        }
    }

    @Test(arguments: [
        "Zoë Kraftwerk", "山田 太郎", "علی\u{200C}رضا", "👩\u{200D}🚀 Space", "O'Neil & Söhne, \"Ltd.\"",
    ])
    func name_ofPeopleInAnyScript_isAccepted(_ name: String) throws {
        let test = try TestStore(.sqlite)
        #expect(try test.store.teams.add(id: "good", name: name, TestStore.change).name == name)
    }
}
