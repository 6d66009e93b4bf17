// postern verify passkey: checks a passkey ceremony by hand.

import ArgumentParser
import Foundation
import Support
import WebAuthn

struct VerifyPasskey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "passkey", abstract: "Verify registrations and sign-ins of passkeys.",
        discussion: """
            Reads a JSON object from standard input, a WebAuthn ceremony with all data that its verification needs, and \
            prints {"valid": true, …}, or {"valid": false, "error": "STEP: …"}. No installation is needed, and nothing \
            is kept.

            The object has id, ceremony, rp_id, origins, challenge, user_verification and client_data_json. If ceremony \
            is create, it also has attestation_object and attestation_roots; if it is get, authenticator_data, \
            signature, credential_public_key and sign_count. Octets are in hexadecimal: client data and authenticator \
            data as received, the key in COSE, roots in DER. user_verification is required, preferred or discouraged. \
            Without roots, attestations are not traced to a root. Optional members are top_origins (pages that may frame \
            the page; without it any page may) and now (seconds since 1970, the time for which certificates are checked; \
            without it their dates are not checked).

            The command verifies ES256, ES384, ES512, RS256, Ed25519 and Ed448, and attestations of the formats none, \
            packed, apple, fido-u2f and android-key. The formats tpm, android-safetynet and compound count as none, and \
            are refused if there are roots.

            Exit status 0 if valid, 65 if not. With --batch, standard input has one object per line, the responses come \
            in the same order, and the exit status is 0.
            """)

    @Flag(help: "Read requests as JSON lines.") var batch = false

    func run() throws {
        guard batch else {
            let octets =
                try FileHandle.standardInput.read(upToCount: PasskeyQuestion.maximumLength + 1)
                ?? Data()
            let answer = PasskeyQuestion.answer(Array(octets))
            print(JSONValue.object(answer).text)
            if answer["valid"] != .bool(true) { throw ExitCode(EX_DATAERR) }
            return
        }
        var lines = BatchInput(maximum: PasskeyQuestion.maximumLength)
        while let line = try lines.next() {
            try BatchOutput.write(line: JSONValue.object(PasskeyQuestion.answer(line)).text)
        }
    }
}
