// The routes exactly as `postern serve` has them, over its own installation.

import Accounts
import Decisions
import Foundation
import InternetMessage
import PosternConfiguration
import Service
import Testing

/// An installation with every route of the service, asked without a listener.
final class ServingFixture: Sendable {
    let fixture: APIFixture
    let installation: Installation
    private let decisions: DecisionParts

    /// Writes the decisions, as the service does several times a second.
    func flushDecisions() throws { try decisions.log.flush() }

    /// - Parameter settings: configuration keys.
    init(requestsPerSecond: Int = 100_000, _ settings: [String: String] = [:]) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-serving-\(UUID().uuidString)")
        let change = Change(actor: "uid:0", now: APIFixture.start)
        let path = try Installation.create(
            directory: folder.path, relayDomains: ["relay.example"], change: change)
        let set = settings.merging([
            "provider.issuer": "https://id.relay.example", "hostname": "mx.relay.example",
            "dns.servers": "127.0.0.1:9",
            "dns.timeout_ms": "100", "dns.tries": "1",
        ]) { old, _ in old }
        let installation = try Installation.open(
            flag: path, environment: [:], set: set.map { "\($0.key)=\($0.value)" },
            now: APIFixture.start)
        self.installation = installation
        try ActivePolicies.installBuiltIn(installation.store.policies, change)
        var made: DecisionParts?
        fixture = try APIFixture(
            folder: folder, store: installation.store, requestsPerSecond: requestsPerSecond
        ) { fixture in
            let policies = ActivePolicies(
                installation.store.policies, host: "mx.relay.example", now: APIFixture.start,
                logger: fixture.log.logger)
            var surroundings = Surroundings()
            surroundings.now = fixture.clock.now
            let parts = try ServiceParts(
                installation: installation, surroundings: surroundings, pool: fixture.pool,
                policies: policies,
                logger: fixture.log.logger)
            made = parts.decisions
            return HTTPRoutes.modules(parts)
        }
        decisions = try #require(made)
    }
}
