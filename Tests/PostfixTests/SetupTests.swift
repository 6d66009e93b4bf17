// PostfixSetup: the difference, the operator's own values that stay, and a second application
// without changes.

import Foundation
import PostfixHarness
import PostfixSetup
import TestSupport
import Testing

/// The header check as a plain file.
private func writeCheck(_ content: Data, _ path: String) throws {
    try content.write(to: URL(filePath: path), options: .atomic)
}

@Suite(.blocking) struct SetupPlanTests {
    private static let inputs = PostfixInputs(
        relayDomains: ["relay.example", "hide.example"], socket: "unix:/run/postern/milter.sock",
        hostName: "mx.relay.example")

    private func plan(
        _ values: [String: String], master: [String: String] = [:], headerChecks: String? = nil,
        answers: [TableQuestion: String] = [:]
    )
        -> SetupPlan
    {
        var configuration = PostfixConfiguration(
            directory: "/etc/postfix", values: values, master: master)
        configuration.answers = answers
        return SetupPlan.make(Self.inputs, for: configuration, headerChecks: headerChecks)
    }

    /// The new value of a parameter; nil if it stays.
    private func new(_ name: String, _ values: [String: String]) -> String? {
        plan(values).mainChanges.first { $0.name == name }?.new
    }

    /// A milter after Postern may add `Authentication-Results` with the author's inbox:
    /// smtp.mailfrom=jane@home.example.
    @Test func plan_milterBehindOurs_isAConflictWhereItCannotBeMoved() {
        let ours = "unix:/run/postern/milter.sock"
        #expect(
            plan(["smtpd_milters": "inet:localhost:1, \(ours)"]).conflicts.filter {
                $0.contains("behind")
            } == [])
        #expect(
            plan(["smtpd_milters": "\(ours), inet:localhost:1"]).conflicts.filter {
                $0.contains("behind")
            } == [])
        let named = plan(["smtpd_milters": "$all", "all": "\(ours) inet:localhost:1"]).conflicts
        #expect(
            named.contains { $0.contains("smtpd_milters has inet:localhost:1 after Postern") },
            "\(named)")
    }

    /// A filter may skip mail from loopback, so the probe must arrive where other servers' mail
    /// arrives.
    @Test func probe_door_isWhereOtherServersBringTheirMail() {
        let addresses = ["127.0.0.1", "192.0.2.1", "2001:db8::1", "::1"]
        func doors(
            _ fields: [String: String], values: [String: String] = [:],
            master: [String: String] = [:]
        ) -> [String] {
            PostfixConfiguration(
                directory: "/etc/postfix", values: values, master: master, fields: fields
            )
            .incomingDoors(
                of: addresses, besides: "127.0.0.1:8892", socket: "unix:/run/postern/milter.sock"
            )
            .map { "\($0.host) \($0.port)" }
        }
        let smtpd = [
            "smtp/inet/command": "smtpd", "submission/inet/command": "smtpd",
            "127.0.0.1:8892/inet/command": "smtpd",
        ]
        #expect(doors(smtpd) == ["192.0.2.1 25", "2001:db8::1 25"])
        #expect(doors(smtpd, values: ["inet_protocols": "ipv4"]) == ["192.0.2.1 25"])
        #expect(
            doors(smtpd, values: ["inet_interfaces": "127.0.0.1, [2001:db8::1]"]) == [
                "2001:db8::1 25"
            ])
        #expect(doors(smtpd, values: ["inet_interfaces": "loopback-only"]) == [])
        let own = [
            "192.0.2.1:2525/inet/command": "smtpd -v", "[::1]:25/inet/command": "smtpd",
            ":26/inet/command": "smtpd",
        ]
        #expect(
            doors(own, values: ["inet_interfaces": "2001:db8::1"]) == [
                "192.0.2.1 2525", "2001:db8::1 26",
            ])
        let screened = ["smtp/inet/command": "postscreen", "smtpd/pass/command": "smtpd"]
        #expect(doors(screened).count == 2)
        #expect(doors(screened, master: ["smtpd/pass/smtpd_milters": "inet:127.0.0.1:1"]) == [])
    }

    @Test(arguments: [
        ("smtpd_recipient_restrictions", "reject_unverified_recipient"),
        ("smtpd_recipient_restrictions", "permit_mynetworks, reject_unauth_destination, strict"),
        ("smtpd_relay_restrictions", "permit_mynetworks, permit_sasl_authenticated, reject"),
        ("smtpd_relay_restrictions", "permit_mynetworks defer"),
        ("smtpd_client_restrictions", "permit_mynetworks, reject"),
        ("smtpd_helo_restrictions", "check_helo_access hash:/x, REJECT"),
        ("smtpd_data_restrictions", "reject"),
        ("smtpd_recipient_restrictions", "$mine"),
        ("smtpd_recipient_restrictions", "check_recipient_access static:REJECT, permit"),
        ("smtpd_client_restrictions", "permit_mynetworks, check_client_access static:550"),
        ("smtpd_recipient_restrictions", "check_recipient_access hash:/etc/postfix/access, permit"),
    ]) func plan_restrictionThatStopsEveryOne_isAConflict(name: String, value: String) {
        let values = [
            name: value, "smtpd_restriction_classes": "strict",
            "strict": "reject_unverified_recipient",
            "mine": "permit_mynetworks, reject_unverified_recipient",
        ]
        let answers = [
            TableQuestion(table: "hash:/etc/postfix/access", key: "hide.example"): "reject closed"
        ]
        let conflicts = plan(values, answers: answers).conflicts.filter { $0.hasPrefix(name) }
        #expect(
            conflicts.count == 1 && conflicts[0].contains("refuses mail from other servers"),
            "\(conflicts)")
    }

    @Test(arguments: [
        (
            "smtpd_relay_restrictions",
            "permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination"
        ),
        ("smtpd_recipient_restrictions", "permit_auth_destination, reject"),
        (
            "smtpd_recipient_restrictions",
            "check_policy_service unix:reject, reject_unauth_destination"
        ),
        ("smtpd_recipient_restrictions", "warn_if_reject reject_unverified_recipient"),
        ("smtpd_client_restrictions", "reject_unknown_client_hostname"),
        ("smtpd_data_restrictions", "reject_unauth_pipelining"),
        ("smtpd_sender_restrictions", "permit, reject"),
        ("smtpd_recipient_restrictions", "check_recipient_access static:OK, reject"),
        (
            "smtpd_recipient_restrictions",
            "check_recipient_access static:DUNNO, check_recipient_access hash:/x, permit"
        ),
    ]) func plan_restrictionThatLetsMailThrough_isNone(name: String, value: String) {
        #expect(plan([name: value]).conflicts.filter { $0.hasPrefix(name) } == [])
    }

    @Test(arguments: [
        ("virtual_alias_domains", "hash:/t"), ("virtual_alias_maps", "hash:/t"),
        ("mydestination", "localhost hash:/t"),
        ("masquerade_domains", "!juice.example example"),
        ("smtpd_recipient_restrictions", "check_recipient_access hash:/parents, permit"),
        ("smtpd_recipient_restrictions", "check_recipient_access hash:/class, permit"),
        ("smtpd_recipient_restrictions", "check_recipient_access static:REDIRECT, permit"),
        ("smtpd_recipient_restrictions", "check_recipient_access static:DISCARD, permit"),
    ]) func plan_settingThatTakesARelayDomainAway_isAConflict(name: String, value: String) {
        let answers = [
            TableQuestion(table: "hash:/t", key: "relay.example"): "x",
            TableQuestion(table: "hash:/parents", key: "example"): "REJECT",
            TableQuestion(table: "hash:/class", key: "relay.example"): "strict",
        ]
        let values = [
            name: value, "smtpd_restriction_classes": "strict",
            "strict": "permit_mynetworks, reject",
        ]
        #expect(
            plan(values, answers: answers).conflicts.contains { $0.contains(name) },
            "\(plan(values, answers: answers).conflicts)"
        )
    }

    @Test(arguments: [
        ("relay_domains", "relay.example"),
        ("masquerade_domains", "!relay.example !hide.example example"),
        ("masquerade_domains", "relay.example"), ("mydestination", "localhost hash:/other"),
    ]) func plan_settingThatDoesNotTakeItAway_isNone(name: String, value: String) {
        #expect(plan([name: value]).conflicts.filter { $0.contains(name) } == [])
    }

    /// The former socket must not stay next to the new one: Postfix would call both, and all mail
    /// would wait.
    @Test func plan_socketThatChanged_replacesTheFormerOne() {
        var inputs = Self.inputs
        inputs.formerSockets = ["inet:127.0.0.1:8891"]
        let configuration = PostfixConfiguration(
            directory: "/etc/postfix",
            values: ["smtpd_milters": "inet:localhost:1, inet:127.0.0.1:8891"])
        let changes = SetupPlan.make(inputs, for: configuration, headerChecks: nil).mainChanges
        #expect(
            changes.first { $0.name == "smtpd_milters" }?.new
                == "inet:localhost:1, unix:/run/postern/milter.sock")
    }

    @Test func plan_formerRelayDomain_isTakenOut() {
        var inputs = Self.inputs
        inputs.formerDomains = ["second.example"]
        let configuration = PostfixConfiguration(
            directory: "/etc/postfix",
            values: ["virtual_mailbox_domains": "relay.example, second.example, hide.example"])
        let changes = SetupPlan.make(inputs, for: configuration, headerChecks: nil).mainChanges
        #expect(
            changes.first { $0.name == "virtual_mailbox_domains" }?.new
                == "relay.example, hide.example")
    }

    /// A line for all mail in it would take precedence over virtual_transport.
    @Test func plan_transportMapsForAllMail_getTheRelayDomainsFirst() {
        var configuration = PostfixConfiguration(
            directory: "/etc/postfix", values: ["transport_maps": "hash:/t"])
        func changed() -> String? {
            SetupPlan.make(Self.inputs, for: configuration, headerChecks: nil).mainChanges.first {
                $0.name == "transport_maps"
            }?
            .new
        }
        #expect(changed() == nil)
        configuration.routes = ["relay.example": "smtp:[127.0.0.1]:9"]
        #expect(changed() == nil)
        configuration.routes = ["relay.example": "smtp:[smarthost.example]"]
        let new = changed()
        #expect(
            new?.hasPrefix("inline:{ { relay.example = ") == true
                && new?.hasSuffix("hash:/t") == true, "\(new ?? "")")
    }

    @Test func plan_everyServicePastPostern_isAConflict() {
        let configuration = PostfixConfiguration(
            directory: "/etc/postfix", values: [:], master: ["smtp/inet/smtpd_milters": ""],
            fields: ["smtp/inet/command": "smtpd"])
        var inputs = Self.inputs
        inputs.incoming = configuration.incomingServices(besides: nil, socket: inputs.socket)
        let plan = SetupPlan.make(inputs, for: configuration, headerChecks: nil)
        #expect(
            plan.conflicts.contains { $0.hasPrefix("no service of master.cf") }, "\(plan.conflicts)"
        )
    }

    @Test func plan_tableThatRewritesARelayDomain_isAConflict() {
        let values = [
            "virtual_alias_maps": "hash:/a, inline:{@relay.example=joe@x.example}",
            "content_filter": "scan:[127.0.0.1]:10024",
        ]
        let table = "inline:{@relay.example=joe@x.example}"
        let rewritten = plan(
            values, answers: [TableQuestion(table: table, key: "@relay.example"): "joe@x.example"])
        #expect(
            rewritten.conflicts.contains {
                $0.contains("virtual_alias_maps has @relay.example in \(table)")
            },
            "\(rewritten.conflicts)")
        #expect(rewritten.notes.contains { $0.hasPrefix("content_filter is set") })
        let same = plan(
            values, answers: [TableQuestion(table: table, key: "@relay.example"): "@relay.example"])
        #expect(!same.conflicts.contains { $0.hasPrefix("virtual_alias_maps") })
    }

    @Test func settings_haveAReasonAndUniqueNames() {
        let settings = PostfixSettings.main(Self.inputs)
        var fanOutInputs = Self.inputs
        fanOutInputs.fanOut = "127.0.0.1:8892"
        #expect(
            settings.allSatisfy { $0.reason.count > 10 }
                && PostfixSettings.master(fanOutInputs).allSatisfy { $0.reason.count > 10 })
        #expect(Set(settings.map(\.name)).count == settings.count)
    }

    @Test func plan_operatorsMilters_stayInFront() {
        let values = [
            "smtpd_milters": "inet:localhost:8891, { unix:/run/x.sock, default_action=accept }"
        ]
        #expect(
            new("smtpd_milters", values)
                == "inet:localhost:8891, { unix:/run/x.sock, default_action=accept }, unix:/run/postern/milter.sock"
        )
        #expect(
            plan(values).notes.contains { $0.hasPrefix("smtpd_milters keeps inet:localhost:8891") })
        #expect(
            new(
                "smtpd_milters", ["smtpd_milters": "unix:/run/postern/milter.sock inet:localhost:1"]
            )
                == "inet:localhost:1, unix:/run/postern/milter.sock")
        #expect(
            new(
                "smtpd_milters",
                ["smtpd_milters": "{unix:/run/postern/milter.sock, command_timeout=60s}"]) == nil)
    }

    /// Guides for other filters recommend such a reference. Postern must not be added a second
    /// time, as each bounce would loop.
    @Test func plan_referenceToOtherMilterList_addsPosternOnce() {
        let other = "inet:localhost:8891"
        let changes = plan(["smtpd_milters": other, "non_smtpd_milters": "$smtpd_milters"])
            .mainChanges.map(\.name)
        #expect(changes.contains("smtpd_milters") && !changes.contains("non_smtpd_milters"))
        #expect(
            new(
                "non_smtpd_milters", ["smtpd_milters": "", "non_smtpd_milters": "${smtpd_milters}"])
                == nil)
        #expect(
            new(
                "smtpd_milters",
                ["smtpd_milters": "$ours", "ours": "unix:/run/postern/milter.sock"]) == nil)
        #expect(
            new(
                "virtual_mailbox_domains",
                ["virtual_mailbox_domains": "$ours", "ours": "relay.example hide.example"]) == nil)
    }

    @Test func plan_posternListedTwice_keepsOne() {
        let ours = "unix:/run/postern/milter.sock"
        #expect(
            new(
                "non_smtpd_milters",
                ["smtpd_milters": ours, "non_smtpd_milters": "$smtpd_milters, \(ours)"])
                == "$smtpd_milters")
        #expect(
            new("smtpd_milters", ["smtpd_milters": "\(ours), inet:localhost:1, \(ours)"])
                == "inet:localhost:1, \(ours)")
    }

    @Test func plan_operatorsDomainsAndTransport_stay() {
        let plan = plan([
            "virtual_mailbox_domains": "own.example",
            "virtual_transport": "lmtp:unix:private/dovecot",
            "virtual_mailbox_maps": "hash:/etc/postfix/boxes",
            "transport_maps": "hash:/etc/postfix/transport",
        ])
        let changes = Dictionary(uniqueKeysWithValues: plan.mainChanges.map { ($0.name, $0.new) })
        #expect(changes["virtual_mailbox_domains"] == "own.example, relay.example, hide.example")
        #expect(changes["virtual_transport"] == nil)
        #expect(
            changes["virtual_mailbox_maps"]
                == "hash:/etc/postfix/boxes, inline:{ { @relay.example = postern }, { @hide.example = postern } }"
        )
        #expect(
            changes["transport_maps"]
                == "inline:{ { relay.example = smtp:[127.0.0.1]:9 }, { hide.example = smtp:[127.0.0.1]:9 } }, hash:/etc/postfix/transport"
        )
    }

    @Test func plan_strongerValues_stay() {
        #expect(new("smtp_tls_security_level", ["smtp_tls_security_level": "dane"]) == nil)
        #expect(new("smtp_tls_security_level", ["smtp_tls_security_level": "none"]) == "may")
        #expect(new("message_size_limit", ["message_size_limit": "0"]) == nil)
        #expect(new("message_size_limit", ["message_size_limit": "50000000"]) == nil)
        #expect(new("message_size_limit", ["message_size_limit": "10240000"]) == "40000000")
        #expect(new("milter_content_timeout", ["milter_content_timeout": "10m"]) == nil)
        #expect(new("milter_content_timeout", ["milter_content_timeout": "60s"]) == "300s")
        #expect(
            new("message_reject_characters", ["message_reject_characters": "\\200"]) == "\\200\\0")
        #expect(
            new("message_reject_characters", ["message_reject_characters": "\\000\\200"]) == nil)
        #expect(new("smtpd_forbid_bare_newline", ["smtpd_forbid_bare_newline": "reject"]) == nil)
        #expect(
            new("smtp_header_checks", ["smtp_header_checks": "pcre:/a"])
                == "regexp:/etc/postfix/postern_header_checks, pcre:/a")
        #expect(
            new("smtpd_discard_ehlo_keywords", ["smtpd_discard_ehlo_keywords": "chunking DSN"])
                == "chunking, DSN, silent-discard"
        )
    }

    /// The limits must not be raised in main.cf: they would also apply to a submission service,
    /// where they stop password guessing.
    @Test func plan_errorLimits_areRaisedForIncomingOnly() throws {
        let limits = ["smtpd_soft_error_limit", "smtpd_hard_error_limit"]
        func configuration(
            _ master: [String: String], values: [String: String] = [:]
        ) -> PostfixConfiguration {
            let services = [
                "smtp/inet": "smtpd", "submission/inet": "smtpd", "192.0.2.1:587/inet": "smtpd -v",
                "smtpd/pass": "smtpd",
                "10025/inet": "smtpd",
                "10026/inet": "smtpd", "2525/inet": "smtpd", "127.0.0.1:8892/inet": "smtpd",
                "smtp/unix": "smtp",
                "cleanup/unix": "cleanup",
            ]
            return PostfixConfiguration(
                directory: "/etc/postfix", values: values,
                master: master.merging(
                    [
                        "10025/inet/smtpd_milters": "",
                        "10026/inet/receive_override_options": "no_header_body_checks, no_milters",
                        "2525/inet/smtpd_sasl_auth_enable": "yes",
                    ]) { first, _ in first },
                fields: Dictionary(uniqueKeysWithValues: services.map { ("\($0)/command", $1) }))
        }
        func changes(_ configuration: PostfixConfiguration) -> [String: String] {
            var inputs = Self.inputs
            inputs.fanOut = "127.0.0.1:8892"
            inputs.incoming = configuration.incomingServices(
                besides: inputs.fanOut, socket: inputs.socket)
            inputs.recipientLimit =
                Int(configuration.expanded["smtpd_recipient_limit"] ?? "") ?? 1_000
            let plan = SetupPlan.make(inputs, for: configuration, headerChecks: nil)
            let all = plan.mainChanges + plan.masterChanges
            return Dictionary(
                uniqueKeysWithValues: all.filter { change in
                    limits.contains { change.name.hasSuffix($0) }
                }.map {
                    ($0.name, $0.new)
                })
        }
        // A service that names its milters itself is included if Postern's is among them.
        for milters in ["inet:127.0.0.1:11332, \(Self.inputs.socket)", "$smtpd_milters"] {
            let own = configuration(["smtp/inet/smtpd_milters": milters])
            #expect(
                own.incomingServices(besides: nil, socket: Self.inputs.socket).contains(
                    "smtp/inet"), "\(milters)")
        }
        let apart = configuration(["smtp/inet/smtpd_milters": "inet:127.0.0.1:11332"])
        #expect(
            !apart.incomingServices(besides: nil, socket: Self.inputs.socket).contains("smtp/inet"))
        let services = ["smtp/inet", "smtpd/pass", "127.0.0.1:8892/inet"]
        func needed(_ limit: String) -> [String: String] {
            Dictionary(
                uniqueKeysWithValues: services.flatMap { service in
                    limits.map { ("\(service)/\($0)", limit) }
                })
        }
        #expect(changes(configuration([:])) == needed("20000"))
        #expect(
            changes(configuration([:], values: ["smtpd_recipient_limit": "30000"]))
                == needed("30001"))
        #expect(changes(configuration(needed("50000"))).isEmpty)
    }

    @Test func plan_inboundTLS_needsACertificate() {
        #expect(new("smtpd_tls_security_level", [:]) == nil)
        #expect(
            new("smtpd_tls_security_level", ["smtpd_tls_chain_files": "/etc/ssl/x.pem"]) == "may")
        #expect(
            new(
                "smtpd_tls_security_level",
                ["smtpd_tls_cert_file": "/x", "smtpd_tls_security_level": "encrypt"]) == nil)
    }

    @Test func plan_withConflict_isNotApplied() {
        for (values, master) in [
            (["mydestination": "localhost, Relay.Example"], [:]),
            (["receive_override_options": "no_milters"], [:]),
            (["smtpd_milters": "{ unix:/run/postern/milter.sock, default_action = accept }"], [:]),
            (["mailbox_size_limit": "1000"], [:]),
            ([:], ["submission/inet/milter_default_action": "accept"]),
            ([:], ["smtp/inet/milter_macro_daemon_name": "internal"]),
        ] as [([String: String], [String: String])] {
            let plan = plan(values, master: master)
            #expect(plan.conflicts.count == 1, "\(values) \(master): \(plan.conflicts)")
            #expect(throws: PostfixToolError.self) {
                try PostfixSetup.apply(plan, write: writeCheck)
            }
        }
    }

    @Test func plan_socketOutsideTheChroot_isAConflict() {
        let fields = [
            "smtp/inet/chroot": "y", "smtp/inet/command": "smtpd -v", "cleanup/unix/chroot": "n",
            "cleanup/unix/command": "cleanup", "qmgr/unix/chroot": "y", "qmgr/unix/command": "qmgr",
        ]
        let configuration = PostfixConfiguration(
            directory: "/etc/postfix", values: ["queue_directory": "/var/spool/postfix"],
            fields: fields)
        let conflicts = SetupPlan.make(Self.inputs, for: configuration, headerChecks: nil).conflicts
        #expect(
            conflicts.count == 1
                && conflicts[0].hasPrefix("smtp/inet run in the chroot /var/spool/postfix"))
        #expect(
            SetupPlan.make(Self.inputs, for: configuration, headerChecks: nil, socketInChroot: true)
                .conflicts.isEmpty)
        var inputs = Self.inputs
        inputs.socket = "inet:127.0.0.1:8891"
        #expect(SetupPlan.make(inputs, for: configuration, headerChecks: nil).conflicts.isEmpty)
    }

    @Test func plan_servicesPastPostern_areNamed() {
        let plan = plan(
            [:],
            master: [
                "submission/inet/smtpd_milters": "inet:localhost:1",
                "10025/inet/receive_override_options": "no_milters",
            ])
        #expect(
            plan.bypasses.contains { $0.hasPrefix("submission/inet has its own smtpd_milters") })
        #expect(plan.bypasses.contains { $0.hasPrefix("10025/inet has no_milters") })
    }

    @Test func plan_text_showsOldAndNewValues() {
        let text = plan(["milter_default_action": "accept"]).text
        #expect(
            text.contains("- milter_default_action = accept\n+ milter_default_action = tempfail\n"))
        #expect(text.contains("+ cleanup/unix/milter_macro_daemon_name = internal\n"))
        #expect(text.contains("# /etc/postfix/postern_header_checks\n"))
    }

    /// milter/postfix/main.cf and master.cf equal the data. POSTERN_UPDATE_SAMPLES=1 writes them
    /// again.
    @Test func sampleFiles_matchTheSettings() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent()
            .deletingLastPathComponent()
        let inputs = PostfixInputs(
            relayDomains: ["relay.example"], socket: "inet:127.0.0.1:8891",
            hostName: "mx.relay.example", fanOut: "127.0.0.1:8892"
        )
        for (name, text) in [
            ("main.cf", PostfixSetup.mainFragment(inputs)),
            ("master.cf", PostfixSetup.masterFragment(inputs)),
        ] {
            let file = root.appendingPathComponent("milter/postfix/\(name)")
            if ProcessInfo.processInfo.environment["POSTERN_UPDATE_SAMPLES"] == "1" {
                try text.write(to: file, atomically: true, encoding: .utf8)
            }
            #expect(try String(contentsOf: file, encoding: .utf8) == text)
        }
    }
}

@Suite(.blocking, needsPostfix) struct SetupApplyTests {
    /// A configuration directory as installed by Debian, with an operator's own values.
    private func directory(_ main: String, master: String = "") throws -> String {
        let folder = try PostfixFixture.makeFolder()
        let text =
            "compatibility_level = 3.6\nmyhostname = mx.relay.example\nmydestination =\n" + main
        try text.write(toFile: folder + "/main.cf", atomically: true, encoding: .utf8)
        let services = """
            smtp      inet  n       -       n       -       -       smtpd
            submission inet n       -       n       -       -       smtpd
              -o milter_macro_daemon_name=ORIGINATING
            cleanup   unix  n       -       n       -       0       cleanup
            qmgr      unix  n       -       n       300     1       qmgr

            """
        try (services + master).write(
            toFile: folder + "/master.cf", atomically: true, encoding: .utf8)
        for name in ["main.cf", "master.cf"] {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -60)],
                ofItemAtPath: "\(folder)/\(name)")
        }
        return folder
    }

    /// A filter is added after Postern, the second run moves it before Postern, and the removal
    /// then removes only Postern.
    @Test func removal_listChangedTwice_takesOursOut() {
        let ours = "inet:127.0.0.1:8891"
        func configuration(_ milters: String) -> PostfixConfiguration {
            var configuration = PostfixConfiguration(
                directory: "/etc/postfix", values: ["smtpd_milters": milters])
            configuration.ownNames = milters.isEmpty ? [] : ["smtpd_milters"]
            return configuration
        }
        var record = SetupRecord()
        for milters in ["", "\(ours), inet:localhost:1"] {
            let inputs = PostfixInputs(
                relayDomains: ["relay.example"], socket: ours, hostName: "mx.relay.example")
            record.add(
                SetupPlan.make(inputs, for: configuration(milters), headerChecks: nil),
                to: configuration(milters))
        }
        let entry = record.main["smtpd_milters"]
        #expect(entry?.before == "inet:localhost:1" && entry?.after == "inet:localhost:1, \(ours)")
        #expect(RemovalPlan(record, for: configuration(ours)).text.contains("- smtpd_milters\n"))
        #expect(
            RemovalPlan(record, for: configuration("inet:localhost:2, \(ours)")).text.contains(
                "  smtpd_milters = inet:localhost:2\n"))
    }

    @Test func plan_tablesOfThisMachine_areAsked() throws {
        let folder = try directory(
            "virtual_alias_maps = proxy:inline:{ {@relay.example = joe@x.example} }\n"
                + "smtpd_recipient_restrictions = check_recipient_access inline:{ relay.example=REJECT }, permit\n"
        )
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let plan = try PostfixSetup.plan(
            relayDomains: ["Relay.example"], socket: "inet:127.0.0.1:8891", directory: folder)
        for conflict in [
            "virtual_alias_maps has @relay.example",
            "smtpd_recipient_restrictions has check_recipient_access",
        ] {
            #expect(plan.conflicts.contains { $0.hasPrefix(conflict) }, "\(plan.conflicts)")
        }
    }

    @Test(arguments: [
        "",
        "smtpd_soft_error_limit = 20000\nsmtpd_hard_error_limit = 20000\n",
        "smtpd_milters = inet:localhost:8891\nnon_smtpd_milters = $smtpd_milters\nvirtual_mailbox_domains = own.example\nvirtual_transport = lmtp:unix:x\n",
        "virtual_mailbox_domains = hash:/etc/postfix/domains\nvirtual_mailbox_maps = hash:/etc/postfix/boxes\ntransport_maps = hash:/etc/postfix/t\n",
    ]) func apply_repeated_changesNothingMore(_ main: String) throws {
        let folder = try directory(main)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let socket = "unix:/run/postern/milter.sock"
        let plan = try PostfixSetup.plan(
            relayDomains: ["Relay.Example", "hide.example"], socket: socket, directory: folder)
        #expect(!plan.isEmpty && plan.conflicts.isEmpty)
        try PostfixSetup.apply(plan, write: writeCheck)
        let again = try PostfixSetup.plan(
            relayDomains: ["relay.example", "hide.example"], socket: socket, directory: folder)
        #expect(again.isEmpty && again.conflicts.isEmpty, "\(again.text)")
        #expect(
            again.text.hasPrefix("Postfix in \(folder) is set up for Postern: nothing to change."))
        // A further relay domain changes only the settings that name the domains.
        let more = try PostfixSetup.plan(
            relayDomains: ["relay.example", "hide.example", "third.example"], socket: socket,
            directory: folder)
        #expect(
            more.mainChanges.allSatisfy { $0.new.contains("third.example") }
                && !more.mainChanges.isEmpty
                && more.masterChanges.isEmpty)
        try PostfixSetup.apply(more, write: writeCheck)
        #expect(
            try PostfixSetup.plan(
                relayDomains: ["relay.example", "hide.example", "third.example"], socket: socket,
                directory: folder
            ).isEmpty)
        // Postfix reads the files without complaints about our settings.
        let check = try ManagedProcess.run("/usr/sbin/postconf", ["-c", folder, "-n"])
        #expect(check.status == 0 && !check.output.contains("warning"), "\(check.output)")
        let master = try String(contentsOfFile: folder + "/master.cf", encoding: .utf8)
        #expect(
            master.contains("milter_macro_daemon_name=internal")
                && master.contains("milter_macro_daemon_name=ORIGINATING"))
    }

    private static func outgoing(_ names: [String]) -> [OutgoingService] {
        names.enumerated().map { index, name in
            OutgoingService(
                name: name, expression: "[a-z]{\(index + 3),9}", address: "127.0.0.\(index + 2)",
                address6: nil, heloName: "\(name).relay.example")
        }
    }

    /// Services, table and parameters are written, changed with the identities, and taken away.
    @Test func apply_outgoingIdentities_followThem() throws {
        let own = "hash:/etc/postfix/senders"
        let folder = try directory("sender_dependent_default_transport_maps = \(own)\n")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func plan(_ names: [String]) throws -> SetupPlan {
            try PostfixSetup.plan(
                relayDomains: ["relay.example"], socket: "inet:127.0.0.1:8891",
                outgoing: Self.outgoing(names), directory: folder)
        }
        func shown(_ option: String, _ name: String) throws -> String {
            try ManagedProcess.run("/usr/sbin/postconf", ["-c", folder, option, name]).output
        }
        for names in [["bulk"], ["bulk", "vip"]] {
            try PostfixSetup.apply(plan(names), write: writeCheck)
            let again = try plan(names)
            #expect(again.isEmpty, "\(again.text)")
            let maps = try shown("-h", "sender_dependent_default_transport_maps")
            #expect(maps.hasPrefix("regexp:{ { /^") && maps.contains("}, \(own)"), "\(maps)")
            #expect(maps.components(separatedBy: "regexp:").count == 2, "\(maps)")
            for name in names {
                #expect(maps.contains("postern-\(name):"))
                #expect(
                    try shown("-P", "postern-\(name)/unix/smtp_helo_name").contains(
                        "\(name).relay.example"))
                #expect(
                    try shown("-P", "postern-\(name)/unix/inet_protocols").contains("= ipv4"))
            }
        }
        // Without identities the operator's own table is left alone, and mail leaves as before.
        try PostfixSetup.apply(plan([]), write: writeCheck)
        #expect(
            try shown("-h", "sender_dependent_default_transport_maps")
                .trimmingCharacters(in: .whitespacesAndNewlines) == own)
        #expect(try plan([]).isEmpty)
    }

    /// A setting that was not set is removed, a changed one gets its value back, and a value that
    /// the operator changed since stays.
    @Test(arguments: [
        "",
        "smtpd_milters = inet:localhost:1\nnon_smtpd_milters = $smtpd_milters\nvirtual_mailbox_domains = own.example\nvirtual_transport = lmtp:unix:x\n",
    ]) func remove_afterApplying_leavesWhatWasThere(_ main: String) throws {
        let folder = try directory(main)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func files() throws -> [String] {
            try ["-n", "-P", "-M"].map {
                try ManagedProcess.run("/usr/sbin/postconf", ["-c", folder, $0]).output
            }
        }
        #expect(try PostfixSetup.removal(directory: folder) == nil)
        let before = try files()
        for domains in [["relay.example"], ["relay.example", "hide.example"]] {
            let plan = try PostfixSetup.plan(
                relayDomains: domains, socket: "inet:127.0.0.1:8891", fanOut: "127.0.0.1:8892",
                directory: folder)
            #expect(plan.conflicts.isEmpty)
            try PostfixSetup.apply(plan, write: writeCheck)
        }
        #expect(try files() != before)
        let removal = try #require(try PostfixSetup.removal(directory: folder))
        #expect(!removal.isEmpty && removal.kept.isEmpty, "\(removal.text)")
        try PostfixSetup.remove(removal, write: writeCheck)
        #expect(
            try files().map { $0.split(separator: "\n").sorted() }
                == before.map { $0.split(separator: "\n").sorted() })
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [
                "main.cf", "master.cf",
            ])
    }

    /// Ends of main.cf and of master.cf to which postconf would append the next setting or service.
    private static let mainEnds: [String] = [
        "", "smtpd_banner = $myhostname ESMTP", "# the end",
        "mynetworks =\n  127.0.0.0/8,\n  [::1]/128",
        "recipient_delimiter = +\r\nalways_bcc =\r\n  ", "smtpd_helo_required = yes\r\n",
        "virtual_transport =",
    ]
    private static let masterEnds: [String] = [
        "", "retry2 unix - - y - - error",
        "127.0.0.1:10025 inet n - n - - smtpd\n  -o smtpd_milters=\n  -o mynetworks=127.0.0.0/8",
        "#qmgr unix n - n 300 1 oqmgr",
        "mailman unix - n n - - pipe\r\n  flags=FR user=list\r\n  argv=/m ${nexthop} ${user}",
    ]

    /// The last line must be ended first: otherwise `myhostname` would become
    /// `mx.relay.examplenon_smtpd_milters = …`.
    @Test(arguments: mainEnds, masterEnds)
    func apply_lastLineWithoutEnd_setsEverythingAndIsTakenBackOctetForOctet(
        main: String, master: String
    ) throws {
        let folder = try directory(main, master: master)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func octets() throws -> [Data] {
            try ["main.cf", "master.cf"].map {
                try Data(contentsOf: URL(filePath: "\(folder)/\($0)"))
            }
        }
        func settings(_ option: String) throws -> Set<Substring> {
            Set(
                try ManagedProcess.run("/usr/sbin/postconf", ["-c", folder, option]).output.split(
                    separator: "\n"))
        }
        func plan() throws -> SetupPlan {
            try PostfixSetup.plan(
                relayDomains: ["relay.example"], socket: "inet:127.0.0.1:8891",
                fanOut: "127.0.0.1:8892", directory: folder)
        }
        let before = try octets()
        let (own, services) = (try settings("-n"), try settings("-F"))
        let first = try plan()
        #expect(first.conflicts.isEmpty)
        try PostfixSetup.apply(first, write: writeCheck)
        let changed = Set(first.mainChanges.map(\.name))
        #expect(
            try settings("-n").isSuperset(
                of: own.filter { !changed.contains(String($0.prefix { $0 != " " })) }))
        #expect(try settings("-n").contains("non_smtpd_milters = inet:127.0.0.1:8891"))
        let rewritten = Set(
            first.masterChanges.map {
                $0.name.split(separator: "/").prefix(2).joined(separator: "/") + "/command"
            })
        #expect(
            try settings("-F").isSuperset(
                of: services.filter { !rewritten.contains(String($0.prefix { $0 != " " })) }))
        #expect(try settings("-F").contains("127.0.0.1:8892/inet/service = 127.0.0.1:8892"))
        #expect(try plan().isEmpty, "a second run would change something")
        let removal = try #require(try PostfixSetup.removal(directory: folder))
        #expect(removal.kept.isEmpty && !removal.isEmpty)
        try PostfixSetup.remove(removal, write: writeCheck)
        #expect(try octets() == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [
                "main.cf", "master.cf",
            ])
    }

    /// Values are restored in a file that the operator changed since, and its other octets stay.
    @Test func remove_fileChangedSince_keepsWhatWasAdded() throws {
        let folder = try directory(
            "smtpd_helo_required = yes", master: "retry2 unix - - y - - error")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func apply(_ domains: [String]) throws {
            let plan = try PostfixSetup.plan(
                relayDomains: domains, socket: "inet:127.0.0.1:8891", directory: folder)
            try PostfixSetup.apply(plan, write: writeCheck)
        }
        func main() throws -> String {
            try String(contentsOfFile: folder + "/main.cf", encoding: .utf8)
        }
        let before = try main()
        try apply(["relay.example"])
        try (try main() + "# mine\nbiff = no").write(
            toFile: folder + "/main.cf", atomically: true, encoding: .utf8)
        try apply(["relay.example", "hide.example"])
        let removal = try #require(try PostfixSetup.removal(directory: folder))
        try PostfixSetup.remove(removal, write: writeCheck)
        #expect(try main() == before + "\n# mine\nbiff = no\n")
        #expect(
            try String(contentsOfFile: folder + "/master.cf", encoding: .utf8).hasSuffix(
                "retry2 unix - - y - - error"))
    }

    @Test func apply_emptyFiles_isRefusedWithoutServicesAndOtherwiseTakenBack() throws {
        let folder = try directory("")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in ["main.cf", "master.cf"] {
            try Data().write(to: URL(filePath: "\(folder)/\(name)"))
        }
        let plan = try PostfixSetup.plan(
            relayDomains: ["relay.example"], socket: "inet:127.0.0.1:8891",
            fanOut: "127.0.0.1:8892", directory: folder)
        // postconf exits with 0 although the service for these parameters does not exist.
        #expect(throws: PostfixToolError.self) { try PostfixSetup.apply(plan, write: writeCheck) }
        for name in ["main.cf", "master.cf"] {
            #expect(try Data(contentsOf: URL(filePath: "\(folder)/\(name)")).isEmpty)
        }
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [
                "main.cf", "master.cf",
            ])
        let services = "smtp inet n - n - - smtpd\ncleanup unix n - n - 0 cleanup"
        try services.write(toFile: "\(folder)/master.cf", atomically: true, encoding: .utf8)
        let other = try PostfixSetup.plan(
            relayDomains: ["relay.example"], socket: "inet:127.0.0.1:8891",
            fanOut: "127.0.0.1:8892", directory: folder)
        try PostfixSetup.apply(other, write: writeCheck)
        let check = try ManagedProcess.run("/usr/sbin/postconf", ["-c", folder, "-n"])
        #expect(check.output.contains("non_smtpd_milters = inet:127.0.0.1:8891\n"))
        let removal = try #require(try PostfixSetup.removal(directory: folder))
        try PostfixSetup.remove(removal, write: writeCheck)
        #expect(try Data(contentsOf: URL(filePath: "\(folder)/main.cf")).isEmpty)
        #expect(try String(contentsOfFile: "\(folder)/master.cf", encoding: .utf8) == services)
    }

    @Test func remove_valueThatWasChangedSince_losesOursOrStaysAndIsNamed() throws {
        let folder = try directory("smtp_line_length_limit = 998\n")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func postconf(_ arguments: String...) throws -> String {
            try ManagedProcess.run("/usr/sbin/postconf", ["-c", folder] + arguments).output
        }
        func apply() throws {
            let plan = try PostfixSetup.plan(
                relayDomains: ["relay.example"], socket: "inet:127.0.0.1:8891", directory: folder)
            try PostfixSetup.apply(plan, write: writeCheck)
        }
        try apply()
        _ = try postconf("-e", "smtp_line_length_limit = 500")
        try apply()
        _ = try postconf("-e", "smtpd_milters = inet:127.0.0.1:2, inet:127.0.0.1:8891")
        _ = try postconf("-e", "virtual_transport = lmtp:unix:x")
        _ = try postconf("-X", "milter_default_action")
        let removal = try #require(try PostfixSetup.removal(directory: folder))
        #expect(removal.kept == ["virtual_transport = lmtp:unix:x"])
        #expect(removal.text.contains("  smtpd_milters = inet:127.0.0.1:2\n"), "\(removal.text)")
        #expect(
            removal.text.contains("  smtp_line_length_limit = 500\n"),
            "what was written since the first time counts")
        try PostfixSetup.remove(removal, write: writeCheck)
        let left = try postconf("-n")
        #expect(
            left.contains("smtpd_milters = inet:127.0.0.1:2\n") && !left.contains("8891"), "\(left)"
        )
        #expect(
            left.contains("virtual_transport = lmtp:unix:x")
                && !left.contains("milter_default_action"))
        // The settings that stayed are still recorded.
        let again = try #require(try PostfixSetup.removal(directory: folder))
        #expect(again.kept == removal.kept && again.isEmpty)
    }

    /// An operator's own mailbox domain next to a relay domain, on a running Postfix: both are
    /// accepted, each in its own way.
    @Test func apply_operatorsOwnDomain_keepsWorking() throws {
        let own = try SMTPSink()
        defer { own.stop() }
        let fixture = try PostfixFixture(
            "on rcpt <nobody@relay.test> 550 5.1.1 unknown\n",
            settings: [
                "virtual_mailbox_domains": "own.test, relay.test",
                "virtual_transport": "smtp:[127.0.0.1]:\(own.port)",
                "virtual_mailbox_maps": "inline:{ { box@own.test = x } }", "transport_maps": "",
            ])
        defer { fixture.stop() }
        let plan = try PostfixSetup.plan(
            relayDomains: ["relay.test"], socket: fixture.socket,
            directory: fixture.postfix.configuration)
        #expect(plan.conflicts.isEmpty && plan.mainChanges.map(\.name).contains("transport_maps"))
        try PostfixSetup.apply(plan, write: writeCheck)
        // Mail at the dead end is read here, without waiting for it.
        try fixture.postfix.set([
            "transport_maps": "inline:{ { relay.test = smtp:[127.0.0.1]:\(fixture.sink.port) } }"
        ])
        let client = try fixture.postfix.connect()
        try client.expect(250, "EHLO client.test")
        try client.expect(250, "MAIL FROM:<a@out.test>")
        #expect(try client.command("RCPT TO:<missing@own.test>").code == 550)
        #expect(
            try client.command("RCPT TO:<nobody@relay.test>").description == "550 5.1.1 unknown")
        try client.expect(250, "RCPT TO:<box@own.test>")
        try client.expect(250, "RCPT TO:<any@relay.test>")
        #expect(try client.data(Array(mail(["From: a@out.test"]).utf8)).code == 250)
        client.quit()
        #expect(try own.wait(for: 1)[0].recipients == ["<box@own.test>"])
        #expect(try fixture.sink.wait(for: 1)[0].recipients == ["<any@relay.test>"])
    }

    /// The reason for the conflict about the chroot.
    @Test func smtpd_chrooted_doesNotReachTheSocket() throws {
        let fixture = try PostfixFixture(services: ["127.0.0.1:{port} inet n - n - - smtpd"])
        defer { fixture.stop() }
        let chroot = "127.0.0.1:\(fixture.postfix.ports[0])/inet/chroot=y"
        #expect(
            try ManagedProcess.run(
                "/usr/sbin/postconf", ["-c", fixture.postfix.configuration, "-F", chroot]
            ).status == 0)
        try fixture.postfix.set(["biff": "no"])
        let client = try SMTPClient(port: fixture.postfix.ports[0])
        defer { client.close() }
        _ = try client.command("EHLO client.test")
        #expect(try client.command("MAIL FROM:<a@out.test>").code == 451)
        try fixture.postfix.waitForLog(containing: "No such file or directory")
        let plan = try PostfixSetup.plan(
            relayDomains: ["relay.test"], socket: fixture.socket,
            directory: fixture.postfix.configuration)
        #expect(plan.conflicts.count == 1)
    }

    @Test func headerCheck_matchesOwnReceivedOnly() throws {
        let folder = try PostfixFixture.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let file = folder + "/checks"
        try PostfixSettings.headerChecks(hostName: "mx.relay.example", mailName: "Postfix").write(
            toFile: file, atomically: true, encoding: .utf8)
        func result(_ header: String) throws -> String {
            try ManagedProcess.run(
                "/usr/sbin/postmap", ["-q", "-", "regexp:\(file)"], input: header + "\n"
            ).output
        }
        let own =
            "Received: from laptop (home.test [192.0.2.1]) by mx.relay.example (Postfix) with ESMTPSA id 4Abc for <x@y>; Fri, 21 Nov 1997 09:55:06 -0600 (CST)"
        #expect(
            try result(own).contains(
                "REPLACE Received: by mx.relay.example (Postfix) with ESMTPSA id 4Abc; Fri, 21 Nov 1997 09:55:06 -0600 (CST)"
            ))
        #expect(try result(own.replacing("mx.relay.example", with: "mxXrelay.example")).isEmpty)
        #expect(try result(own.replacing("Received", with: "X-Received")).isEmpty)
    }
}
