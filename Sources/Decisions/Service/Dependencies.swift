// The parts that the service needs: policies, tokens, threads.

import SignIn

/// The source of the policy that decides.
package protocol PolicySource: Sendable {
    /// The policy for an app of a team; nil if the installation has no policy.
    func policy(team: Int64?, app: String?) -> LoadedPolicy?
}

extension ActivePolicies: PolicySource {}

/// One policy for all teams and apps: the sandbox, tests.
extension LoadedPolicy: PolicySource {
    package func policy(team: Int64?, app: String?) -> LoadedPolicy? { self }
}

/// Verifies identity tokens.
package protocol IdentityTokenVerifying: Sendable {
    /// Throws `TokenVerificationFailure`, and the errors of the issuer directory.
    func verify(
        _ token: String, audience: String, nonce: ExpectedNonce?, now: Int64
    ) async throws -> VerifiedToken
}

extension TokenVerifier: IdentityTokenVerifying {}

/// Runs blocking calls.
package protocol BlockingExecutor: Sendable {
    /// Runs `body` on a thread that may block.
    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value
}

/// Runs on the caller's thread: for commands, which have no other work.
package struct InlineExecutor: BlockingExecutor {
    package init() {}
    package func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value { try body() }
}
