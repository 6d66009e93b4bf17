// Every command that changes something, or shows an inbox, leaves a line in the audit.

import Foundation
import TestSupport
import Testing

@Suite(.blocking) struct AuditWalkTests {
    /// In this order. A line in brackets only prepares the next ones, and its own audit line is
    /// checked elsewhere. `{address}`, `{sub}`, `{key}`, `{secret}` and `{decision}` are the first
    /// of a list.
    private static let changes = """
        team add juice --name Juice
        team add soda --name Soda
        source add juice juice.example
        app add juice com.juice
        app add juice com.two --group com.juice
        app redirect add juice com.juice https://juice.example/in
        app redirect remove juice com.juice https://juice.example/in
        app appearance juice com.juice --name Juicy
        app client juice com.juice --public
        app client juice com.juice --no-public
        app sign-in juice com.juice passkey
        team sign-in juice two_factor
        app secret issue juice com.juice
        app secret revoke juice com.juice {secret} --yes
        app nonce juice com.juice --no-required
        app key add juice key.pem --kid k1
        app key remove juice k1
        user add jane --inbox jane@home.example --verified --name Jane
        user add joe --inbox joe@home.example --verified
        user add tim --inbox tim@home.example
        user show jane --reveal
        user list --reveal
        inbox list jane --reveal
        inbox show jane 1 --reveal
        inbox add jane jane2@home.example --verified
        inbox default jane 2
        inbox confirm tim 1
        inbox remove jane 1
        address issue juice jane --app com.juice
        address issue juice joe --app com.juice
        address off {address}
        address on {address}
        address retire {address} --yes
        (decide juice --app com.juice --event sign_in --sub {sub}
        decision label {decision} legitimate
        review label {decision} fraudulent
        review note {decision} seen
        account revoke {sub} --app com.juice
        account delete {sub} --yes
        list create evil --kind domain
        list add evil bad.example
        list import evil items.txt
        list remove-list evil --yes
        retention set decisions 1000 --yes
        hold add user jane --until 90d --reason dispute
        hold change 1 --until 80d --yes
        hold export 1 --reason order
        hold end 1 --yes
        user freeze jane --reason abuse --until 30d
        user unfreeze jane
        team freeze juice --reason phishing
        team unfreeze juice
        delivery allow juice google --until 7d --reason cured
        delivery hold juice google --until never --reason list
        delivery lift juice google
        policy bind com.juice risk-default --app
        policy unbind com.juice --app
        endpoint set juice https://juice.example/hook
        event test juice
        event park --team juice --yes
        event retry --team juice
        endpoint remove juice --yes
        keys signing generate
        keys dkim generate --domain relay.example --selector two
        keys dkim activate two --domain relay.example --force
        keys dkim retire two --domain relay.example --force
        transfer start juice com.juice soda
        transfer cancel com.juice
        api-key issue juice --scope addresses:read
        api-key rotate {key}
        api-key revoke {key} --yes
        import people.csv
        user recover jane --reason lost --yes
        user remove tim --yes
        source remove juice juice.example
        app remove juice com.two --yes
        team rename soda Sodas
        team remove soda --yes
        keys file rotate token
        store backup copy.db
        """

    /// Commands that are not in the list above.
    private static let others: [(command: String, reason: String)] = [
        ("account link", "AccountCommandTests"), ("account list", "shows"),
        ("account show", "shows"), ("account state", "shows"),
        ("address list", "shows"), ("address decode", "LogTraceTests"), ("trace", "LogTraceTests"),
        ("user find", "shows"),
        ("address show", "shows"), ("app attestation list", "shows"), ("app key list", "shows"),
        ("app list", "shows"),
        ("app secret list", "shows"), ("audit list", "shows"), ("audit report", "shows"),
        ("hold list", "shows"), ("team outgoing", "RelayOutgoingTests"),
        ("support-bundle", "SupportBundleTests: shows no one"),
        ("config check", "shows"),
        ("config keys", "shows"),
        ("config show", "shows"),
        ("decide", "a log of its own"), ("decision list", "shows"), ("decision show", "shows"),
        ("decision replay", "shows"),
        ("keys dkim publish", "shows"),
        ("keys dkim list", "shows"), ("doctor", "shows"), ("endpoint show", "shows"),
        ("endpoint test", "sends"),
        ("event list", "shows"), ("explain", "shows"),
        ("export", "shows"), ("issuer list", "shows"), ("issuer show", "shows"),
        ("issuer test", "shows"),
        ("inbox verify", "sends"),
        ("keys file show", "shows"), ("api-key list", "shows"), ("keys list", "shows"),
        ("list show", "shows"),
        ("list remove", "ListCommandTests"),
        ("verify passkey", "shows"),
        ("verify attestation", "shows"), ("policy backtest", "shows"), ("policy bench", "shows"),
        ("policy check", "shows"),
        ("policy diff", "shows"), ("policy eval", "shows"), ("policy explain", "shows"),
        ("policy list", "shows"),
        ("policy show", "shows"), ("policy stats", "shows"), ("policy test", "shows"),
        ("retention show", "shows"), ("retention record", "shows"), ("delivery show", "shows"),
        ("delivery read", "counts"), ("delivery import", "counts"), ("delivery tags", "shows"),
        ("review list", "shows"), ("review show", "shows"), ("keys signing jwks", "shows"),
        ("keys signing list", "shows"),
        ("source check", "shows"), ("source list", "shows"), ("status", "shows"),
        ("stream list", "shows"),
        ("team complaints", "shows"), ("team list", "shows"), ("team show", "shows"),
        ("verify token", "shows"),
        ("transfer status", "shows"), ("user list", "shows"), ("verify message", "shows"),
        ("init", "there is no audit before it"), ("store migrate", "changes no data"),
        ("store restore", "StoreCommandTests"),
        ("store copy", "StoreCopyCommandTests"), ("serve", "runs"),
        ("sandbox", "has a store of its own"),
        ("setup postfix", "changes Postfix"), ("queue list", "shows"),
        ("queue send", "sends what Postfix has"),
        ("apply", "ApplyTests"), ("issuer add", "IssuerCommandTests"),
        ("issuer remove", "IssuerCommandTests"), ("issuer poll", "IssuerCommandTests"),
        ("app attestation add", "VerifyAttestationTests"),
        ("app attestation remove", "VerifyAttestationTests"),
        ("keys file retire", "StoreCommandTests"), ("policy activate", "PolicyCommandTests"),
        ("policy rollback", "PolicyCommandTests"), ("review snooze", "ReviewCommandTests"),
        ("keys signing retire", "SigningKeyTests"), ("keys signing rotate", "SigningKeyTests"),
        ("stream remove", "StreamCommandTests"), ("stream status", "StreamCommandTests"),
        ("transfer finish", "TransferTests"),
    ]

    private static let publicKey = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwyDbKT+E/RyEKKaZU8XXG5clCtht
        4C9LMdRkHiAw3v6csgFzCeVOIG3ezsgmhgjMnKs3xxE4n/rziWIDLj2R2g==
        -----END PUBLIC KEY-----


        """

    private static let lines = changes.split(separator: "\n").map {
        $0.split(separator: " ").map(String.init)
    }

    /// A new command must be in one of the two lists.
    @Test func commands_allOfThem_areWalkedOrSaidWhyNot() {
        let leaves = HelpTests.commands.filter { words in
            !HelpTests.commands.contains {
                $0.count > words.count && Array($0[..<words.count]) == words
            }
        }
        for words in leaves {
            let isWalked = Self.lines.contains { Array($0[..<min(words.count, $0.count)]) == words }
            let reason = Self.others.first { $0.command == words.joined(separator: " ") }?.reason
            #expect(
                isWalked || reason != nil,
                "postern \(words.joined(separator: " ")): does it leave a line?")
        }
    }

    @Test func commands_thatChangeOrRevealSomething_leaveALine() throws {
        let runner = try CommandRunner.initialised()
        func write(_ name: String, _ text: String) throws {
            try Data(text.utf8).write(to: runner.folder.appendingPathComponent(name))
        }
        try write("items.txt", "com.bad\n")
        try write("people.csv", "user,inbox\nzoe,zoe@home.example\n")
        try write("key.pem", Self.publicKey)
        func audit() throws -> Int {
            try runner.succeed("audit", "--json", "--limit", "500").components(
                separatedBy: "\"action\""
            ).count
        }
        func first(_ arguments: [String]) throws -> String {
            let listed = try runner.run(arguments).output
            return String(listed.split(separator: "\n").first?.split(separator: "\t").first ?? "")
        }
        func decision() throws -> String {
            let listed = try runner.run(["decision", "list"]).output
            return String(try #require(listed.firstMatch(of: #/rd_[A-Za-z0-9]+/#)).output)
        }
        var before = try audit()
        for line in Self.lines {
            let words = try line.map { word in
                switch word {
                case "(decide": "decide"
                case "{address}": try first(["address", "list"])
                case "{sub}": try first(["account", "list"])
                case "{key}": try first(["api-key", "list"])
                case "{decision}": try decision()
                case "{secret}": try first(["app", "secret", "list", "juice", "com.juice"])
                default: word
                }
            }
            let result = try runner.run(words)
            #expect(result.status == 0, "postern \(words.joined(separator: " ")): \(result.errors)")
            let after = try audit()
            #expect(
                after > before || line[0] == "(decide",
                "postern \(line.joined(separator: " ")) leaves no line")
            before = after
        }
    }
}
