// `postern doctor` on a running installation: healthy after set-up, and broken when a setting that
// protects the inbox is removed. Also its findings with a test reply and a test bounce.

import Foundation
import PostfixHarness
import PostfixSetup
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayDoctorTests {
    private func doctor(
        _ fixture: RelayFixture, skip: [String] = ["outside"], _ more: [String] = []
    ) throws -> (status: Int32, output: String) {
        try ManagedProcess.run(
            fixture.program,
            [
                "doctor", "--config-directory", fixture.postfix.configuration, "--config",
                fixture.configuration,
            ]
                + skip.flatMap { ["--skip", $0] } + more
                + fixture.settings)
    }

    private func broken(_ output: String) -> [Substring] {
        output.split(separator: "\n").filter { $0.hasPrefix("broken") }
    }

    private static func world() throws -> RelayFixture {
        try RelayFixtures.anna(
            RelayFixtures.options {
                $0.postfix["smtp_tls_security_level"] = "may"
                $0.parks = true
            }
        ).fixture
    }

    /// For each setting, a value with which it does not fulfil its purpose.
    private static let without = [
        ("virtual_mailbox_domains", ""), ("virtual_transport", "virtual"), ("smtpd_milters", ""),
        ("non_smtpd_milters", ""),
        ("internal_mail_filter_classes", ""), ("milter_default_action", "accept"),
        ("milter_protocol", "2"),
        ("milter_connect_timeout", "1s"), ("milter_command_timeout", "1s"),
        ("milter_content_timeout", "1s"),
        ("soft_bounce", "yes"),
        ("smtpd_discard_ehlo_keywords", ""), ("disable_mime_output_conversion", "no"),
        ("smtp_line_length_limit", "998"),
        ("smtpd_command_filter", ""), ("smtputf8_autodetect_classes", "all"),
        ("strict_smtputf8", "yes"),
        ("smtp_header_checks", ""),
        ("smtp_tls_security_level", "none"), ("message_size_limit", "10240000"),
        ("message_reject_characters", ""),
        ("smtpd_tls_security_level", "none"), ("smtpd_forbid_bare_newline", "no"),
        ("smtpd_forbid_unauth_pipelining", "no"),
    ]

    @Test func doctor_settingTakenAway_namesIt() throws {
        let needed = Set(
            PostfixSettings.main(PostfixInputs(relayDomains: [], socket: "", hostName: "")).map(
                \.name))
        // It must be empty: any table would be the operator's own.
        #expect(needed.subtracting(["virtual_mailbox_maps"]) == Set(Self.without.map(\.0)))
        let fixture = try Self.world()
        defer { fixture.stop() }
        let certificate = try TestCertificate(
            in: fixture.folder, name: "mx", commonName: "mx.relay.example")
        try fixture.postfix.set([
            "smtpd_tls_chain_files": "\(certificate.key), \(certificate.certificate)",
            "smtpd_tls_security_level": "may",
        ])
        let healthy = try doctor(fixture)
        #expect(healthy.status == 0, "\(healthy.output)")
        for (name, value) in Self.without {
            let old = try ManagedProcess.run(
                "/usr/sbin/postconf", ["-c", fixture.postfix.configuration, "-h", name]
            ).output
            try fixture.postfix.set([name: value])
            let found = try doctor(fixture)
            #expect(found.status == 1)
            let lines = broken(found.output)
            #expect(lines.count == 1 && lines[0].contains(name), "\(name): \(found.output)")
            try fixture.postfix.set([name: old.trimmingCharacters(in: .whitespacesAndNewlines)])
        }
        let ofServices = ["smtpd_soft_error_limit=20000", "smtpd_hard_error_limit=20000"].map {
            "127.0.0.1:\(fixture.postfix.port)/inet/\($0)"
        }
        for setting in ["cleanup/unix/milter_macro_daemon_name=internal"] + ofServices {
            let name = String(setting.prefix { $0 != "=" })
            try fixture.postfix.setMaster(name)
            #expect(broken(try doctor(fixture).output).map { $0.contains(name) } == [true])
            try fixture.postfix.setMaster(setting)
        }
        let checks = fixture.postfix.configuration + "/postern_header_checks"
        let rule = try String(contentsOfFile: checks, encoding: .utf8)
        try "".write(toFile: checks, atomically: true, encoding: .utf8)
        #expect(broken(try doctor(fixture).output).map { $0.contains("header check") } == [true])
        try rule.write(toFile: checks, atomically: true, encoding: .utf8)
        #expect(try doctor(fixture).status == 0)
    }

    @Test func doctor_replyAndBounceProbe_leaveNothingBehind() throws {
        let fixture = try Self.world()
        defer { fixture.stop() }
        func traces() throws -> [String] {
            try [
                ["audit", "--json"], ["account", "list", "--json"], ["user", "list", "--json"],
                ["event", "list", "--json"],
            ].map { try fixture.run($0) }
        }
        let before = try traces()
        let found = try doctor(fixture)
        #expect(found.status == 0, "\(found.output)\n\(fixture.postfix.logTail)")
        #expect(
            found.output.contains(
                "ok      a reply that was sent through Postfix and the milter left without the user's address"
            ),
            "\(found.output)")
        #expect(
            found.output.contains("ok      a bounce that Postfix wrote was rebuilt by the milter"),
            "\(found.output)")
        #expect(try traces() == before)
        #expect(fixture.sink.messages.isEmpty, "nothing of it goes to anybody")
        try fixture.postfix.waitUntilDone()
        #expect(try fixture.postfix.queue().isEmpty)
    }

    /// If the settings are not checked, the mail itself shows the missing setting.
    @Test(arguments: [
        ("smtp_header_checks", "a Received field with the client"),
        ("internal_mail_filter_classes", "bypassed the milter, with the inbox in it"),
        ("smtpd_milters", "passed no milter"),
        ("smtpd_discard_ehlo_keywords", "Postfix offers DSN"),
    ]) func doctor_leakInTheProbe_isReported(_ name: String, _ finding: String) throws {
        let fixture = try Self.world()
        defer { fixture.stop() }
        try fixture.postfix.set([name: ""])
        let found = try doctor(fixture, skip: ["outside", "postfix"])
        #expect(found.status == 1)
        #expect(broken(found.output).contains { $0.contains(finding) }, "\(found.output)")
        try fixture.postfix.waitUntilDone()
        #expect(try fixture.postfix.queue().isEmpty)
    }

    /// The filter rejects mail on arrival but not bounces, so a bounce that it should rebuild
    /// cannot be written, and its message waits.
    @Test func doctor_probeLeftInTheQueue_isRemoved() throws {
        let fixture = try Self.world()
        defer { fixture.stop() }
        try fixture.postfix.set(["non_smtpd_milters": "inet:127.0.0.1:1"])
        let found = try doctor(fixture, skip: ["outside", "postfix"], ["--patience", "3"])
        #expect(
            found.status == 1
                && found.output.contains(#/of the probe (was|were) removed from Postfix's queue/#),
            "\(found.output)")
        #expect(try fixture.postfix.queue().isEmpty, "neither its message nor a bounce is left")
        #expect(fixture.sink.messages.isEmpty)
    }

    /// A milter such as rspamd after Postern writes `smtp.mailfrom=` into every answer, but may
    /// skip mail from loopback. The probe must see it.
    @Test func filterBehindPostern_isSeenByTheProbeWhichComesInAsOtherMailDoes() throws {
        let address = try ManagedProcess.run("/bin/hostname", ["-I"]).output.split {
            " \n".contains($0)
        }.first.map(String.init)
        let fixture = try RelayFixtures.anna(
            RelayFixtures.options {
                $0.parks = true
                if let address, !address.contains(":") {
                    $0.services = ["\(address):{port} inet n - n - - smtpd"]
                }
            }
        ).fixture
        defer { fixture.stop() }
        let script = fixture.folder + "/behind"
        try
            "add Authentication-Results mx;\\sspf=pass\\ssmtp.mailfrom=probe-user@user.postern-doctor.invalid\n"
            .write(
                toFile: script, atomically: true, encoding: .utf8)
        let socket = "unix:\(fixture.folder)/behind.sock"
        let filter = try ManagedProcess(
            ManagedProcess.builtProduct("postfix-test-filter"), [socket, script])
        defer { filter.end() }
        try filter.waitForLine(containing: "listening on")
        try #require(chmod(fixture.folder + "/behind.sock", 0o666) == 0)
        let before = try doctor(fixture, skip: ["outside", "postfix"])
        #expect(before.status == 0, "\(before.output)")
        if let address, !address.contains(":") {
            #expect(
                fixture.postfix.log.contains("[\(address)]"),
                "it comes in where other servers' mail does")
        }
        try fixture.postfix.set(["smtpd_milters": "\(fixture.socket), \(socket)"])
        let found = try doctor(fixture, skip: ["outside", "postfix"])
        #expect(
            found.status == 1
                && broken(found.output).contains { $0.contains("the user's address") },
            "\(found.output)")
        let order = try doctor(fixture, skip: ["outside", "probe"])
        #expect(
            broken(order.output).contains { $0.contains("\(socket), \(fixture.socket)") },
            "\(order.output)")
    }

    private func queue(
        _ fixture: RelayFixture, _ words: [String]
    ) throws -> (status: Int32, output: String) {
        try ManagedProcess.run(
            fixture.program,
            ["queue"] + words
                + [
                    "--config-directory", fixture.postfix.configuration, "--config",
                    fixture.configuration,
                ] + fixture.settings)
    }

    /// Mail sent again must pass the milter; postsuper -r skips all milters.
    @Test(arguments: [true, false]) func waitingMail_sentAgain_passesTheMilter(
        _ fansOut: Bool
    ) throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options {
                $0.parks = true
                $0.fansOut = fansOut
            })
        defer { fixture.stop() }
        let milters = try ManagedProcess.run(
            "/usr/sbin/postconf", ["-c", fixture.postfix.configuration, "-h", "smtpd_milters"])
        try fixture.postfix.set(["smtpd_milters": ""])
        for number in 1...2 {
            let text = RelayFixtures.message(
                to: address, id: "\(number)@juice.example", body: ".dot\nNumber \(number)\n")
            #expect(
                try fixture.send(from: "news@juice.example", to: [address], text).data?.code == 250)
        }
        try fixture.send(
            from: "thief@evil.example", to: [address],
            RelayFixtures.message(from: "thief@evil.example", to: address))
        let refusing = try queue(fixture, ["send", "--all"])
        #expect(
            refusing.status == 78 && refusing.output.contains("smtpd_milters is empty"),
            "\(refusing.output)")
        try fixture.postfix.set([
            "smtpd_milters": milters.output.trimmingCharacters(in: .whitespacesAndNewlines)
        ])
        let found = try doctor(fixture, skip: ["outside", "probe"])
        #expect(found.output.contains("postern queue send --all"), "\(found.output)")
        let list = try queue(fixture, ["list"]).output.split(separator: "\n").map {
            $0.split(separator: "\t").map(String.init)
        }
        #expect(list.count == 3 && list.allSatisfy { $0.count == 4 && $0[3] == address }, "\(list)")
        let sent = try queue(fixture, ["send", list[0][0]])
        #expect(sent.status == 0 && sent.output.hasPrefix("\(list[0][0]) sent"), "\(sent.output)")
        let rest = try queue(fixture, ["send", "--all"])
        #expect(rest.status == 1 && rest.output.contains("\(list[1][0]) sent\n"), "\(rest.output)")
        #expect(
            rest.output.contains("\(list[2][0]) kept: \(address): "),
            "nothing proves the third: \(rest.output)")
        let messages = try (1...2).map { try fixture.arrival(for: "anna@home.example", number: $0) }
        for (number, message) in zip(1..., messages) {
            #expect(
                String(decoding: message.data, as: UTF8.self).contains(
                    "\r\n.dot\r\nNumber \(number)\r\n"), "\(message)")
            #expect(message.address("From") != "news@juice.example")
        }
        let left = try fixture.postfix.queue().joined()
        #expect(
            list.map { left.contains($0[0]) } == [false, false, true],
            "what was refused is still there")
        #expect(try queue(fixture, ["send", "4XYZ"]).status == 66)
        #expect(try queue(fixture, ["send"]).status == 64)
    }

    /// If milter.peers does not name Postfix's user, all its connections are ended and mail gets
    /// 451. doctor, which runs as root, must report it.
    @Test func doctor_postfixUserNotInPeers_namesTheRemedy() throws {
        let fixture = try RelayFixtures.anna(
            RelayFixtures.options { $0.settings["milter.peers"] = "nobody" }
        ).fixture
        defer { fixture.stop() }
        let sentence = "Postfix runs as postfix (mail_owner), which milter.peers does not name"
        let line = "write `milter: {peers: [postfix]}` into postern.yaml"
        let found = try doctor(fixture, skip: ["outside", "probe"])
        #expect(
            found.status == 1 && found.output.contains("broken  \(sentence)")
                && found.output.contains(line), "\(found.output)")
        let setup = try ManagedProcess.run(
            fixture.program,
            [
                "setup", "postfix", "--config-directory", fixture.postfix.configuration, "--config",
                fixture.configuration,
            ]
                + fixture.settings)
        #expect(setup.output.contains(sentence) && setup.output.contains(line), "\(setup.output)")
    }

    /// One cause gives one report, and not "set up" followed by "another key file".
    @Test func doctor_postfixNotRunning_isReportedOnce() throws {
        let fixture = try Self.world()
        defer { fixture.stop() }
        let stopped = try ManagedProcess.run(
            "/usr/sbin/postfix", ["-c", fixture.postfix.configuration, "stop"])
        try #require(stopped.status == 0, "\(stopped.output)")
        let found = try doctor(fixture)
        #expect(found.status == 1)
        #expect(
            broken(found.output).count == 1 && broken(found.output)[0].contains("is not running"),
            "\(found.output)")
        #expect(!found.output.contains("is set up") && !found.output.contains("another key file"))
        // Without a check of its settings, no server accepts the mail.
        let unlooked = try doctor(fixture, skip: ["outside", "postfix"])
        #expect(
            broken(unlooked.output).count == 1
                && broken(unlooked.output)[0].contains("mail is not accepted at"),
            "\(unlooked.output)")
    }

    @Test func doctor_probeImpossible_sendsNothing() throws {
        let fixture = try Self.world()
        defer { fixture.stop() }
        // All mail of the relay goes to one place, so no mail waits at a port on which doctor could
        // listen.
        try fixture.postfix.set([
            "transport_maps": "inline:{ { * = smtp:[127.0.0.2]:\(fixture.sink.port) } }"
        ])
        let elsewhere = try doctor(fixture)
        #expect(
            broken(elsewhere.output).map { $0.contains("transport_maps") } == [true],
            "\(elsewhere.output)")
        let unlooked = try doctor(fixture, skip: ["outside", "postfix"])
        #expect(
            unlooked.status == 0 && unlooked.output.contains("does not go to a port of 127.0.0.1"),
            "\(unlooked.output)")
        let blocked = try SMTPSink()
        defer { blocked.stop() }
        try fixture.postfix.set([
            "transport_maps": "inline:{ { * = smtp:[127.0.0.1]:\(blocked.port) } }"
        ])
        let taken = try doctor(fixture)
        #expect(taken.output.contains("cannot be listened on"), "\(taken.output)")
        #expect(try doctor(fixture, ["--smtp", "nowhere"]).status == 64)
        #expect(try doctor(fixture, ["--patience", "0"]).status == 64)
        #expect(fixture.sink.messages.isEmpty && blocked.messages.isEmpty)
    }
}
