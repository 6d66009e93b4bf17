// The listener with a certificate, and its reload by SIGHUP.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct EncryptedTests {
    /// The answer to an OpenSSL client that trusts only `authority`; its own error if it cannot
    /// connect.
    private func ask(
        _ service: LiveService, trusting authority: String, _ options: [String] = []
    ) throws -> String {
        let client = try ManagedProcess(
            "/usr/bin/env",
            [
                "openssl", "s_client", "-connect", "127.0.0.1:\(service.port)", "-CAfile",
                authority, "-verify_return_error",
                "-verify_ip", "127.0.0.1",
            ]
                + options)
        client.writeInput("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        // Its input stays open, because it would end with it; the answer ends the connection.
        _ = try client.waitForExit()
        return client.output
    }

    @Test func certificate_renewed_isServedAfterReload() throws {
        let folder =
            NSTemporaryDirectory() + "postern-tls-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let certificate = try TestCertificate(in: folder, name: "http", commonName: "first")
        let first = folder + "/first-authority.pem"
        try FileManager.default.copyItem(atPath: certificate.certificate, toPath: first)
        let service = try LiveService([
            "http.tls_certificate": certificate.certificate, "http.tls_key": certificate.key,
        ])
        #expect(try ask(service, trusting: first).contains("HTTP/1.1 200"))
        #expect(try ask(service, trusting: first, ["-tls1_3"]).contains("HTTP/1.1 200"))
        #expect(
            !(try ask(service, trusting: first, ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]).contains(
                "HTTP/1.1 200")))
        // Unencrypted requests get no answer, and TLS clients are still served.
        let wire = try Wire(service.port)
        wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(!wire.rest().contains("200"))

        _ = try TestCertificate(in: folder, name: "http", commonName: "second")
        try service.reload(until: "configuration reloaded")
        #expect(try ask(service, trusting: certificate.certificate).contains("HTTP/1.1 200"))
        #expect(!(try ask(service, trusting: first).contains("HTTP/1.1 200")))

        try Data("-----BEGIN CERTIFICATE-----\nnonsense\n".utf8).write(
            to: URL(fileURLWithPath: folder + "/bad"))
        let good = folder + "/second-authority.pem"
        try FileManager.default.copyItem(atPath: certificate.certificate, toPath: good)
        #expect(rename(folder + "/bad", certificate.certificate) == 0)
        try service.reload(until: "configuration not reloaded, the old one stays in force")
        #expect(try ask(service, trusting: good).contains("HTTP/1.1 200"))
        #expect(!service.log.contains("PRIVATE KEY"))
    }

    /// An unusable HTTP certificate must not stop the service, and with it all mail.
    @Test(arguments: [false, true]) func certificate_thatCannotBeUsed_keepsClientsOutAndNothingElse(
        _ isThere: Bool
    ) throws {
        let folder =
            NSTemporaryDirectory() + "postern-tls-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let certificate = try TestCertificate(in: folder, name: "http", commonName: "first")
        let kept = folder + "/kept.pem"
        try FileManager.default.moveItem(atPath: certificate.certificate, toPath: kept)
        if isThere {
            try Data("nonsense".utf8).write(to: URL(fileURLWithPath: certificate.certificate))
        }
        let service = try LiveService([
            "http.tls_certificate": certificate.certificate, "http.tls_key": certificate.key,
        ])
        #expect(service.log.contains("the HTTP certificate cannot be used"), "\(service.log)")
        let wire = try Wire(service.port)
        wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(wire.rest() == "", "nothing is said in clear")
        try? FileManager.default.removeItem(atPath: certificate.certificate)
        try FileManager.default.copyItem(atPath: kept, toPath: certificate.certificate)
        try service.reload(until: "configuration reloaded")
        #expect(try ask(service, trusting: kept).contains("HTTP/1.1 200"))
    }

    @Test func reload_configurationChanged_appliesOrNamesKeys() throws {
        let service = try LiveService()
        let path = service.folder + "/postern.yaml"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        func edit(_ changes: [(String, String)]) throws {
            try changes.reduce(text) { text, change in
                #expect(text.contains(change.0), "\(change.0)")
                return text.replacingOccurrences(of: change.0, with: change.1)
            }.write(toFile: path, atomically: true, encoding: .utf8)
        }
        _ = try service.ask("GET", "/openapi.yaml")
        try service.waitForLog("route=/openapi.yaml")
        let level = ("  # level: info", "  level: notice")
        try edit([level, ("# operator_address: (none)", "operator_address: ops@operator.example")])
        try service.reload(until: "configuration reloaded")
        // From here on, requests are not logged.
        _ = try service.ask("GET", "/v1/users")
        try edit([level, ("  # connections: 2000", "  connections: 3000")])
        service.signal(SIGHUP)
        try edit([("# operator_address: (none)", "operator_adress: ops@operator.example")])
        try service.reload(until: "configuration not reloaded, the old one stays in force")
        #expect(service.log.contains("did you mean operator_address?"), "\(service.log)")
        #expect(!service.log.contains("route=/v1/users"))
        try edit([("  # connections: 2000", "  connections: 3000")])
        try service.reload(until: "keys=http.connections")
        #expect(try service.ask("GET", "/healthz").status == 200)
    }

    /// libmilter waits for SIGHUP on its own thread. It must survive when the kernel gives it one
    /// of several signals.
    @Test func reload_manyAtOnce_endsNothing() throws {
        let service = try LiveService([:])
        for _ in 0..<300 { service.signal(SIGHUP) }
        try service.reload(until: "configuration reloaded")
        for _ in 0..<300 { service.signal(SIGHUP) }
        try service.reload(until: "configuration reloaded")
        #expect(try service.ask("GET", "/readyz").status == 200)
        #expect(!service.log.contains("milter: stopped"))
    }

    /// Behind a proxy the listener itself has no certificate: the address for clients decides.
    @Test(arguments: ["https://id.example", "http://127.0.0.1"])
    func strictTransportSecurity_publicURLIsHTTPS_isSent(
        _ url: String
    ) throws {
        let service = try LiveService(["http.public_url": url])
        let wire = try Wire(service.port)
        wire.send("GET /healthz HTTP/1.1\r\nHost: id.example\r\nConnection: close\r\n\r\n")
        let answer = wire.rest().lowercased()
        #expect(answer.hasPrefix("http/1.1 200"))
        #expect(
            answer.contains("\r\nstrict-transport-security: max-age=31536000\r\n")
                == url.hasPrefix("https:"), "\(answer)")
    }
}
