// Outbound sources: which may be registered, and how many.

import Accounts
import TestSupport
import Testing

@Suite(.blocking) struct SourceRepositoryTests {
    @Test(
        arguments: [
            "relay.example", "sub.relay.example", "a@relay.example", "gmail.com", "GoogleMail.com",
            "yahoo.co.uk", "com", "co.uk",
            "example..com", "-a.example", "a b.example", "user@", "@example.com", "[192.0.2.1]",
            "192.0.2.1", "",
            "a.b.c.d.e.f.g.h.i.j.example",
        ])
    func source_invalidOrSharedDomain_isRefused(_ text: String) throws {
        let test = try TestStore(.sqlite)
        expectRefusal(.invalid) {
            _ = try test.store.sources.checked(text, envelopeDomain: nil, now: 0)
        }
    }

    @Test func source_invalidEnvelopeDomain_isRefused() throws {
        let test = try TestStore(.sqlite)
        expectRefusal(.invalid) {
            _ = try test.store.sources.checked("a.example", envelopeDomain: "gmail.com", now: 0)
        }
        expectRefusal(.invalid) {
            _ = try test.store.sources.checked("a.example", envelopeDomain: "relay.example", now: 0)
        }
    }

    @Test func source_domainOrAddress_isNormalized() throws {
        let sources = try TestStore(.sqlite).store.sources
        #expect(
            try sources.checked("App.Example.", envelopeDomain: nil, now: 0).value == "app.example")
        #expect(
            try sources.checked("Bücher.Example", envelopeDomain: nil, now: 0).value
                == "xn--bcher-kva.example")
        #expect(
            try sources.checked("faß.example", envelopeDomain: nil, now: 0).value
                == "xn--fa-hia.example")
        #expect(
            try sources.checked("例え.テスト", envelopeDomain: nil, now: 0).value
                == "xn--r8jz45g.xn--zckzah")
        #expect(
            try sources.checked("Me@Gmail.com", envelopeDomain: "B.Example", now: 0).envelopeDomain
                == "b.example")
        #expect(
            try sources.checked("Me@Gmail.com", envelopeDomain: nil, now: 0).value == "me@gmail.com"
        )
    }

    @Test(arguments: Engine.all) func source_overHundred_isRefused(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let sources = test.store.sources
        for number in 0..<100 {
            try sources.add(
                team: "juice", sources.checked("d\(number).example", envelopeDomain: nil, now: 0),
                TestStore.change)
        }
        expectRefusal(.limit) {
            try sources.add(
                team: "juice", sources.checked("more.example", envelopeDomain: nil, now: 0),
                TestStore.change)
        }
        expectRefusal(.exists) {
            try sources.add(
                team: "juice", sources.checked("d1.example", envelopeDomain: nil, now: 0),
                TestStore.change)
        }
        #expect(try sources.sources(team: "juice").count == 100)
        try sources.remove(team: "juice", "D1.example", envelopeDomain: nil, TestStore.change)
        try sources.add(
            team: "juice", sources.checked("more.example", envelopeDomain: nil, now: 0),
            TestStore.change)
        expectRefusal(.notFound) {
            try sources.remove(team: "juice", "d1.example", envelopeDomain: nil, TestStore.change)
        }
    }
}
