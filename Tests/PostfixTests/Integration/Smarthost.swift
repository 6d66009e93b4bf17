// Another server that accepts all mail of this one: the sink, through relayhost, as in
// docs/INTEGRATION.md.

import PostfixHarness
import RelayHarness

struct Smarthost: RelayNeighbour {
    let variables: [String: String] = [:]
    let log = ""

    func start(beside fixture: RelayFixture) throws {
        let place = "[127.0.0.1]:\(fixture.sink.port)"
        var settings = try Recipe.postfix(
            "/etc/postfix/main.cf, with a smarthost", beside: fixture,
            ["[smtp.provider.example]:587": place])
        // The sink has neither a certificate nor accounts.
        for name in settings.keys where name.hasPrefix("smtp_tls") || name.hasPrefix("smtp_sasl") {
            settings[name] = nil
        }
        // Otherwise the fixture itself sends everything to the sink.
        settings["transport_maps"] = ""
        try fixture.postfix.set(settings)
    }

    func stop() {}
}
