// postern verify: whether a signature or an attestation is valid.

import ArgumentParser

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Verify a message, an identity token, a passkey or a device attestation.",
        discussion: """
            Each reads what it verifies from standard input, or from a file, and prints JSON. Nothing is changed, and most \
            need no installation. Without a subcommand, a message is verified.
            """,
        subcommands: [
            VerifyMessage.self, VerifyToken.self, VerifyPasskey.self, VerifyAttestation.self,
        ],
        defaultSubcommand: VerifyMessage.self)
}
