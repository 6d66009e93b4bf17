// The policies in force on this host: compiled once, and updated from the store. An earlier one
// stays if a newer one does not load.

import Accounts
import CEL
import Database
import Logging
import RiskPolicy
import Synchronization

/// Selects the policy for a team or app. A lookup takes one short lock; the caller keeps the
/// policy for its decision.
package final class ActivePolicies: Sendable {
    /// For health checks and metrics.
    package struct Health: Sendable, Equatable {
        /// The policies in force: name, version and hash of each, by name.
        package var serving: [Serving] = []
        /// Problems, one line each; empty if all is well. Contains no private data.
        package var problems: [String] = []
        /// Whether the last read of the store succeeded.
        package var isStoreReachable = true

        package var isHealthy: Bool { problems.isEmpty && isStoreReachable }
    }

    package struct Serving: Sendable, Equatable {
        package let name: String
        package let version: String
        package let hash: String
        package let isDefault: Bool
    }

    /// The current policies for decisions. Immutable.
    private final class Snapshot: Sendable {
        let standard: LoadedPolicy?
        let teams: [Int64: LoadedPolicy]
        let apps: [String: LoadedPolicy]
        let status: LoadedPolicy?
        let health: Health

        init(
            standard: LoadedPolicy?, teams: [Int64: LoadedPolicy], apps: [String: LoadedPolicy],
            status: LoadedPolicy?,
            health: Health
        ) {
            self.status = status
            self.standard = standard
            self.teams = teams
            self.apps = apps
            self.health = health
        }
    }

    /// Used only by `refresh`.
    private struct Progress {
        var revision: Int64 = -1
        /// By name: the policy that decides.
        var good: [String: LoadedPolicy] = [:]
        /// By name: why the policy of this name does not decide.
        var refused: [String: (hash: String, reason: String)] = [:]
        var states: [PolicyHostState] = []
        var reportedAt: Int64 = .min
        var isReported = false
        var isStoreReachable = true
    }

    private let repository: PolicyRepository
    private let host: String?
    private let logger: Logger
    private let snapshot: Mutex<Snapshot>
    private let progress: Mutex<Progress>

    /// Seconds after which a host repeats its report, so that a stopped host can be distinguished
    /// from a working one.
    package static let reportInterval: Int64 = 60

    /// Reads and compiles the policies of the store. If the present policy does not load, the
    /// latest earlier one that loads is used; if none loads, the built-in one. A later `refresh`
    /// reads the policies that cannot be read now.
    /// - Parameter host: this machine's name, as `postern policy list` shows it; nil for a command,
    ///   which ends soon and does not report.
    package init(_ repository: PolicyRepository, host: String?, now: Int64, logger: Logger) {
        self.repository = repository
        self.host = host
        self.logger = logger
        snapshot = Mutex(
            Snapshot(
                standard: nil, teams: [:], apps: [:], status: nil,
                health: Health(problems: [Self.noPolicy])))
        progress = Mutex(Progress())
        refresh(now: now)
    }

    private static let noPolicy =
        "no policy is active, so no decision is possible: activate one with postern policy activate"

    /// Activates the built-in policy in a store without policies; returns whether it did.
    @discardableResult
    package static func installBuiltIn(
        _ repository: PolicyRepository, _ change: Change
    ) throws -> Bool {
        guard try repository.arrangement().standard == nil else { return false }
        return try repository.activate(.builtIn, reach: .everyone, change).isChange
    }

    // MARK: Asking

    /// The policy that decides for an app of a team: the app's own, otherwise the team's, otherwise
    /// the default. Nil only if the installation has no policy: then no decision is possible.
    /// - Parameters:
    ///   - team: the team's number; nil for a team that is not in the store.
    ///   - app: the client_id.
    package func policy(team: Int64?, app: String?) -> LoadedPolicy? {
        let current = snapshot.withLock { $0 }
        if let app, let own = current.apps[app] { return own }
        if let team, let own = current.teams[team] { return own }
        return current.standard
    }

    /// The policy that gives users their status: the one in the store, otherwise the built-in one.
    package var statusPolicy: LoadedPolicy? {
        snapshot.withLock { $0.status } ?? LoadedPolicy.builtInStatus
    }

    /// The live lists named by policies in force, each once.
    package var liveLists: [LiveListName] {
        let current = snapshot.withLock { $0 }
        let policies =
            [current.standard].compactMap { $0 } + current.teams.values + current.apps.values
        return Set(policies.flatMap(\.policy.liveLists)).sorted {
            ($0.name, $0.kind.rawValue) < ($1.name, $1.kind.rawValue)
        }
    }

    package var health: Health { snapshot.withLock { $0.health } }

    // MARK: Following

    /// Reads changes from the store. If something cannot be read or loaded, the policies in force
    /// stay, and health and log report it. Never throws: a host decides in any case.
    package func refresh(now: Int64) {
        progress.withLock { progress in
            do {
                try follow(&progress, now: now)
                if !progress.isStoreReachable {
                    progress.isStoreReachable = true
                    logger.notice("policies can be read again")
                    updateHealth { $0.isStoreReachable = true }
                }
            } catch {
                guard progress.isStoreReachable else { return }
                progress.isStoreReachable = false
                logger.error(
                    "policies cannot be read, the last ones stay in force",
                    metadata: ["detail": "\(error)"])
                updateHealth { $0.isStoreReachable = false }
            }
        }
    }

    private func follow(_ progress: inout Progress, now: Int64) throws {
        // Only for a new revision or before the first read: otherwise nothing changed.
        if try repository.revision() != progress.revision {
            let arrangement = try repository.arrangement()
            for named in arrangement.policies { try take(named, &progress) }
            let names = Set(arrangement.policies.map(\.name))
            progress.good = progress.good.filter { names.contains($0.key) }
            progress.refused = progress.refused.filter { names.contains($0.key) }
            publish(arrangement, &progress, now: now)
            progress.revision = arrangement.revision
            progress.isReported = false
        }
        if let host, !progress.isReported || now >= progress.reportedAt + Self.reportInterval {
            let states = progress.states.map {
                PolicyHostState(
                    host: host, name: $0.name, wanted: $0.wanted, serving: $0.serving,
                    reason: $0.reason, at: now)
            }
            // Reported as soon as it can be written: with a read-only store the host still decides.
            do {
                try repository.report(host: host, states)
                progress.isReported = true
            } catch {
                logger.debug(
                    "the state of the policies cannot be reported yet",
                    metadata: ["detail": "\(error)"])
            }
            progress.reportedAt = now
        }
    }

    /// Ensures that some policy decides under a name.
    private func take(_ named: NamedPolicy, _ progress: inout Progress) throws {
        if progress.good[named.name]?.hash == named.hash {
            if progress.refused.removeValue(forKey: named.name) != nil {
                logger.notice(
                    "the active policy is in force again",
                    metadata: ["policy": "\(named.name)", "version": "\(named.version)"])
            }
            return
        }
        // Already refused and logged: the document of a hash never changes.
        if progress.refused[named.name]?.hash == named.hash, progress.good[named.name] != nil {
            return
        }
        do {
            let loaded = try load(named.hash)
            let isFirst = progress.revision < 0
            progress.good[named.name] = loaded
            progress.refused[named.name] = nil
            logger.log(
                level: isFirst ? .info : .notice, "policy in force",
                metadata: [
                    "policy": "\(loaded.name)", "version": "\(loaded.version)",
                    "hash": "\(StoredPolicy.short(loaded.hash))",
                ])
        } catch let error as PolicyLoadError {
            progress.refused[named.name] = (named.hash, error.message)
            if progress.good[named.name] == nil { progress.good[named.name] = try lastGood(named) }
            let serving = progress.good[named.name]
            logger.error(
                "a policy does not load, an earlier one stays in force",
                metadata: [
                    "policy": "\(named.name)", "hash": "\(StoredPolicy.short(named.hash))",
                    "serving": "\(serving.map { StoredPolicy.short($0.hash) } ?? "the default")",
                    "detail": "\(error.message)",
                ])
        }
    }

    private func load(_ hash: String) throws -> LoadedPolicy {
        let stored: StoredPolicy
        do {
            stored = try repository.policy(hash: hash)
        } catch  where error.isRefusal {
            throw PolicyLoadError(message: "it is no longer in the store")
        }
        return try LoadedPolicy(stored)
    }

    /// For the start of a process, with no policy in memory: the latest earlier policy that loads.
    /// For the default name, the built-in one is the last choice.
    private func lastGood(_ named: NamedPolicy) throws -> LoadedPolicy? {
        for hash in try repository.earlier(named.name) where hash != named.hash {
            if let loaded = try? load(hash) { return loaded }
        }
        return named.isDefault ? try? LoadedPolicy(.builtIn) : nil
    }

    private func publish(_ arrangement: PolicyArrangement, _ progress: inout Progress, now: Int64) {
        let good = progress.good
        let standardName = arrangement.standard?.name
        let standard = standardName.flatMap { good[$0] } ?? snapshot.withLock { $0.standard }
        var teams: [Int64: LoadedPolicy] = [:]
        var apps: [String: LoadedPolicy] = [:]
        for binding in arrangement.bindings {
            guard let policy = good[binding.name], policy.policy.kind == .verification else {
                continue
            }
            switch binding.target {
            case .team: teams[binding.teamNumber] = policy
            case .app(let clientID): apps[clientID] = policy
            }
        }
        var health = Health()
        if standard == nil { health.problems.append(Self.noPolicy) }
        progress.states = arrangement.policies.map { named in
            let serving = good[named.name]
            let reason = progress.refused[named.name]?.reason
            if let serving {
                health.serving.append(
                    Serving(
                        name: named.name, version: serving.version, hash: serving.hash,
                        isDefault: named.isDefault))
            }
            if reason != nil {
                health.problems.append(
                    "policy \(named.name) \(StoredPolicy.short(named.hash)) does not load; "
                        + (serving.map { "\(StoredPolicy.short($0.hash)) decides" }
                            ?? "the default is in force"))
            }
            return PolicyHostState(
                host: host ?? "", name: named.name, wanted: named.hash, serving: serving?.hash,
                reason: reason, at: now)
        }
        let new = Snapshot(
            standard: standard, teams: teams, apps: apps,
            status: arrangement.policies.compactMap { good[$0.name] }.first {
                $0.policy.kind == .status
            }, health: health)
        snapshot.withLock { $0 = new }
    }

    private func updateHealth(_ change: (inout Health) -> Void) {
        snapshot.withLock { current in
            var health = current.health
            change(&health)
            current = Snapshot(
                standard: current.standard, teams: current.teams, apps: current.apps,
                status: current.status, health: health)
        }
    }
}
