// The running service: keys revoked while it serves, many idle connections, metrics for Prometheus,
// and its log.

import Doctor
import Foundation
import Glibc
import PostfixHarness
import Service
import TestSupport
import Testing

@Suite(.blocking) struct LiveTests {
    @Test func apiKey_issuedAndRevokedWhileServing_takesEffect() throws {
        let service = try LiveService()
        try service.run("team", "add", "juice", "--name", "Juice")
        let key = try service.key("juice", "--scope", "sources:read")
        #expect(try eventually { try service.ask("GET", "/v1/sources", key: key).status == 200 })
        let id = String(key.split(separator: "_")[1])
        #expect(try service.run("api-key", "list", "juice").contains(id))
        try service.run("api-key", "revoke", id, "--yes")
        #expect(try eventually { try service.ask("GET", "/v1/sources", key: key).status == 401 })
        #expect(!service.log.contains(key))
    }

    @Test func idleConnections_thousand_doNotBlockMail() throws {
        let service = try LiveService()
        FileDescriptors.raise()
        // Another process holds them: with more than 1,300 open files in this one, Foundation's
        // `Process.run` reads past the end of its list of them, and may crash the whole run.
        let idle = try ManagedProcess(
            "/usr/bin/perl",
            ["-MIO::Socket::INET", "-e", Self.idleConnections, "\(service.port)", "1000"])
        defer { idle.end() }
        try idle.waitForLine(containing: "connected")
        #expect(MilterProbe.ask(service.socket) == .fine)
        #expect(try service.ask("GET", "/readyz").status == 200)
        for _ in 0..<50 { #expect(MilterProbe.ask(service.socket) == .fine) }
    }

    /// This many connections to a port, half of them in the middle of a request; open until the end
    /// of standard input.
    private static let idleConnections = #"""
        my ($port, $count) = @ARGV;
        my @held;
        for my $number (1 .. $count) {
            my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port) or die "connection $number: $!\n";
            syswrite $socket, "GET / HTTP/1.1\r\nHo" if $number % 2;
            push @held, $socket;
        }
        $| = 1;
        print "connected\n";
        <STDIN>;
        """#

    @Test func idleConnections_beyondLimit_areClosedForOthers() throws {
        let service = try LiveService(["http.connections": "10"])
        let silent = try (0..<30).map { _ in try Wire(service.port) }
        #expect(MilterProbe.ask(service.socket) == .fine)
        let status = try withExtendedLifetime(silent) { try service.ask("GET", "/healthz").status }
        #expect(status == 200)
    }

    @Test func metrics_served_passPromtool() throws {
        let service = try LiveService()
        let key = try service.key("--operator", "--scope", "metrics:read")
        #expect(try eventually { try service.ask("GET", "/metrics", key: key).status == 200 })
        let text = try service.ask("GET", "/metrics", key: key).body
        #expect(
            text.contains(
                "postern_http_requests_total{route=\"/metrics\",method=\"GET\",status=\"200\"}"))
        guard let promtool = Promtool.path else {
            print(
                "promtool is not installed (Debian: prometheus): the metrics were not checked with it"
            )
            return
        }
        let result = try ManagedProcess.run(promtool, ["check", "metrics"], input: text)
        #expect(result.status == 0, "\(result.output)")
        #expect(
            try ManagedProcess.run(promtool, ["check", "metrics"], input: "postern_x{ 1\n").status
                != 0)
    }

    @Test func log_requestsWithInbox_neverHoldsIt() throws {
        let inbox = "jane.private@home.example"
        let service = try LiveService(inboxes: [inbox])
        let key = try service.key("--operator", "--scope", "users:read,users:write")
        #expect(try eventually { try service.ask("GET", "/v1/users", key: key).status == 200 })
        #expect(
            try service.ask(
                "POST", "/v1/users", key: key, body: "{\"user\":\"jane\",\"inbox\":\"\(inbox)\"}"
            ).status == 201)
        for (method, path, body) in [
            ("GET", "/v1/users/\(inbox)", nil), ("GET", "/v1/users?cursor=\(inbox)", nil),
            ("GET", "/\(inbox)?\(inbox)", nil),
            ("POST", "/v1/users", "{\"user\":\"\(inbox)\",\"inbox\":\"\(inbox)\"}"),
            ("POST", "/v1/users", "{\"\(inbox)\":1}"),
            ("POST", "/v1/users/jane/inboxes", "{\"inbox\":\"\(inbox)\"}"),
            ("POST", "/v1/users", inbox),
            ("POST", "/v1/users/jane/addresses", "{\"team\":\"\(inbox)\"}"),
            ("POST", "/v1/users/jane/inboxes/1/verification", nil),
        ] as [(String, String, String?)] {
            let answer = try service.ask(method, path, key: key, body: body)
            #expect(
                answer.status >= 400 && answer.status != 500, "\(method) \(path): \(answer.status)")
        }
        let wire = try Wire(service.port)
        let other = try Wire(service.port)
        other.send("GET /healthz HTTP/1.1\r\nHost: \(inbox)\r\nConnection: close\r\n\r\n")
        #expect(other.rest().hasPrefix("HTTP/1.1 400"))
        wire.send(
            "GET /openapi.yaml HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(inbox)\r\nX-Request-Id: \(inbox)\r\nConnection: close\r\n\r\n"
        )
        #expect(wire.rest().contains("HTTP/1.1 "))
        try service.waitForLog("route=/openapi.yaml")
        // Requests of monitoring are logged only if they fail.
        #expect(!service.log.contains("route=/healthz status=200"))
        #expect(!service.log.lowercased().contains(inbox))
        #expect(!service.log.contains("private"))
    }

    @Test func statusCommand_serviceRunning_showsPidAndMilter() throws {
        let service = try LiveService()
        func status() throws -> String {
            try ManagedProcess.run(
                service.program, ["status", "--config", service.folder + "/postern.yaml"]
            ).output
        }
        #expect(try eventually { try status().contains("pid ") })
        let text = try status()
        #expect(text.contains("milter \(service.socket)"))
        #expect(text.contains("operator_address is not set"))
    }
}
