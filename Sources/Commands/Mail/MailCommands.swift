// The commands for the mail relay: setup, checks, explanations, and the keys that it signs with.

import ArgumentParser

/// In the order of the help.
package enum MailCommands {
    /// Setup, checks and explanations.
    package static var all: [any ParsableCommand.Type] {
        [SetupCommand.self, DoctorCommand.self, QueueCommand.self, ExplainCommand.self, VerifyCommand.self]
    }
    /// The keys that sign the mail.
    package static var keys: [any ParsableCommand.Type] { [DKIMCommand.self] }
}
