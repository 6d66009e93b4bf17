// `postern policy`: everything an administrator does with policies before one goes live.

import ArgumentParser

struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Check, test and explain risk policies.",
        discussion: "A policy is a folder with policy.yaml and tests.yaml; docs/POLICY.md describes both.",
        subcommands: [PolicyCheck.self, PolicyTestCommand.self, PolicyExplain.self, PolicyEval.self])
}
