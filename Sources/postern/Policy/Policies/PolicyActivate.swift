// `postern policy activate` and `rollback`: activate a policy, and undo an activation.

import Accounts
import ArgumentParser
import Decisions
import Foundation
import RiskPolicy
import Support

struct PolicyActivate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activate",
        abstract: "Check a policy and put it in force.",
        discussion: """
            Runs the checks of postern policy check, and tests the guarantees on 50,000 generated inputs and the last 10,000 \
            logged decisions. If the policy is refused, nothing is changed, the exit status is 1, and postern policy list \
            shows the refusal. If it is activated, it is copied into the store: the folder is not read again, and every host \
            uses the policy within five seconds.

            A policy replaces the active policy of the same name. A policy with a new name becomes the default for all teams \
            and apps without a binding, unless a team or app is bound to it; --only-bound and --everyone override this. A \
            policy with 'decides: status' serves everyone. postern policy rollback undoes an activation.
            """)

    @Argument(
        help:
            "The policy's folder, the beginning of a hash that the store holds, or default (the policy in the program).",
        completion: .directory, transform: filePath)
    var folder: String

    @Flag(help: "Keep the default: this policy serves only teams and apps that are bound to it.")
    var onlyBound = false

    @Flag(help: "Make it the default even if teams or apps are bound to it.")
    var everyone = false

    @OptionGroup var installation: InstallationOptions

    func validate() throws {
        if onlyBound, everyone {
            throw ValidationError("--only-bound and --everyone contradict each other.")
        }
    }

    func run() throws {
        try installation.withStore { store in
            let policies = store.policies
            let known = try policies.policies()
            let stored = ReferredPolicy.isFolder(folder) ? try candidate(store) : try kept(store)
            let isStatus = stored.name == PolicyKind.statusName
            guard !isStatus || !(onlyBound || everyone) else {
                throw CommandError.usage(
                    "a status policy serves everyone: leave --only-bound and --everyone out")
            }
            if onlyBound, let standard = try policies.arrangement().standard,
                standard.name.hasSameOctets(as: stored.name)
            {
                throw CommandError.usage(
                    "\(stored.name) is the default policy, and decides for all teams and apps without a binding: leave --only-bound out, or "
                        + "give the policy another name; nothing was changed")
            }
            if isStatus,
                try !policies.arrangement().policies.contains(where: { $0.name == stored.name })
            {
                // Then a rollback has an earlier status policy to return to.
                _ = try policies.activate(.builtInStatus, reach: .status, thisChange())
            }
            let result = try policies.activate(
                stored,
                reach: isStatus ? .status : onlyBound ? .bound : everyone ? .everyone : .automatic,
                thisChange())
            try Self.report(result, policies)
            try Self.adviseOnStatus(store, result)
            try Self.adviseOnContext(store, result)
            if known.contains(where: {
                $0.name == stored.name && $0.version == stored.version && $0.hash != stored.hash
            }) {
                Failure.warn(
                    "\(stored.name) \(stored.version) had a different text before: raise its version, so that the two can be distinguished"
                )
            }
        }
    }

    private func kept(_ store: Store) throws -> StoredPolicy {
        let policies = store.policies
        if folder.utf8.elementsEqual(ReferredPolicy.builtInName.utf8) { return .builtIn }
        if folder.utf8.elementsEqual(PolicyKind.statusName.utf8) { return .builtInStatus }
        let isHash =
            folder.utf8.allSatisfy { "0123456789abcdefABCDEF".utf8.contains($0) }
            || folder.hasPrefix("sha256:")
        guard isHash, !FileManager.default.fileExists(atPath: folder) else {
            throw CommandError.noInput(
                "\(PolicyFolder(path: folder).file(PolicyDocument.policyFile)): no such file")
        }
        let referred = try ReferredPolicy(hash: try policies.resolve(folder), in: policies)
        // A service loads every policy that was accepted before. Here the policy must be accepted
        // again.
        _ = try referred.candidate.document.policy(options: .onThisMachine)
        try ListCheck.hold(referred.candidate.policy, store, file: PolicyDocument.policyFile)
        return try policies.policy(hash: referred.hash)
    }

    /// Checks the folder. A refusal is recorded before the command ends.
    private func candidate(_ store: Store) throws -> StoredPolicy {
        let policies = store.policies
        let files = PolicyFolder(path: folder)
        var name = URL(filePath: folder).lastPathComponent
        var version = ""
        do {
            let candidate = try files.load(generatedInputs: PolicyGate.generatedInputs)
            (name, version) = (candidate.policy.name, candidate.policy.version)
            try ListCheck.hold(candidate.policy, store, file: files.file(PolicyDocument.policyFile))
            return try PolicyGate.stored(candidate, of: files, store.decisions)
        } catch let refusal as PolicyRefusal {
            ErrorOutput.write("\(refusal)\n")
            try policies.recordRefusal(
                name: name, version: version, reason: "\(refusal)", thisChange())
            let standard =
                try policies.arrangement().policies.first { $0.name == name }
                ?? policies.arrangement().standard
            let stays =
                standard.map {
                    "; \($0.name) \($0.version) (\(StoredPolicy.short($0.hash))) stays in force"
                } ?? ""
            ErrorOutput.write("postern: \(folder) was not activated\(stays)\n")
            throw ExitCode.failure
        }
    }

    /// Describes the effect of the change on the status of users.
    private static func adviseOnStatus(_ store: Store, _ result: PolicyActivation) throws {
        guard result.isChange, let before = result.replaced,
            let old = try? ReferredPolicy(hash: before, in: store.policies).policy,
            let effect = try StatusEffect(
                from: old,
                to: try ReferredPolicy(hash: result.policy.hash, in: store.policies).policy,
                in: store)
        else { return }
        for sentence in effect.sentences { print(shown(sentence)) }
    }

    /// Lists context values of the last day that the policy cannot read in the form in which apps
    /// send them.
    static func adviseOnContext(_ store: Store, _ result: PolicyActivation) throws {
        let now = result.policy
        guard now.name != PolicyKind.statusName else { return }
        let policy = try ReferredPolicy(hash: now.hash, in: store.policies).policy
        for fault in try PolicyLists.faults(of: policy, in: store.liveLists) {
            Failure.warn(
                "\(fault.sentence); its rules that read it match nothing: \(fault.remedy.text)")
        }
        let advice = try ContextAdvice(store, now: PosternClock.now())
        for sentence in advice.sentences(
            for: policy, label: "\(now.name) \(now.version)", replacing: now.name)
        {
            Failure.warn(sentence)
        }
    }

    /// Prints the policy that decides now and the previous one, and for which teams and apps.
    static func report(_ result: PolicyActivation, _ policies: PolicyRepository) throws {
        let now = result.policy
        let label = "\(now.name) \(now.version) (\(StoredPolicy.short(now.hash)))"
        guard result.isChange else {
            return print("\(label) is in force already; nothing was changed.")
        }
        let bound = try policies.arrangement().bindings.filter { $0.name == now.name }.map(
            \.target.description)
        guard now.name != PolicyKind.statusName else {
            print("\(label) now decides the status of users.")
            return print(
                "Before: \(result.replaced.map(StoredPolicy.short) ?? "none"). postern policy rollback \(now.name) goes back."
            )
        }
        let whom =
            now.isDefault ? "all teams and apps without a binding" : bound.joined(separator: ", ")
        print(
            whom.isEmpty
                ? "\(label) is active, but no team or app is bound to it yet."
                : "\(label) now decides for \(whom).")
        let before =
            result.replacedDefault
            ?? result.replaced.map { "\(now.name) \(StoredPolicy.short($0))" }
        if let before {
            print(
                "Before: \(before). postern policy rollback\(now.isDefault ? "" : " " + now.name) goes back."
            )
        }
        if !now.isDefault, bound.isEmpty { print("Next: postern policy bind TEAM|APP \(now.name)") }
    }
}

struct PolicyRollback: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollback",
        abstract: "Undo the last activation.",
        discussion:
            "Repeat it to go further back. A policy that was rolled back stays in the store, and can be activated by its hash."
    )

    @Argument(help: "The policy's name. By default the default policy.")
    var name: String?

    @OptionGroup var installation: InstallationOptions

    func run() throws {
        try installation.withStore { store in
            // An earlier policy that this program would refuse must not replace one that works.
            _ = try ReferredPolicy(
                hash: store.policies.rollbackTarget(name).hash, in: store.policies)
            let result = try store.policies.rollback(name, thisChange())
            let now = result.policy
            let whom =
                now.isDefault
                ? "all teams and apps without a binding"
                : now.name == PolicyKind.statusName ? "the status of users" : "those bound to it"
            print(
                "\(now.name) \(now.version) (\(StoredPolicy.short(now.hash))) decides again for \(whom)."
            )
            if let hash = result.replaced { print("Taken back: \(StoredPolicy.short(hash))") }
            try PolicyActivate.adviseOnContext(store, result)
        }
    }
}
