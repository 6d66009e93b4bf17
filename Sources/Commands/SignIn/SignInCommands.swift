// The commands about who someone is: trusted issuers, their tokens, passkeys.

import ArgumentParser

/// In the order of the help.
package enum SignInCommands {
    /// Whose tokens are accepted, and what passkeys are.
    package static var all: [any ParsableCommand.Type] { [IssuerCommand.self, TokenCommand.self, PasskeyCommand.self] }
}
