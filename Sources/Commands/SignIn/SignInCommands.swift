// The commands about who someone is: trusted issuers, their tokens, passkeys, and what devices attest.

import ArgumentParser

/// In the order of the help.
package enum SignInCommands {
    /// Whose tokens are accepted, what passkeys are, what devices attest.
    package static var all: [any ParsableCommand.Type] {
        [IssuerCommand.self, TokenCommand.self, PasskeyCommand.self, AttestationCommand.self]
    }
}
