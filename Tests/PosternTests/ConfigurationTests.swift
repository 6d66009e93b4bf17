// Configuration: layers, unknown keys with their places, values out of range.

import Accounts
import Foundation
import InternetMessage
import PosternConfiguration
import TestSupport
import Testing

@Suite(.blocking) struct ConfigurationTests {
    private let minimal = "relay_domains: [relay.example]\n"

    private func resolve(
        _ text: String, environment: [String: String] = [:], flags: [String] = [],
        machineName: String = "host"
    ) throws -> ResolvedConfiguration {
        try ResolvedConfiguration(
            file: ConfigurationFile(text: text, name: "/etc/postern/postern.yaml"),
            path: "/etc/postern/postern.yaml",
            environment: environment, flags: flags, machineName: machineName)
    }

    private func origin(_ resolved: ResolvedConfiguration, _ key: String) -> String? {
        resolved.entries.first { $0.key.rawValue == key }?.origin.text
    }

    private func error(
        _ text: String, environment: [String: String] = [:], flags: [String] = []
    ) -> ConfigurationError? {
        #expect(throws: ConfigurationError.self) {
            _ = try Configuration(resolve(text, environment: environment, flags: flags))
        }
    }

    @Test func file_minimal_usesDefaults() throws {
        let configuration = try Configuration(resolve(minimal))
        #expect(configuration.relayDomains == ["relay.example"])
        #expect(configuration.database.path == "/etc/postern/postern.db")
        #expect(configuration.keyFilePath == "/etc/postern/postern.keys")
        #expect(configuration.hostname == "relay.example")
        #expect(configuration.authservID == "relay.example")
        #expect(configuration.milter.socket == "inet:8891@127.0.0.1")
        #expect(configuration.milter.socketMode == 0o660)
        #expect(
            configuration.limits.messagesPerDay
                == Limit(max: 100, onExceed: .tryLater(code: 452, enhanced: "4.7.1")))
        #expect(configuration.limits.messageSize.max == 40_000_000)
        #expect(
            configuration.limits.headerField
                == Limit(max: 59_900, onExceed: .refuse(code: 550, enhanced: "5.6.0")))
        #expect(configuration.limits.hops.onExceed.text == "554 5.4.6")
        #expect(configuration.limits.replyMemory.max == 256_000_000)
        #expect(configuration.returnPathDays == 14)
        #expect(configuration.operatorAddress == nil)
        #expect(configuration.providers == .standard)
        #expect(configuration.log.format == .text)
    }

    /// A browser's `Origin` omits the standard port, so every form of the URL must be accepted.
    @Test(arguments: [
        ("https://Id.example:443", "https://id.example"),
        ("https://id.example:443/", "https://id.example"),
        ("https://id.example:8443", "https://id.example:8443"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://127.0.0.1:443", "http://127.0.0.1:443"), ("https://[::1]:443", "https://[::1]"),
    ])
    func publicURL_standardPort_isLeftOut(_ written: String, _ url: String) throws {
        let configuration = try Configuration(resolve(minimal + "http.public_url: '\(written)'\n"))
        #expect(configuration.publicURL == url && configuration.provider.issuer == url)
    }

    @Test func pageColour_lowContrastOrUnknown_isRefused() throws {
        #expect(try Configuration(resolve(minimal + "page.colour: '#7a1fa2'\n")).pageColours != nil)
        #expect(
            error(minimal + "page.colour: '#7fd1c2'\n")?.message.contains("a contrast of 1.5 to 1")
                == true)
        #expect(error(minimal + "page.colour: teal\n")?.message.contains("as in '#0f5c55'") == true)
        #expect(
            try Configuration(resolve(minimal + "page.logo: logo.png\n")).pageLogoPath
                == "/etc/postern/logo.png")
    }

    @Test func links_ofThePages_arePagesOrAddresses() throws {
        let links = try Configuration(
            resolve(
                minimal
                    + "page.links.help: mailto:help@example.com\npage.links.imprint: https://example.com/imprint?a=1\n"
            )
        ).pageLinks
        #expect(
            links.help == "mailto:help@example.com"
                && links.imprint == "https://example.com/imprint?a=1")
        #expect(links.privacy == nil && links.terms == nil)
        for wrong in [
            "javascript:alert(1)", "help", "https:", "mailto:help", "https://a b",
            "data:text/html,x", "https://e/<x",
        ] {
            #expect(
                error(minimal + "page.links.help: '\(wrong)'\n")?.message.contains("must be a link")
                    == true, "\(wrong)")
        }
    }

    /// A kilobyte with aliases could need minutes and all memory (billion laughs).
    @Test(arguments: ["_", "-", "a"]) func file_anchorsAndAliases_areRefused(name: String) throws {
        var text = minimal + "local_recipients:\n  k0: &\(name) [x, x, x, x, x, x, x, x, x]\n"
        for level in 1...12 {
            let (new, old) = (
                String(repeating: name, count: level + 1), String(repeating: name, count: level)
            )
            text +=
                "  k\(level): &\(new) [\(Array(repeating: "*\(old)", count: 9).joined(separator: ", "))]\n"
        }
        text += "  ? *\(String(repeating: name, count: 13))\n  : 1\n"
        #expect(error(text)?.code == .syntax)
        let one = error(minimal + "hostname: &\(name) host.example\n")
        #expect(
            one?.description.contains("postern.yaml:2") == true
                && one?.description.contains("anchors and aliases") == true)
    }

    @Test func configurationDocument_keys_areThoseDeclared() throws {
        var text =
            "| key | values | default | takes effect | what it is for |\n|---|---|---|---|---|\n"
        for key in ConfigurationKey.allCases {
            let facts = key.facts
            let beyond = facts.beyond.map { " Beyond it: `\($0)`." } ?? ""
            let standard =
                if case .value = facts.standard { "`\(facts.standardText)`" } else {
                    facts.standardText
                }
            text +=
                "| `\(key.rawValue)` | \(facts.values) | \(standard) | \(facts.isLive ? "at once" : "at the next start") "
            text += "| \(facts.reason)\(beyond) |\n"
        }
        #expect(
            try DocumentSection("keys", by: "ConfigurationTests", in: "CONFIGURATION.md").holds(
                text))
    }

    @Test func limitKey_everyOne_namesItsConsequence() {
        for key in ConfigurationKey.allCases where key.place.section == "limits" {
            #expect(key.facts.beyond != nil, "\(key.rawValue)")
        }
        #expect(ConfigurationKey.allCases.allSatisfy { $0.facts.reason.hasSuffix(".") })
    }

    @Test func layers_sameKey_laterOneWins() throws {
        let text = minimal + "limits:\n  hops: 20\n  recipients: 7\n"
        let variables = [
            "POSTERN_LIMITS_HOPS": "30", "POSTERN_LOG_LEVEL": "debug", "POSTERN_CONFIG": "x",
            "HOME": "/",
        ]
        let resolved = try resolve(text, environment: variables, flags: ["limits.hops=40"])
        let configuration = try Configuration(resolved)
        #expect(configuration.limits.hops.max == 40)
        #expect(configuration.limits.recipients.max == 7)
        #expect(configuration.log.level == "debug")
        #expect(origin(resolved, "limits.hops") == "--set")
        #expect(origin(resolved, "limits.recipients") == "postern.yaml:4")
        #expect(origin(resolved, "log.level") == "POSTERN_LOG_LEVEL")
        #expect(origin(resolved, "log.format") == "default")
        #expect(try Configuration(resolve(text, environment: variables)).limits.hops.max == 30)
        #expect(try Configuration(resolve(text)).limits.hops.max == 20)
    }

    @Test func file_listsAndTables_areRead() throws {
        let configuration = try Configuration(
            resolve(
                """
                relay_domains:
                - Relay.Example
                - bücher.example
                database: /var/lib/postern.db
                trusted_authserv_ids: mx.example
                operator_address: ops@example.com
                local_recipients: {DMARC-Reports: reports@example.com}
                milter:
                limits:
                  reply_memory: 64 MiB
                  message_size: 10MB
                providers:
                  example.net: {plus_tags: true}
                  mail.example.net: {ignore_dots: true, same_as: example.net}
                  gmail.com: {}
                log: {format: json}
                """, environment: ["POSTERN_DNS_SERVERS": "127.0.0.1:53, 192.0.2.1"],
                machineName: "Mail.Host.Example"))
        #expect(configuration.relayDomains == ["relay.example", "xn--bcher-kva.example"])
        #expect(configuration.database.path == "/var/lib/postern.db")
        #expect(configuration.hostname == "mail.host.example")
        #expect(configuration.trustedAuthservIDs == ["mx.example"])
        #expect(configuration.operatorAddress == AddrSpec(localPart: "ops", domain: "example.com"))
        #expect(
            configuration.localRecipients == [
                "dmarc-reports": AddrSpec(localPart: "reports", domain: "example.com")
            ])
        #expect(configuration.limits.replyMemory.max == 64 * 1024 * 1024)
        #expect(configuration.limits.messageSize.max == 10_000_000)
        #expect(configuration.dns.servers == ["127.0.0.1:53", "192.0.2.1"])
        #expect(configuration.log.format == .json)
        func canonical(_ local: String, _ domain: String) -> AddrSpec {
            configuration.providers.canonical(AddrSpec(localPart: local, domain: domain))
        }
        #expect(
            canonical("a.b+c", "mail.example.net")
                == AddrSpec(localPart: "ab+c", domain: "example.net"))
        #expect(
            canonical("a.b+c", "gmail.com") == AddrSpec(localPart: "a.b+c", domain: "gmail.com"))
        #expect(
            canonical("a.b+c", "googlemail.com") == AddrSpec(localPart: "ab", domain: "gmail.com"))
    }

    @Test(arguments: [
        ("limits:\n  hop: 3\n", 3, "limits.hops"), ("relay_domain: x\n", 2, "relay_domains"),
        ("hops: 3\n", 2, "limits.hops"),
        ("milter: {sockets: x}\n", 2, "milter.socket"), ("loging:\n  level: info\n", 2, "log"),
    ])
    func key_unknown_namesLineAndNearestKey(_ text: String, _ line: Int, _ nearest: String) {
        let error = error(minimal + text)
        #expect(error?.code == .unknownKey)
        #expect(error?.place == "/etc/postern/postern.yaml:\(line)")
        #expect(error?.message.contains(nearest) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        "limits: {hops: many}", "limits: {hops: 1}", "limits: {hops: [1]}",
        "limits: {message_size: -1}",
        "limits: {message_size: 99999999999999999999GB}", "limits: {header_field: 60001}",
        "milter: {socket: 8891}", "milter: {socket: 'inet:0@127.0.0.1'}",
        "milter: {socket: 'unix:relative'}",
        "milter: {socket_mode: 0999}", "milter: {socket_mode: '4755'}", "operator_address: nobody",
        "hostname: '[192.0.2.1]'",
        "operator_address: me@relay.example", "local_recipients: {a: b}", "local_recipients: [a]",
        "local_recipients: {'a b': c@example.com}", "providers: {gmail.com: {dots: true}}",
        "providers: {gmail.com: {plus_tags: 1}}", "providers: {gmail.com: true}",
        "database: 'postgresql://u:a@secret@h/d'",
        "database: 'mysql://u:secret@h/d'",
        "database: 'host=127.0.0.1 dbname=postern password=secret'",
        "database: 'password = secret host=h'", "database: 'postgresql:u:secret@h/d'",
        "database: 'u:secret@h/d'",
        "trusted_authserv_ids: ['a b']", "address_length: 9", "authserv_id: 'a b'",
        "authserv_id: a;b",
    ])
    func value_wrong_namesItsKey(_ text: String) {
        let error = error(minimal + text)
        #expect(
            error?.code == .invalidValue || error?.code == .syntax, "\(error?.description ?? "")")
        #expect(error?.place?.hasPrefix("/etc/postern/postern.yaml") == true)
        #expect(error?.message.contains("secret") == false)
    }

    @Test func relayDomains_missingOrInvalid_areRefused() {
        for text in [
            "", "# nothing\n", "relay_domains: []\n", "relay_domains:\n",
            "relay_domains: [nodot]\n",
        ] {
            #expect(error(text)?.code == .invalidValue, "\(text)")
        }
    }

    @Test(arguments: ["- a\n", "a: b: c\n", "relay_domains: [a.example\n", "x", "limits: 3\n"])
    func file_noMapping_isSyntaxError(_ text: String) {
        #expect(error(text)?.code == .syntax)
    }

    @Test func file_keyGivenTwice_isSyntaxError() {
        let error = error(minimal + "hostname: a.example\nhostname: b.example\n")
        #expect(error?.code == .syntax)
        #expect(error?.message.contains("hostname") == true)
    }

    @Test func variablesAndFlags_unknownOrInvalid_areRefused() {
        #expect(
            error(minimal, environment: ["POSTERN_LIMITS_HOP": "3"])?.message.contains(
                "POSTERN_LIMITS_HOPS") == true)
        #expect(error(minimal, environment: ["POSTERN_DNS_FLAVOUR": "3"])?.code == .unknownKey)
        #expect(
            error(minimal, environment: ["POSTERN_KEYFILE": "x"])?.message.contains(
                "POSTERN_KEY_FILE") == true)
        #expect(
            error(minimal, environment: ["POSTERN_LIMITS_HOPS": "x"])?.place
                == "POSTERN_LIMITS_HOPS")
        #expect(error(minimal, flags: ["limits.hop=3"])?.message.contains("limits.hops") == true)
        #expect(error(minimal, flags: ["limits.hops"])?.place == "--set")
        #expect(error(minimal, flags: ["limits.hops=0"])?.place == "--set")
    }

    @Test func variables_ofOtherPrograms_areIgnored() throws {
        let others = [
            "POSTERN_CONFORMANCE": "/x", "POSTERN_SOMEBODY_ELSES": "1", "POSTERNLIKE": "1",
        ]
        let (with, without) = (try resolve(minimal, environment: others), try resolve(minimal))
        #expect(with.entries.map(\.shownValue) == without.entries.map(\.shownValue))
        #expect(with.entries.map(\.origin.text) == without.entries.map(\.origin.text))
    }

    @Test func database_pathWithMarksOfAServer_isAPath() throws {
        let configuration = try Configuration(resolve(minimal + "database: '/srv/a:b@c=d.db'\n"))
        #expect(configuration.database.path == "/srv/a:b@c=d.db")
    }

    @Test func database_passwordInURL_isNotShown() throws {
        let resolved = try resolve(
            minimal + "database: 'postgresql://postern:pa@ss:word@db.example/postern'\n")
        let entry = resolved.entries.first { $0.key == .database }
        #expect(entry?.shownValue == "postgresql://postern:(redacted)@db.example/postern")
    }

    @Test func template_asWritten_changesNoDefault() throws {
        let text = Installation.configurationText(
            relayDomains: ["relay.example"], operatorAddress: "ops@example.com")
        let resolved = try resolve(text)
        for entry in resolved.entries where ![.relayDomains, .operatorAddress].contains(entry.key) {
            #expect(entry.origin == .standard, "\(entry.key.rawValue)")
        }
        // Uncommenting a line changes nothing, because it shows the default.
        for key in ConfigurationKey.allCases {
            let (facts, name) = (key.facts, key.place.name)
            #expect(text.contains(facts.reason))
            guard case .value(let value) = facts.standard else { continue }
            let setting = "\(name): \(facts.standardText)\n"
            let line = key.place.section.map { "\($0):\n  \(setting)" } ?? setting
            #expect(text.contains("# \(name): \(facts.standardText)"))
            #expect(try resolve(minimal + line).value(key) == value, "\(key.rawValue)")
        }
    }

    @Test func file_nestedOrDottedSection_isReadAlike() throws {
        let nested = "sign_in:\n  upstream:\n    name: One\n    scopes: [openid]\n"
        for text in [nested, "sign_in:\n  upstream.name: One\n  upstream.scopes: [openid]\n"] {
            let resolved = try resolve(minimal + text)
            #expect(resolved.value(.signInUpstreamName) == .text("One"))
            #expect(resolved.value(.signInUpstreamScopes) == .list(["openid"]))
        }
        #expect(throws: ConfigurationError.self) {
            try resolve(minimal + "sign_in:\n  upstream:\n    nam: One\n")
        }
        // A partial configuration is an error, and so is an issuer without a page to return to.
        for half in [
            "issuer: https://id.example", "client_id: x",
            "issuer: https://id.example\n    client_id: x",
        ] {
            #expect(throws: ConfigurationError.self) {
                _ = try Configuration(try resolve(minimal + "sign_in:\n  upstream:\n    \(half)\n"))
            }
        }
    }

    @Test func configShow_printsEveryKeyWithItsOrigin() throws {
        let runner = try CommandRunner.initialised()
        let result = try runner.run(["config", "show"], environment: ["POSTERN_LIMITS_HOPS": "33"])
        #expect(result.status == 0)
        let lines = result.output.split(separator: "\n").map {
            $0.split(separator: "\t").map(String.init)
        }
        #expect(lines.map { $0[0] } == ConfigurationKey.allCases.map(\.rawValue))
        #expect(lines.first { $0[0] == "limits.hops" }?[1...2] == ["33", "POSTERN_LIMITS_HOPS"])
        #expect(lines.first { $0[0] == "relay_domains" }?[2].hasPrefix("postern.yaml:") == true)
        let object = try #require(try runner.json("config", "show") as? [String: [String: Any]])
        #expect(object["limits.hops"]?["value"] as? Int == 50)
        #expect(object["limits.hops"]?["beyond"] as? String == "554 5.4.6")
        #expect(object["relay_domains"]?["value"] as? [String] == ["relay.example", "old.example"])
    }

    // MARK: Issuers

    @Test func issuers_fileAndCommand_haveOnePlaceEach() throws {
        let runner = try CommandRunner.initialised()
        let keys = runner.folder.appendingPathComponent("keys.json")
        try Data(#"{"keys":[]}"#.utf8).write(to: keys)
        func write(_ issuers: String) throws {
            try Data(("relay_domains: [relay.example]\n" + issuers).utf8).write(
                to: URL(fileURLWithPath: runner.configuration))
        }
        func list() throws -> [[String: Any]] {
            try #require(try runner.json("issuer", "list") as? [[String: Any]])
        }
        try write(
            "issuers:\n  apple:\n    iss: https://appleid.apple.com\n    jwks_uri: https://appleid.apple.com/auth/keys\n"
                + "    algorithms: [RS256]\n    nonce_form: sha256_hex\n")
        #expect(try list().map { $0["origin"] as? String } == ["postern.yaml"])
        #expect(try list().first?["algorithms"] as? [String] == ["RS256"])
        try runner.fail(
            "issuer", "remove", "apple", "--yes", status: 65,
            saying: "is configured in postern.yaml")
        // A change in the file changes the issuer; issuers of commands stay beside it.
        try write(
            "issuers:\n  apple: {iss: \"https://appleid.apple.com\", jwks_file: \(keys.path), leeway: 30}\n"
        )
        #expect(try list().first?["leeway"] as? Int == 30)
        try runner.succeed(
            "issuer", "add", "ours", "--iss", "https://id.example", "--jwks-uri",
            "https://id.example/keys")
        #expect(try list().map { $0["origin"] as? String } == ["postern.yaml", "command"])
        // An issuer that is in both is an error of every command, which says how to fix it.
        try write("issuers:\n  ours: {iss: \"https://other.example\", jwks_file: \(keys.path)}\n")
        try runner.fail(
            "issuer", "list", status: 78, saying: "run postern issuer remove ours --yes")
        try write("issuers:\n  theirs: {iss: \"https://id.example\", jwks_file: \(keys.path)}\n")
        try runner.fail(
            "issuer", "list", status: 78,
            saying: "issuer ours with the same name or iss was added by command")
        try write("")
        #expect(try list().map { $0["name"] as? String } == ["ours"])
        #expect(try runner.run(["audit"]).output.contains("postern.yaml"))
    }

    @Test(arguments: [
        ("{a: {jwks_uri: \"https://a.example/k\"}}", "a: iss is required"),
        ("{a: {iss: x}}", "one of jwks_uri and jwks_file is required"),
        ("{a: {iss: x, jwks_uri: \"http://a.example/k\"}}", "jwks_uri"),
        ("{a: {iss: x, jwks_file: k.json}}", "must be an absolute path"),
        ("{a: {iss: x, jwks_file: /k, algorithms: [HS256]}}", "algorithms must be RS256 or ES256"),
        ("{a: {iss: x, jwks_file: /k, nonce: raw}}", "not nonce"),
        ("{a: {iss: x, jwks_file: /k, leeway: 301}}", "0 to 300"),
        ("[a]", "names with iss"),
    ]) func issuer_invalid_isNamed(_ issuers: String, _ complaint: String) throws {
        let runner = try CommandRunner.initialised()
        try Data("relay_domains: [relay.example]\nissuers: \(issuers)\n".utf8).write(
            to: URL(fileURLWithPath: runner.configuration))
        try runner.fail("issuer", "list", status: 78, saying: complaint)
    }
}
