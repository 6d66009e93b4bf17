// The commands for the mail relay: setup, checks, explanations, and the keys that it signs with.

import ArgumentParser

/// In the order of the help.
enum MailCommands {
    /// Setup, checks and explanations.
    static var all: [any ParsableCommand.Type] {
        [SetupCommand.self, DoctorCommand.self, QueueCommand.self, TraceCommand.self, ExplainCommand.self, VerifyCommand.self]
    }
    /// The keys that sign the mail.
    static var keys: [any ParsableCommand.Type] { [DKIMCommand.self] }
}
