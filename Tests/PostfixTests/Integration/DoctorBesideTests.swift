// `postern setup postfix` and `postern doctor` on a Postfix that is used for more than the relay.

import PostfixHarness
import PostfixSetup
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct DoctorBesideTests {
    private func postern(
        _ command: [String], _ fixture: RelayFixture
    ) throws -> (status: Int32, output: String) {
        try ManagedProcess.run(
            fixture.program,
            command + [
                "--config-directory", fixture.postfix.configuration, "--config",
                fixture.configuration,
            ] + fixture.settings)
    }

    /// Set up in the order of docs/INTEGRATION.md: the existing filters come first, and doctor's
    /// own reply and bounce pass them too.
    @Test(.enabled(if: OpenDKIM.isThere, "skipped: opendkim is not installed (make test-tools)"))
    func setup_besideOpenDKIM_putsPosternBehindIt() throws {
        var options = RelayFixtures.options()
        options.parks = true
        options.fansOut = true
        let fixture = try RelayFixture(options)
        defer { fixture.stop() }
        let opendkim = try OpenDKIM()
        defer { opendkim.stop() }
        try opendkim.start(beside: fixture)
        let socket = try #require(opendkim.variables["opendkim"])
        try fixture.postfix.set(["smtpd_milters": socket, "non_smtpd_milters": socket])
        let set = try postern(["setup", "postfix", "--apply"], fixture)
        #expect(set.output.contains("smtpd_milters keeps \(socket), before ours"), "\(set.output)")
        let listed = try ManagedProcess.run(
            "/usr/sbin/postconf",
            ["-c", fixture.postfix.configuration, "-h", "smtpd_milters", "non_smtpd_milters"])
        let both = "\(socket), \(fixture.socket)"
        #expect(listed.output == "\(both)\n\(both)", "\(listed.output)")
        // Copies pass only Postern, as their original has passed opendkim.
        let ofCopies = try ManagedProcess.run(
            "/usr/sbin/postconf",
            [
                "-c", fixture.postfix.configuration, "-P",
                "127.0.0.1:\(fixture.fanOutPort)/inet/smtpd_milters",
            ])
        #expect(ofCopies.output.hasSuffix("= \(fixture.socket)"), "\(ofCopies.output)")
        let found = try postern(["doctor", "--skip", "outside"], fixture)
        #expect(found.status == 0, "\(found.output)\n\(fixture.postfix.logTail)")
        #expect(
            found.output.contains("a bounce that Postfix wrote was rebuilt by the milter"),
            "\(found.output)")
    }

    /// SPF is checked for the addresses from which the smarthost sends, and only the operator knows
    /// these.
    @Test func doctor_smarthost_needsItsAddresses() throws {
        var options = RelayFixtures.options()
        options.zone = """
            {"relay.example": {"TXT": ["v=spf1 include:_spf.provider.example -all"]},
             "_spf.provider.example": {"TXT": ["v=spf1 ip4:198.51.100.0/24 -all"]}, "mx.relay.example": {"A": ["192.0.2.1"]}}
            """
        let fixture = try RelayFixture(options)
        defer { fixture.stop() }
        try Smarthost().start(beside: fixture)
        let place = "[127.0.0.1]:\(fixture.sink.port)"
        func doctor(_ more: [String]) throws -> String {
            try postern(["doctor", "--skip", "local", "--skip", "probe"] + more, fixture).output
        }
        let unnamed = try doctor([])
        #expect(unnamed.contains("mail leaves through \(place)"), "\(unnamed)")
        #expect(
            unnamed.contains("name the addresses that \(place) sends from with --ip"), "\(unnamed)")
        let named = try doctor(["--ip", "198.51.100.25"])
        #expect(named.contains("SPF of relay.example covers 198.51.100.25"), "\(named)")
        #expect(
            !named.contains("PTR"),
            "what a smarthost is called is its operator's business:\n\(named)")
        let other = try doctor(["--ip", "192.0.2.1"])
        #expect(other.contains("SPF of relay.example does not cover 192.0.2.1"), "\(other)")
    }

    /// Settings that doctor needs in addition to the plan must be read too.
    @Test func postfixConfiguration_read_hasRelayhostAndOwner() throws {
        let folder = try ProgramFolder()
        try folder.write(
            "main.cf",
            "place = [smtp.provider.example]\nrelayhost = $place:587\nmail_owner = mail\n")
        try folder.write("master.cf", "")
        let read = try PostfixConfiguration.read(directory: folder.path)
        #expect(read.expanded["relayhost"] == "[smtp.provider.example]:587")
        #expect(read.expanded["mail_owner"] == "mail")
    }
}
