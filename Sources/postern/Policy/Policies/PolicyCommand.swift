// `postern policy`: everything that an administrator does with policies, before
// and after activation.

import ArgumentParser

struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Check, test, activate and compare risk policies.",
        discussion: """
            A policy is a folder with policy.yaml and tests.yaml; docs/POLICY.md describes both. The steps of a change:

              postern policy show --export mine    writes the files of the policy in force
              postern policy test mine --coverage  runs its tests, and shows what they miss
              postern policy diff mine             shows what it would decide differently
              postern policy backtest mine         the same for decisions of the past month
              postern policy activate mine         every host uses it within five seconds
              postern policy rollback              undoes the activation
            """,
        subcommands: [
            PolicyCheck.self, PolicyTestCommand.self, PolicyExplain.self, PolicyEval.self,
            PolicyDiffCommand.self,
            PolicyActivate.self, PolicyRollback.self, PolicyBind.self, PolicyUnbind.self,
            PolicyList.self, PolicyShow.self,
            PolicyBacktest.self, PolicyBench.self, PolicyStats.self,
        ])
}
