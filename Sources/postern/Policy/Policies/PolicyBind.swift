// `postern policy bind` and `unbind`: give teams and apps their own policy.

import Accounts
import ArgumentParser
import Decisions
import RiskPolicy

/// The team or app that a binding is for.
struct BindingTargetOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp("A team's identifier or an app's client_id.", valueName: "team-or-app"))
    var target: String

    @Flag(help: "It is a team.")
    var team = false

    @Flag(help: "It is an app.")
    var app = false

    func validate() throws {
        if team, app { throw ValidationError("--team and --app contradict each other.") }
    }

    func resolve(_ store: Store) throws -> PolicyBindingTarget {
        team ? .team(target) : app ? .app(target) : try store.policies.target(target)
    }
}

struct PolicyBind: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bind",
        abstract: "Bind a team or an app to its own policy.",
        discussion: """
            The policy must be active: postern policy activate DIR --only-bound activates it without serving anyone else. An \
            app's policy takes precedence over its team's policy, and a team's policy over the default.
            """)

    @OptionGroup var options: BindingTargetOptions
    @Argument(help: "The policy's name.") var policy: String
    @OptionGroup var installation: InstallationOptions

    func run() throws {
        try installation.withStore { store in
            guard policy != PolicyKind.statusName else {
                throw CommandError.usage(
                    "\(policy) decides the status of users, for everyone: it cannot be bound")
            }
            let target = try options.resolve(store)
            try store.policies.bind(target, to: policy, thisChange())
            print("\(policy) now decides for \(target).")
            try ContextAdvice.warn(store)
        }
    }
}

struct PolicyUnbind: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unbind", abstract: "Return a team or an app to the default policy.")

    @OptionGroup var options: BindingTargetOptions
    @OptionGroup var installation: InstallationOptions

    func run() throws {
        try installation.withStore { store in
            let target = try options.resolve(store)
            let after = try store.policies.unbind(target, thisChange())
            print(
                after.map { "\($0) now decides for \(target)." }
                    ?? "No policy is active for \(target) now.")
            try ContextAdvice.warn(store)
        }
    }
}

extension ContextAdvice {
    /// After a change of the policies in force: lists context values of the last day that they
    /// cannot read.
    static func warn(_ store: Store) throws {
        for sentence in try ContextAdvice(store, now: PosternClock.now()).contextTroubles() {
            Failure.warn(sentence)
        }
    }
}
