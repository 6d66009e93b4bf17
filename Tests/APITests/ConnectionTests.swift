// Clients that are slow, broken or many, over real connections.

import API
import Database
import Foundation
import HTTP
import Hummingbird
import PostfixHarness
import TestSupport
import Testing

/// A listener with short timeout, on a free port.
final class Listener: Sendable {
    let port: UInt16
    /// The route and the status of each request, after its answer was made.
    let answered: AsyncStream<(route: String, status: Int)>
    /// The fixture closes its store.
    private let fixture: APIFixture
    private let task: Task<Void, any Error>

    init(
        _ fixture: APIFixture, certificates: TLSCertificates? = nil,
        proxies: TrustedProxies = TrustedProxies(),
        _ adjust: (inout ConnectionTimeouts) -> Void = { _ in }
    ) async throws {
        self.fixture = fixture
        var settings = APISettings(
            host: "127.0.0.1", port: 0, certificates: certificates, connections: 100,
            proxies: proxies, bodyLimit: 1000)
        adjust(&settings.timeouts)
        let (answered, tell) = AsyncStream<(route: String, status: Int)>.makeStream()
        self.answered = answered
        let (ports, continuation) = AsyncStream<UInt16>.makeStream()
        let service = APIService(
            settings: settings,
            modules: [HealthRoutes(store: fixture.store, pool: fixture.pool), EchoRoutes()],
            keys: fixture.keys,
            clock: fixture.clock,
            logger: fixture.log.logger,
            observe: { route, _, status, _ in tell.yield((route, status)) }
        ) { address in
            continuation.yield(address.split(separator: ":").last.flatMap { UInt16($0) } ?? 0)
        }
        task = Task { try await service.run() }
        port = try #require(await ports.first { _ in true })
    }

    deinit { task.cancel() }
}

struct EchoRoutes: RouteModule {
    func addRoutes(to routes: Routes) {
        routes.open.post("/echo") { request, context -> Hummingbird.Response in
            try await .json(["octets": request.collect(context).readableBytes])
        }
    }
}

@Suite(.blocking) struct ConnectionTests {
    private static func fixture() throws -> APIFixture { try APIFixture { _ in [] } }

    /// Blocking calls stay off the threads of the listener.
    private func exchange(_ port: UInt16, _ text: String) async throws -> String {
        let pool = BlockingPool(.requests, threads: 1)
        defer { Task.detached { await pool.stop() } }
        return try await pool.run {
            let wire = try Wire(port)
            wire.send(text)
            return wire.rest()
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a\r\nX-Sl", "HTTP/1.1 408", "too-slow"),
        (
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 408",
            "too-slow"
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            "HTTP/1.1 408", "too-slow"
        ),
    ]) func request_neverEnds_is408(
        _ text: String, _ status: String, _ problem: String
    ) async throws {
        let listener = try await Listener(Self.fixture()) {
            $0.head = .milliseconds(200)
            $0.body = .milliseconds(200)
        }
        let answer = try await exchange(listener.port, text)
        #expect(answer.hasPrefix(status), "\(answer)")
        #expect(answer.contains("urn:postern:problem:\(problem)"))
        #expect(answer.lowercased().contains("connection: close"))
        #expect(answer.components(separatedBy: "HTTP/1.1 ").count == 2, "one answer, not \(answer)")
    }

    @Test(arguments: [
        ("NONSENSE\r\n\r\n", "HTTP/1.1 400", "malformed"),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 400", "malformed"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "a", count: 20_000) + "\r\n\r\n",
            "HTTP/1.1 431",
            "head-too-large"
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\n" + (0..<150).map { "X-\($0): a\r\n" }.joined() + "\r\n",
            "HTTP/1.1 431",
            "head-too-large"
        ),
        (
            "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            "HTTP/1.1 400", "malformed"
        ),
        (
            "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na",
            "HTTP/1.1 400",
            "malformed"
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", "HTTP/1.1 413",
            "too-large"
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n"
                + String(repeating: "a", count: 2000)
                + "\r\n", "HTTP/1.1 413", "too-large"
        ),
    ]) func request_malformedOrTooLarge_isRefused(
        _ text: String, _ status: String, _ problem: String
    ) async throws {
        let listener = try await Listener(Self.fixture()) {
            $0.body = .seconds(120)
            $0.linger = .milliseconds(200)
        }
        let answer = try await exchange(listener.port, text)
        #expect(answer.hasPrefix(status), "\(answer.prefix(300))")
        #expect(answer.contains("urn:postern:problem:\(problem)"))
    }

    /// A head that begins together with the end of another request must not wait as long as an idle
    /// connection.
    @Test(arguments: ["GET /heal", "GET /healthz HTTP/1.1\r\nHost: a\r\n", "\r\nG"])
    func pipelinedHead_neverEnds_is408(_ rest: String) async throws {
        let listener = try await Listener(Self.fixture()) {
            ($0.head, $0.idle) = (.milliseconds(200), .seconds(600))
        }
        let answer = try await exchange(
            listener.port, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + rest)
        #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
        #expect(answer.contains("HTTP/1.1 408"), "\(answer)")
    }

    @Test func connection_idle_isClosedWithoutAnswer() async throws {
        let listener = try await Listener(Self.fixture()) { $0.idle = .milliseconds(200) }
        // On a busy machine the request may come after the connection's time has ended.
        var kept = ""
        for _ in 0..<100 where kept.isEmpty {
            kept = try await exchange(listener.port, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        }
        #expect(kept.hasPrefix("HTTP/1.1 200") && kept.hasSuffix("{\"status\":\"ok\"}"))
    }

    /// The first time limit alone ends it: with only the idle time, this test would not return.
    @Test func connection_withoutFirstOctet_isClosedWithoutAnswer() async throws {
        let listener = try await Listener(Self.fixture()) {
            $0.first = .milliseconds(200)
            $0.idle = .hours(1)
            $0.head = .hours(1)
        }
        #expect(try await exchange(listener.port, "").isEmpty)
    }

    @Test func connection_handshakeNeverEnds_isClosed() async throws {
        let fixture = try Self.fixture()
        let certificate = try TestCertificate(
            in: fixture.folder.path, name: "http", commonName: "localhost")
        let certificates = try TLSCertificates(
            certificatePath: certificate.certificate, keyPath: certificate.key)
        let listener = try await Listener(fixture, certificates: certificates) {
            $0.handshake = .milliseconds(200)
            $0.first = .hours(1)
            $0.idle = .hours(1)
        }
        // Nothing, and the first octets of a TLS greeting.
        for text in ["", "\u{16}\u{3}\u{1}"] {
            #expect(try await exchange(listener.port, text).isEmpty)
        }
    }

    @Test func connection_silentAfterHandshake_isClosed() async throws {
        let fixture = try Self.fixture()
        let certificate = try TestCertificate(
            in: fixture.folder.path, name: "http", commonName: "localhost")
        let certificates = try TLSCertificates(
            certificatePath: certificate.certificate, keyPath: certificate.key)
        let listener = try await Listener(fixture, certificates: certificates) {
            $0.handshake = .hours(1)
            $0.first = .milliseconds(200)
            $0.idle = .hours(1)
        }
        let pool = BlockingPool(.requests, threads: 1)
        defer { Task.detached { await pool.stop() } }
        let output = try await pool.run { [port = listener.port] in
            let client = try ManagedProcess(
                "/usr/bin/env", ["openssl", "s_client", "-connect", "127.0.0.1:\(port)"])
            // Its input stays open: the listener ends the connection.
            _ = try client.waitForExit()
            return client.output
        }
        #expect(output.contains("BEGIN CERTIFICATE"), "\(output)")
    }

    @Test(arguments: [false, true]) func tls12_withoutForwardSecrecyOrAEAD_isRefused(
        _ isRSA: Bool
    ) async throws {
        let fixture = try Self.fixture()
        let certificate = try TestCertificate(
            in: fixture.folder.path, name: "http", commonName: "localhost", isRSA: isRSA)
        let certificates = try TLSCertificates(
            certificatePath: certificate.certificate, keyPath: certificate.key)
        let listener = try await Listener(fixture, certificates: certificates)
        let pool = BlockingPool(.requests, threads: 1)
        defer { Task.detached { await pool.stop() } }
        func ask(_ options: String...) async throws -> String {
            try await pool.run { [port = listener.port] in
                let client = try ManagedProcess(
                    "/usr/bin/env",
                    ["openssl", "s_client", "-connect", "127.0.0.1:\(port)"] + options)
                client.writeInput(
                    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                _ = try client.waitForExit()
                return client.output
            }
        }
        let kind = isRSA ? "RSA" : "ECDSA"
        for good in ["ECDHE-\(kind)-AES128-GCM-SHA256", "ECDHE-\(kind)-CHACHA20-POLY1305"] {
            let answer = try await ask("-tls1_2", "-cipher", good)
            #expect(answer.contains("HTTP/1.1 200"), "\(good)")
            // A browser that used https must return by https.
            #expect(answer.lowercased().contains("strict-transport-security: max-age=31536000"))
        }
        #expect(try await ask("-tls1_3").contains("HTTP/1.1 200"))
        for bad in [
            "AES128-SHA:AES256-SHA", "AES128-GCM-SHA256:AES256-GCM-SHA384",
            "ECDHE-\(kind)-AES128-SHA:ECDHE-\(kind)-AES256-SHA",
        ] {
            #expect(
                !(try await ask("-tls1_2", "-cipher", bad + ":@SECLEVEL=0").contains("HTTP/1.1 200")),
                "\(bad)")
        }
    }

    @Test(arguments: [
        ("", "400"), ("Host: a\r\nHost: a\r\n", "400"), ("Host: a\r\nhost: b\r\n", "400"),
        ("Host: a b\r\n", "400"),
        ("Host: user@a\r\n", "400"), ("Host: a/b\r\n", "400"), ("Host: a, b\r\n", "400"),
        ("Host: a\r\n", "200"),
        ("Host:\r\n", "200"),
        ("Host: [::1]:8890\r\n", "200"),
    ]) func request_withoutExactlyOneHost_is400(_ fields: String, _ status: String) async throws {
        let listener = try await Listener(Self.fixture())
        let answer = try await exchange(
            listener.port, "GET /healthz HTTP/1.1\r\n\(fields)Connection: close\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 \(status)"), "\(answer)")
        #expect(answer.contains("urn:postern:problem:malformed") == (status == "400"))
        #expect(
            answer.components(separatedBy: "HTTP/1.1 \(status)").count == 2,
            "one answer, not \(answer)")
        // Versions before HTTP/1.1 have no Host.
        #expect(
            try await exchange(listener.port, "GET /healthz HTTP/1.0\r\n\r\n").contains(" 200 "))
    }

    @Test func request_pipelined_isAnsweredInOrder() async throws {
        let listener = try await Listener(Self.fixture())
        let text =
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
            + "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
            + "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        let answer = try await exchange(listener.port, text)
        let bodies = answer.components(separatedBy: "HTTP/1.1 200 OK").dropFirst().compactMap {
            $0.components(separatedBy: "\r\n\r\n").last
        }
        #expect(bodies == ["{\"octets\":3}", "{\"status\":\"ok\"}", "{\"status\":\"ready\"}"])
    }

    @Test func request_slowBody_isNotLoggedAsFault() async throws {
        let fixture = try Self.fixture()
        let listener = try await Listener(fixture) { $0.body = .milliseconds(200) }
        let answer = try await exchange(
            listener.port, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
        #expect(answer.hasPrefix("HTTP/1.1 408"))
        let told = try #require(await listener.answered.first { $0.route == "/echo" })
        #expect(told.status == 408)
        #expect(
            !fixture.log.lines.contains {
                $0.contains("request failed") || $0.contains("status=500")
            }, "\(fixture.log.lines)")
    }

    private static let waiting =
        "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n"

    @Test func expectContinue_bodyWanted_gets100Continue() async throws {
        let listener = try await Listener(Self.fixture()) { $0.body = .seconds(120) }
        let pool = BlockingPool(.requests, threads: 1)
        defer { Task.detached { await pool.stop() } }
        let (word, answer) = try await pool.run { [port = listener.port] in
            let wire = try Wire(port)
            wire.send(Self.waiting + "Content-Length: 3\r\n\r\n")
            let word = wire.next()
            wire.send("abc")
            return (word, wire.rest())
        }
        #expect(word == "HTTP/1.1 100 Continue\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.hasSuffix("{\"octets\":3}"), "\(answer)")
    }

    @Test func expectContinue_bodyNotWanted_getsNo100Continue() async throws {
        let listener = try await Listener(Self.fixture()) { $0.linger = .milliseconds(200) }
        let large = try await exchange(listener.port, Self.waiting + "Content-Length: 1001\r\n\r\n")
        #expect(large.hasPrefix("HTTP/1.1 413"), "\(large)")
        let unknown = try await exchange(
            listener.port, "GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\n\r\n")
        #expect(unknown.hasPrefix("HTTP/1.1 417"), "\(unknown)")
        // HTTP/1.0 has no such expectation (RFC 9110 section 10.1.1). A client that has sent the
        // body needs no answer to it.
        let old = try await exchange(
            listener.port,
            "POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")
        #expect(!old.contains("100 Continue") && old.hasSuffix("{\"octets\":3}"), "\(old)")
    }

    @Test func expectContinue_pipelined_isAnsweredInOrder() async throws {
        let listener = try await Listener(Self.fixture()) { $0.body = .seconds(120) }
        let pool = BlockingPool(.requests, threads: 1)
        defer { Task.detached { await pool.stop() } }
        let first = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab"
        let texts = try await pool.run { [port = listener.port] in
            let wire = try Wire(port)
            wire.send(first + Self.waiting + "Content-Length: 3\r\n\r\n")
            var head = wire.next()
            while !head.hasSuffix("100 Continue\r\n\r\n") { head += wire.next() }
            wire.send("abc")
            return (head, wire.rest())
        }
        #expect(
            texts.0.hasPrefix("HTTP/1.1 200") && texts.0.contains("{\"octets\":2}HTTP/1.1 100"),
            "\(texts.0)")
        #expect(texts.1.hasSuffix("{\"octets\":3}"))
    }

    @Test func request_truncatedBody_is408() async throws {
        let listener = try await Listener(Self.fixture()) { $0.body = .milliseconds(200) }
        let answer = try await exchange(
            listener.port, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc")
        #expect(answer.hasPrefix("HTTP/1.1 408") && !answer.contains("{\"octets\""), "\(answer)")
        let told = try #require(await listener.answered.first { $0.route == "/echo" })
        #expect(told.status == 408)
    }
}
