// Policies that are activated, rolled back and bound while the service runs.

import RiskDecisions
import ServiceLifecycle

/// Looks every two seconds whether other policies are to decide, by this host's administrator or another one's.
package struct PolicyService: Service {
    private let policies: ActivePolicies
    private let now: @Sendable () -> Int64

    package init(policies: ActivePolicies, now: @escaping @Sendable () -> Int64) {
        self.policies = policies
        self.now = now
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                try? await Task.sleep(for: .seconds(2))
                policies.refresh(now: now())
            }
        }
    }
}
