// `postern policy`: everything an administrator does with policies, before and after one goes live.

import ArgumentParser
import CommandSupport

struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Check, test, activate and compare risk policies.",
        discussion: """
            A policy is a folder with policy.yaml and tests.yaml; docs/POLICY.md describes both. From a change to its effect:

              postern policy show --export mine    the files of the policy in force
              postern policy test mine --coverage  does it do what its tests say, and do they say enough?
              postern policy diff mine             what it would decide differently
              postern policy backtest mine         the same for the decisions of the past month
              postern policy activate mine         every host follows within five seconds
              postern policy rollback              back again
            """,
        subcommands: [
            PolicyCheck.self, PolicyTestCommand.self, PolicyExplain.self, PolicyEval.self, PolicyDiffCommand.self,
            PolicyActivate.self, PolicyRollback.self, PolicyBind.self, PolicyUnbind.self, PolicyList.self, PolicyShow.self,
            PolicyBacktest.self, PolicyBench.self, PolicyStats.self,
        ])
}
