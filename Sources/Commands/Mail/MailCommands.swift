// The commands about the relay beside Postfix: set up, checked, explained, and the keys that it signs with.

import ArgumentParser

/// In the order of the help.
package enum MailCommands {
    /// Set up, check and explain.
    package static var all: [any ParsableCommand.Type] {
        [SetupCommand.self, DoctorCommand.self, ExplainCommand.self, VerifyCommand.self]
    }
    /// What signs the mail.
    package static var keys: [any ParsableCommand.Type] { [DKIMCommand.self] }
}
