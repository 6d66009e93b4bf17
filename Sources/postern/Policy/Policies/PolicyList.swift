// `postern policy list`: the policies in force with their teams and apps, hosts that do not use
// them, and the last refusal.

import ArgumentParser
import Decisions
import RiskPolicy

struct PolicyList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract:
            "Show the policies in force with their teams and apps, and why others are not in force.",
        discussion: """
            Below the policies are the hosts that do not use the active policy, with the reason, and the last candidate that \
            was refused, unless a policy was activated since. --history shows every change, and --all every policy in the \
            store.
            """)

    @Flag(help: "Show what was activated, rolled back, bound and refused, the newest first.")
    var history = false

    @Flag(help: "Show every policy that the store keeps.")
    var all = false

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if history, all { throw ValidationError("Give either --history or --all.") }
    }

    func run() throws {
        try installation.withStore { store in
            if history { return try printHistory(store.policies) }
            if all { return try printAll(store.policies) }
            let overview = try Overview(store.policies, now: PosternClock.now())
            if output.json { return try printJSON(overview) }
            Table(
                header: ["POLICY", "VERSION", "HASH", "SINCE", "DECIDES FOR"],
                rows: overview.policies.map {
                    [
                        $0.policy, $0.version, StoredPolicy.short($0.hash), $0.since,
                        $0.decidesFor.joined(separator: ", "),
                    ]
                }
            ).printInReport()
            let troubles = overview.hosts.compactMap { host -> String? in
                if let refusal = host.refusal { return "\(refusal): \(host.reason ?? "")" }
                if host.isSilent { return "host \(host.host) has not reported since \(host.at)" }
                return host.isBehind
                    ? "host \(host.host) uses \(host.policy) \(StoredPolicy.short(host.serving ?? "")) still"
                    : nil
            }
            if !troubles.isEmpty { print("\n" + troubles.joined(separator: "\n")) }
            if let refused = overview.refused {
                print(
                    "\nrefused \(refused.at): \(refused.policy)\(refused.version.isEmpty ? "" : " " + refused.version)\n\(refused.reason)"
                )
            }
        }
    }

    // MARK: Overview

    struct Overview: Encodable {
        struct Row: Encodable {
            let policy: String
            let version: String
            let hash: String
            let since: String
            let isDefault: Bool
            let decidesFor: [String]
        }

        struct Host: Encodable {
            let host: String
            let policy: String
            let wanted: String
            let serving: String?
            let reason: String?
            let at: String
            let isSilent: Bool
            /// Whether the host uses another policy than the active one without having refused it:
            /// it has not read it yet.
            let isBehind: Bool
            /// For people; not part of the JSON.
            let refusal: String?

            enum CodingKeys: String, CodingKey {
                case host, policy, wanted, serving, reason, at, isSilent, isBehind
            }
        }

        struct Refused: Encodable {
            let at: String
            let by: String
            let policy: String
            let version: String
            let reason: String
        }

        let policies: [Row]
        let hosts: [Host]
        let refused: Refused?

        init(_ repository: PolicyRepository, now: Int64) throws {
            let arrangement = try repository.arrangement()
            policies = arrangement.policies.map { policy in
                let bound = arrangement.bindings.filter { $0.name == policy.name }.map(
                    \.target.description)
                return Row(
                    policy: policy.name, version: policy.version, hash: policy.hash,
                    since: timestamp(policy.since),
                    isDefault: policy.isDefault,
                    decidesFor: policy.name == PolicyKind.statusName
                        ? ["the status of users"]
                        : (policy.isDefault ? ["everyone else"] : []) + bound)
            }
            hosts = try repository.hosts().map { state in
                let active = arrangement.policies.first { $0.name == state.name }?.hash
                return Host(
                    host: state.host, policy: state.name, wanted: state.wanted,
                    serving: state.serving, reason: state.reason,
                    at: timestamp(state.at), isSilent: now - state.at > PolicyHostState.silence,
                    isBehind: state.reason == nil && active != nil && state.serving != active,
                    refusal: state.refusal)
            }
            // Only a refusal after the last activation or rollback counts.
            let last = try repository.changes(limit: 20).first {
                [.activate, .rollback, .refuse].contains($0.action)
            }
            refused = last.flatMap { change in
                guard change.action == .refuse else { return nil }
                return Refused(
                    at: timestamp(change.at), by: change.actor, policy: change.name,
                    version: change.version,
                    reason: change.detail)
            }
        }
    }

    // MARK: Other lists

    private func printHistory(_ repository: PolicyRepository) throws {
        let header = ["AT", "BY", "WHAT", "POLICY", "VERSION", "HASH", "BEFORE", "DETAIL"]
        try output.print(try repository.changes(limit: 200), header) { change in
            [
                "at": timestamp(change.at), "by": change.actor, "action": change.action.rawValue,
                "policy": change.name,
                "version": change.version, "hash": change.hash, "before": change.hashBefore,
                "detail": change.detail,
            ]
        } columns: { change in
            [
                timestamp(change.at), change.actor, change.action.rawValue, change.name,
                change.version,
                change.hash.map(StoredPolicy.short) ?? "",
                change.hashBefore.map(StoredPolicy.short) ?? "",
                change.detail.split(separator: "\n").first.map(String.init) ?? "",
            ]
        }
    }

    private func printAll(_ repository: PolicyRepository) throws {
        let active = Set(try repository.arrangement().policies.map(\.hash))
        try output.print(
            try repository.policies(), ["POLICY", "VERSION", "HASH", "SINCE", "STATE"]
        ) {
            [
                "policy": $0.name, "version": $0.version, "hash": $0.hash,
                "added_at": timestamp($0.addedAt),
                "is_active": active.contains($0.hash),
            ] as Members
        } columns: {
            [
                $0.name, $0.version, StoredPolicy.short($0.hash), timestamp($0.addedAt),
                active.contains($0.hash) ? "active" : "",
            ]
        }
    }
}
