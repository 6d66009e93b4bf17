// The commands for identities: trusted issuers, their tokens, passkeys and device attestations.

import ArgumentParser

/// In the order of the help.
enum SignInCommands {
    /// Issuers, tokens, passkeys and attestations.
    static var all: [any ParsableCommand.Type] {
        [IssuerCommand.self, TokenCommand.self, PasskeyCommand.self, AttestationCommand.self]
    }
}
