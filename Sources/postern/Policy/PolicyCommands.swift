// The commands for policies and decisions.

import ArgumentParser

/// In the order of the help.
enum PolicyCommands {
    /// Policies, the lists that they read, decisions, and a service to try them.
    static var all: [any ParsableCommand.Type] {
        [PolicyCommand.self, ListCommand.self, DecideCommand.self, DecisionCommand.self, ReviewCommand.self, SandboxCommand.self]
    }
}
