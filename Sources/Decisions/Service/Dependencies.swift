// What the service needs from others: policies, tokens, threads.

import SignIn

/// Which policy decides.
package protocol PolicySource: Sendable {
    /// The policy for an app of a team; nil where the installation has none at all.
    func policy(team: Int64?, app: String?) -> LoadedPolicy?
}

extension ActivePolicies: PolicySource {}

/// One policy for everyone: the sandbox, tests.
extension LoadedPolicy: PolicySource {
    package func policy(team: Int64?, app: String?) -> LoadedPolicy? { self }
}

/// Verifies identity tokens.
package protocol IdentityTokenVerifying: Sendable {
    /// Throws `TokenVerificationFailure`, and what the directory of issuers throws.
    func verify(_ token: String, audience: String, nonce: ExpectedNonce?, now: Int64) async throws -> VerifiedToken
}

extension TokenVerifier: IdentityTokenVerifying {}

/// Runs blocking calls.
package protocol BlockingExecutor: Sendable {
    /// Runs `body` where it may block.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value
}

/// Runs on the caller's thread: for commands, which have nothing else to do.
package struct InlineExecutor: BlockingExecutor {
    package init() {}
    package func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value { try body() }
}
