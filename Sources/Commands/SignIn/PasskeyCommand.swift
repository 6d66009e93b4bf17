// postern passkey: look at passkeys by hand.

import ArgumentParser
import CommandSupport
import Foundation
import JSON
import WebAuthn

struct PasskeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passkey", abstract: "Verify ceremonies of passkeys.", subcommands: [Verify.self])

    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Verify registrations and sign-ins of passkeys.",
            discussion: """
                Reads a JSON object from standard input: a ceremony of WebAuthn with all that it is judged by, and prints \
                {"valid": true, …}, or {"valid": false, "error": "STEP: …"}. No installation is needed, and nothing is kept.

                The object is {id, ceremony, rp_id, origins, challenge, user_verification, client_data_json}, with ceremony create \
                and {attestation_object, attestation_roots}, or get and {authenticator_data, signature, credential_public_key, \
                sign_count}. Octets are in hexadecimal: client data and authenticator data as they came, the key in COSE, roots in \
                DER. user_verification is required, preferred or discouraged. Without roots no attestation is traced to one. \
                Further members are top_origins (pages that may frame the page; any may without it) and now (seconds since 1970, \
                for which certificates are judged; without it their dates are not looked at).

                Verified are ES256, ES384, ES512, RS256, Ed25519 and Ed448, and attestations of the formats none, packed, apple, \
                fido-u2f and android-key; tpm, android-safetynet and compound count as none, and are refused where there are roots.

                Exit status 0 valid, 65 not. With --batch, standard input holds an object a line; the answers come in the same \
                order, and the exit status is 0.
                """)

        @Flag(help: "Read questions as JSON lines.") var batch = false

        func run() throws {
            guard batch else {
                let octets = try FileHandle.standardInput.read(upToCount: PasskeyQuestion.maximumLength + 1) ?? Data()
                let answer = PasskeyQuestion.answer(Array(octets))
                print(JSONValue.object(answer).text)
                if answer["valid"] != .bool(true) { throw ExitCode(EX_DATAERR) }
                return
            }
            var lines = BatchInput(maximum: PasskeyQuestion.maximumLength)
            while let line = try lines.next() { try BatchOutput.write(line: JSONValue.object(PasskeyQuestion.answer(line)).text) }
        }
    }
}
