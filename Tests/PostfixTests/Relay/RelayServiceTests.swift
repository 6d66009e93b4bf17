// The service's other parts for mail that passes a real Postfix: refusals reported to teams, and
// its own mail under TLS.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayServiceTests {
    @Test func refusal_ofTeamsMail_isReportedWithReference() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        try fixture.addTeam("shop", name: "The Shop", source: "shop.example")
        try fixture.run(["address", "off", address])
        let refused = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        let answer = "\(try #require(refused.data))"
        #expect(answer.hasPrefix("550 5.2.1"), "\(answer)")
        let reference = try #require(answer.firstMatch(of: /\[([a-z2-7]{8})\]/)).output.1
        // The same word is in the log, in the answer, and in the report to the team.
        try fixture.process.waitForLine(containing: "ref=\(reference)")
        func rejections(_ team: String) throws -> String {
            let key = try #require(
                try fixture.run(["api-key", "issue", team, "--scope", "rejections:read"]).split(
                    separator: "\n"
                ).first {
                    $0.hasPrefix("pk_")
                })
            return try fixture.ask("/v1/rejections", key: String(key)) {
                $0.contains("\"items\"") && (team != "juice" || $0.contains(reference))
            }
        }
        let told = try rejections("juice")
        #expect(
            told.contains("\"answer\":\"550 5.2.1\"")
                && told.contains("\"source\":\"juice.example\"")
                && told.contains("\"count\":1"), "\(told)")
        #expect(!told.contains("anna") && !told.contains("Hello") && !told.contains("Subject"))
        #expect(try rejections("shop").contains("\"items\":[]"))
    }

    @Test func submission_startTLSConfigured_usesTLS() throws {
        let folder =
            NSTemporaryDirectory() + "postern-starttls-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let certificate = try TestCertificate(
            in: folder, name: "mx", commonName: "mx.relay.example")
        let fixture = try RelayFixture(
            RelayFixtures.options {
                $0.trustsLoopback = true
                $0.postfix = [
                    "smtpd_tls_chain_files": "\(certificate.key), \(certificate.certificate)",
                    "smtpd_tls_security_level": "encrypt",
                    "smtpd_tls_loglevel": "1",
                ]
                $0.settings["mail.submission_tls"] = "starttls"
                $0.settings["mail.trusted_certificates"] = certificate.certificate
            })
        defer { fixture.stop() }
        try fixture.addUser("carl", inboxes: ["carl@home.example"])
        try fixture.run(["inbox", "add", "carl", "second@home.example"] + fixture.settings)
        #expect(
            try fixture.arrival(for: "second@home.example").value("Auto-Submitted")
                == "auto-generated")
        try fixture.postfix.waitForLog(containing: "TLS connection established from")
        // With another authority nothing is sent, and the reason is reported.
        let other = try TestCertificate(in: folder, name: "other", commonName: "other")
        let untrusted = try ManagedProcess.run(
            fixture.program,
            ["inbox", "verify", "carl", "second@home.example", "--config", fixture.configuration]
                + fixture.settings
                + ["--set", "mail.trusted_certificates=\(other.certificate)"])
        #expect(
            untrusted.status != 0 && untrusted.output.contains("no trusted certificate"),
            "\(untrusted.output)")
        #expect(!untrusted.output.contains("second@home.example"))
    }
}

extension RelayFixture {
    /// Sends requests to the HTTP API until an answer is as required; returns its body.
    func ask(_ path: String, key: String, until isIt: (String) -> Bool) throws -> String {
        let line = try process.waitForLine(containing: "listening for HTTP")
        let port = try #require(
            line.firstMatch(of: /address=[^ ]*:([0-9]+)/).flatMap { UInt16($0.output.1) })
        var body = ""
        for _ in 0..<Int(standardTimeout * 20) {
            body = try HTTPClient.get(port: port, path: path, bearer: key)
            if isIt(body) { return body }
            usleep(50_000)
        }
        throw HarnessError("\(path) never said so: \(body)")
    }
}
