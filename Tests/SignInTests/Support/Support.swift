// Shared parts of these tests: files, keys, and tokens of their own issuer.

import Foundation
import Logging
import SignIn
import Support
import Synchronization
import TestSupport

enum Files {
    static let own = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
    static let vectors = own.appendingPathComponent("Vectors")
    private static let package = own.deletingLastPathComponent().deletingLastPathComponent()

    /// The public test data: `POSTERN_CONFORMANCE`, else ../shared/conformance beside the package.
    static let conformance: URL = {
        if let path = ProcessInfo.processInfo.environment["POSTERN_CONFORMANCE"] {
            return URL(fileURLWithPath: path)
        }
        return package.deletingLastPathComponent().appendingPathComponent("shared/conformance")
    }()

    static var hasConformance: Bool { FileManager.default.fileExists(atPath: conformance.path) }

    /// Python with PyJWT and cryptography: that of `make test-tools`, else the system's; nil if
    /// neither has them.
    static let python: String? = [
        package.appendingPathComponent(".build/test-tools/bin/python3").path, "python3",
    ]
    .first { (try? run([$0, "-c", "import jwt, cryptography"], input: "")) != nil }

    /// Runs a program and returns its output.
    static func run(_ command: [String], input: String) throws -> String {
        try ProgramRun.succeed(command, input: Data(input.utf8)).output
    }
}

/// An issuer with a key for tests.
struct TestIssuer: Sendable {
    static let now: Int64 = 1_790_000_000
    static let iss = "https://issuer.example"
    static let audience = "com.example.juice"

    let key: IdentitySigningKey

    init() async throws { key = try IdentitySigningKey.generate().key }

    func keys() async throws -> JWKSet { JWKSet([key.verificationKey]) }

    static func configuration(
        _ name: String = "test", source: KeySource = .uri("https://issuer.example/keys"),
        algorithms: Set<SignatureAlgorithm> = [.es256, .rs256]
    ) -> IssuerConfiguration {
        IssuerConfiguration(name: name, issuer: iss, source: source, algorithms: algorithms)
    }

    static var claims: JSONObject {
        [
            "iss": .string(iss), "aud": .string(audience), "sub": "001999.0a1b2c.1200",
            "iat": .integer(now - 10),
            "exp": .integer(now + 600),
        ]
    }

    func token(_ change: (inout JSONObject) -> Void = { _ in }) throws -> String {
        var claims = Self.claims
        change(&claims)
        return try key.sign(claims)
    }
}

/// A clock that moves only when the test moves it.
final class ManualClock: Sendable {
    private let time: Mutex<Int64>

    init(_ time: Int64 = TestIssuer.now) { self.time = Mutex(time) }

    var now: @Sendable () -> Int64 { { self.time.withLock { $0 } } }
    func advance(_ seconds: Int64) { time.withLock { $0 += seconds } }
}

let silence = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
