// `postern config check`: whether the service could start, without starting it.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct ConfigCheckTests {
    private struct Line: Decodable {
        let name: String
        let verdict: String
    }

    /// The checks that fail, and the exit status.
    private func check(
        _ runner: CommandRunner, _ set: String...
    ) throws -> (wrong: [String], status: Int32) {
        let sets = (["milter.socket=unix:\(runner.folder.path)/milter"] + set).flatMap {
            ["--set", $0]
        }
        let result = try runner.run(["config", "check", "--json"] + sets)
        let lines = try JSONDecoder().decode([Line].self, from: Data(result.output.utf8))
        return (lines.filter { $0.verdict == "broken" }.map(\.name), result.status)
    }

    @Test func configCheck_validConfiguration_passesAndWritesNothing() throws {
        let runner = try CommandRunner.initialised()
        let port = try FreePort.next()
        func files() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: runner.folder.path).sorted()
        }
        let before = try files()
        let found = try check(runner, "http.listen=127.0.0.1:\(port)")
        #expect(found.wrong == [] && found.status == 0)
        #expect(try files() == before)
        let text = try runner.succeed(
            "config", "check", "--set", "http.listen=127.0.0.1:\(port)", "--set",
            "milter.socket=unix:\(runner.folder.path)/milter")
        #expect(text.contains("ok      127.0.0.1:\(port) is free"))
    }

    /// A typing error must not stop the mail of every address, and `doctor` must not propose to
    /// write it into Postfix too.
    @Test func relayDomains_withoutOneThatHasAddresses_areRefused() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
        try runner.succeed("address", "issue", "juice", "jane")
        let free = "http.listen=127.0.0.1:\(try FreePort.next())"
        #expect(try check(runner, free) == ([], 0))
        let typing = "relay_domains=relay.exmaple"
        #expect(try check(runner, free, typing) == (["relay_domains"], 78))
        let run = try runner.run(["serve", "--set", typing, "--set", free])
        #expect(run.status == 78)
        #expect(
            run.errors.contains(
                "relay_domains does not have relay.example (1), but relay addresses are there"),
            "\(run.errors)"
        )
        #expect(try check(runner, free, typing, "former_relay_domains=relay.example") == ([], 0))
        // A reload is refused for this, but not because a port is in use.
        #expect(try runner.run(["config", "check", "--reload", "--set", typing]).status == 78)
        #expect(
            try runner.run([
                "config", "check", "--reload", "--set", "milter.socket=unix:/nowhere/at/all",
            ]).status == 0)
    }

    /// The check must fail if the service could not start.
    @Test(arguments: [
        "sign_in.languages", "mail.templates", "page.logo", "sign_in.passkey_roots",
        "events.trusted_certificates",
    ]) func file_thatTheServiceCannotUse_isNamedAsTheServiceNamesIt(_ key: String) throws {
        let runner = try CommandRunner.initialised()
        let free = "http.listen=127.0.0.1:\(try FreePort.next())"
        let issuer = "http.public_url=https://id.example"
        try Data("nonsense".utf8).write(to: runner.folder.appendingPathComponent("file"))
        for place in ["/nope", runner.folder.path + "/file"] {
            #expect(try check(runner, free, issuer, "\(key)=\(place)") == ([key], 78), "\(place)")
            let run = try runner.run(
                [
                    "serve", "--set", free, "--set", issuer, "--set",
                    "milter.socket=unix:\(runner.folder.path)/milter", "--set",
                    "\(key)=\(place)",
                ])
            #expect(run.status == 78, "\(run.errors)")
            #expect(run.errors.contains(place) || run.errors.contains(key), "\(run.errors)")
        }
    }

    @Test func configCheck_startImpossible_namesCauseAndStatus() throws {
        let runner = try CommandRunner.initialised()
        let taken = try CaptureListener()
        defer { taken.stop() }
        #expect(try check(runner, "http.listen=127.0.0.1:\(taken.port)") == (["http"], 78))
        let free = "http.listen=127.0.0.1:\(try FreePort.next())"
        #expect(try check(runner, free, "milter.socket=unix:/nowhere/at/all") == (["milter"], 78))
        #expect(try check(runner, free, "limits.hops=no") == (["configuration"], 78))
        let upstream = [
            "http.public_url=https://id.example", "sign_in.upstream.issuer=https://id.example/x",
            "sign_in.upstream.client_id=x",
            "sign_in.upstream.secret_file=nowhere",
        ]
        #expect(
            try check(runner, free, upstream[0], upstream[1], upstream[2], upstream[3]) == (
                ["sign_in.upstream"], 78
            ))
        // A key that belongs to another certificate.
        let (one, other) = (
            runner.folder.appendingPathComponent("one").path,
            runner.folder.appendingPathComponent("other").path
        )
        for name in [one, other] {
            try #require(
                try ManagedProcess.run(
                    "/usr/bin/openssl",
                    [
                        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout",
                        name + ".key",
                        "-out", name + ".pem", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-days", "90",
                    ]
                ).status == 0)
        }
        let certificate = "http.tls_certificate=\(one).pem"
        #expect(try check(runner, free, certificate, "http.tls_key=\(one).key") == ([], 0))
        #expect(
            try check(runner, free, certificate, "http.tls_key=\(other).key") == (["http key"], 78))
        let keys = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: runner.folder.path).first {
                $0.hasSuffix("postern.keys")
            })
        try FileManager.default.removeItem(at: runner.folder.appendingPathComponent(keys))
        #expect(try check(runner, free) == (["key file"], 78))
    }
}

/// A port at which another program listens.
private final class CaptureListener {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.descriptor = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 1) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    func stop() { close(descriptor) }
}
