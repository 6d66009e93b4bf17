// Fetching keys from a real server that misbehaves, and from files.

import AsyncHTTPClient
import Foundation
import NIOSSL
import SignIn
import TestSupport
import Testing

@Suite(.blocking) struct KeySetFetcherTests {
    /// Runs `body` with a server and a fetcher that waits for `deadline` seconds at most.
    private func withServer(
        tls: NIOSSLContext? = nil, deadline: Int64 = 5,
        _ body: (KeyServer, HTTPKeySetFetcher) async throws -> Void
    ) async throws {
        var configuration = HTTPKeySetFetcher.configuration
        // Other tests keep the processors busy for longer than a server may be silent: only the
        // deadline decides.
        configuration.timeout = .init(connect: .seconds(60), read: .seconds(60))
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let server = try await KeyServer.start(tls: tls)
        do {
            try await body(server, HTTPKeySetFetcher(client: client, deadline: deadline))
        } catch {
            await server.stop()
            try await client.shutdown()
            throw error
        }
        await server.stop()
        try await client.shutdown()
    }

    private func reason(_ fetcher: HTTPKeySetFetcher, _ source: KeySource) async -> String {
        do {
            _ = try await fetcher.fetch(source)
            return "fetched"
        } catch {
            return error.reason
        }
    }

    @Test func fetch_document_returnsItAndMaxAge() async throws {
        try await withServer { server, fetcher in
            server.set(
                .document(
                    Array("{\"keys\":[]}".utf8),
                    cacheControl: "public, max-age=900, must-revalidate"))
            let fetched = try await fetcher.fetch(.uri(server.address))
            #expect(fetched == FetchedKeySet(document: Array("{\"keys\":[]}".utf8), maxAge: 900))
            server.set(.document([0x31], cacheControl: nil))
            #expect(try await fetcher.fetch(.uri(server.address)).maxAge == nil)
            server.set(.document([0x31], cacheControl: "no-store"))
            #expect(try await fetcher.fetch(.uri(server.address)).maxAge == 0)
            server.set(.document([0x31], cacheControl: "max-age=99999999999999999999, max-age=-1"))
            #expect(try await fetcher.fetch(.uri(server.address)).maxAge == nil)
        }
    }

    @Test(arguments: [500, 503, 404, 204, 206, 304, 401]) func fetch_otherStatus_fails(
        _ status: Int
    ) async throws {
        try await withServer { server, fetcher in
            server.set(.status(status))
            #expect(await reason(fetcher, .uri(server.address)).contains("\(status)"))
        }
    }

    @Test func fetch_redirect_isNotFollowed() async throws {
        try await withServer { server, fetcher in
            let other = try await KeyServer.start()
            other.set(.document(Array("{\"keys\":[]}".utf8), cacheControl: nil))
            server.set(.redirect(other.address))
            #expect(await reason(fetcher, .uri(server.address)).contains("redirect"))
            #expect(other.count == 0)
            await other.stop()
        }
    }

    @Test(arguments: [KeyServerResponse.hang, .stall, .drip])
    func fetch_serverThatDoesNotEnd_isLeftAtTheDeadline(_ response: KeyServerResponse) async throws
    {
        try await withServer(deadline: 1) { server, fetcher in
            server.set(response)
            #expect(await reason(fetcher, .uri(server.address)) == "no complete response in time")
        }
    }

    /// On a busy machine the deadline passes before there is a connection; the client reports this
    /// with another error.
    @Test func fetch_deadlineBeforeConnection_timesOut() async throws {
        try await withServer(deadline: 0) { server, fetcher in
            server.set(.hang)
            #expect(await reason(fetcher, .uri(server.address)) == "no complete response in time")
        }
    }

    @Test func fetch_endlessBody_isRefused() async throws {
        try await withServer(deadline: 60) { server, fetcher in
            server.set(.stream(JWKSet.maximumLength + 1))
            let tooLong = await reason(fetcher, .uri(server.address))
            #expect(tooLong.contains("longer than"))
            server.set(.stream(JWKSet.maximumLength))
            #expect(await reason(fetcher, .uri(server.address)) == "fetched")
            server.set(.announce(1 << 40))
            #expect(await reason(fetcher, .uri(server.address)).contains("longer than"))
        }
    }

    @Test func fetch_incompleteAnswer_fails() async throws {
        try await withServer { server, fetcher in
            server.set(.cut)
            #expect(await reason(fetcher, .uri(server.address)).contains("failed"))
            server.set(.garbage)
            #expect(await reason(fetcher, .uri(server.address)).contains("failed"))
            let address = server.address
            await server.stop()
            #expect(await reason(fetcher, .uri(address)) != "fetched")
        }
    }

    /// No authority signed the server's own certificate.
    @Test func fetch_unknownCertificate_isRefused() async throws {
        let files = try SelfSigned()
        let tls = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: try NIOSSLCertificate.fromPEMFile(files.certificate).map {
                    .certificate($0)
                },
                privateKey: .privateKey(try NIOSSLPrivateKey(file: files.key, format: .pem))))
        try await withServer(tls: tls) { server, fetcher in
            server.set(.document(Array("{\"keys\":[]}".utf8), cacheControl: nil))
            #expect(await reason(fetcher, .uri(server.address)).contains("failed"))
            #expect(server.count == 0)
        }
        // A client that trusts the certificate is served, so the certificate was the reason for the
        // refusal.
        var configuration = HTTPKeySetFetcher.configuration
        var trust = TLSConfiguration.makeClientConfiguration()
        trust.trustRoots = .file(files.certificate)
        configuration.tlsConfiguration = trust
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        let server = try await KeyServer.start(tls: tls)
        server.set(.document(Array("{\"keys\":[]}".utf8), cacheControl: nil))
        #expect(await reason(HTTPKeySetFetcher(client: client), .uri(server.address)) == "fetched")
        await server.stop()
        try await client.shutdown()
    }

    @Test(arguments: [
        "http://issuer.example/keys", "ftp://issuer.example/keys", "file:///etc/passwd",
        "issuer.example/keys", "https://", "",
        "https://user:secret@issuer.example/keys", "https://issuer.example/keys#x",
        "https://issuer.example/a b", "javascript:1",
        "http://127.0.0.1.evil.example/keys", "http://localhost.evil.example/",
        "http://127.1.1/keys",
        "https://issuer.example/\n",
    ])
    func keySetAddress_unsafe_isNotFetched(_ address: String) async throws {
        #expect(KeySetAddress.objection(address) != nil)
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        #expect(
            await reason(HTTPKeySetFetcher(client: client), .uri(address))
                == KeySetAddress.objection(address))
        try await client.shutdown()
    }

    @Test func keySetAddress_httpsOrLoopback_isAllowed() {
        for address in [
            "https://appleid.apple.com/auth/keys", "https://issuer.example:8443/k?x=1",
            "http://localhost/k",
            "http://127.0.0.2:81/k",
            "http://[::1]:80/k", "HTTPS://ISSUER.EXAMPLE/",
        ] { #expect(KeySetAddress.objection(address) == nil, "\(address)") }
        #expect(
            KeySetAddress.objection("http://keys.internal.example/k", allowingHTTP: true) == nil)
    }

    @Test func fetch_file_isReadAnew() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-keys-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("keys.json")
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HTTPKeySetFetcher.configuration)
        let fetcher = HTTPKeySetFetcher(client: client)
        #expect(await reason(fetcher, .file(file.path)) == "the file cannot be read")
        #expect(await reason(fetcher, .file(folder.path)) == "the file cannot be read")
        try Data("one".utf8).write(to: file)
        #expect(try await fetcher.fetch(.file(file.path)).document == Array("one".utf8))
        try Data("two".utf8).write(to: file)
        #expect(try await fetcher.fetch(.file(file.path)).document == Array("two".utf8))
        #expect(try await fetcher.fetch(.inline("three")).document == Array("three".utf8))
        try await client.shutdown()
    }

    /// The whole way: a server, the fetcher, the cache and the verifier,
    /// through a rotation and an outage.
    @Test func tokenVerifier_rotationAndOutage_keepsVerifying() async throws {
        try await withServer { server, fetcher in
            let clock = ManualClock()
            let (first, second) = (try await TestIssuer(), try await TestIssuer())
            let cache = KeySetCache(fetcher: fetcher, storage: nil, now: clock.now, logger: silence)
            let issuer = TestIssuer.configuration(source: .uri(server.address))
            let verifier = TokenVerifier(issuers: Issuers(issuer: issuer), keys: cache)
            func verify(_ test: TestIssuer) async throws -> String {
                let token = try test.token {
                    $0["iat"] = .integer(clock.now())
                    $0["exp"] = .integer(clock.now() + 60)
                }
                return try await verifier.verify(
                    token, audience: TestIssuer.audience, nonce: nil, now: clock.now()
                ).claims
                    .subject
            }
            server.set(
                .document(
                    PublishedKeys.document([first.key.publicJWK]), cacheControl: "max-age=3600"))
            #expect(try await verify(first) == "001999.0a1b2c.1200")
            server.set(
                .document(
                    PublishedKeys.document([first.key.publicJWK, second.key.publicJWK]),
                    cacheControl: nil))
            #expect(try await verify(second) == "001999.0a1b2c.1200")
            #expect(try await verify(first) == "001999.0a1b2c.1200")
            #expect(server.count == 2)
            server.set(.status(500))
            clock.advance(3 * 86_400)
            #expect(try await verify(second) == "001999.0a1b2c.1200")
            #expect(server.count == 3)
            clock.advance(5 * 86_400)
            await #expect(throws: TokenVerificationFailure.self) { _ = try await verify(second) }
        }
    }

    private struct Issuers: IssuerDirectory {
        let issuer: IssuerConfiguration
        func issuer(_ iss: String) async throws -> IssuerConfiguration? { issuer }
    }
}

/// A certificate for 127.0.0.1 that no one signed, in a folder that goes with it.
private final class SelfSigned {
    private let folder: URL
    var certificate: String { folder.appendingPathComponent("cert.pem").path }
    var key: String { folder.appendingPathComponent("key.pem").path }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        _ = try Files.run(
            [
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj",
                "/CN=keys", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                certificate,
            ], input: "")
    }

    deinit { try? FileManager.default.removeItem(at: folder) }
}
