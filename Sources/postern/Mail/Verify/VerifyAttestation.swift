// postern verify attestation: checks a device's attestation or assertion by hand.

import ArgumentParser
import Foundation
import Support
import WebAuthn

struct VerifyAttestation: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attestation",
        abstract: "Verify attestations and assertions of Apple's App Attest.",
        discussion: """
            Reads a JSON object from standard input and prints {"valid": true, …}, or {"valid": false, "error": "CHECK: \
            …"}, which names the check that failed. No installation is needed, and nothing is kept.

            The object has id, app_id, environment and client_data; for an attestation also attestation, key_id, roots \
            and now; for an assertion also assertion, public_key and counter. Octets are in hexadecimal, or in base64 as \
            the device gives them. app_id is TEAMID.bundle.id; environment is production (the default) or development; \
            roots are certificates in DER; now is the time in seconds since 1970 or ISO 8601, by default the current \
            time; public_key is the uncompressed point; and counter is the last counter, which the new one must exceed.

            An attestation is made over SHA-256 of client_data. An attestation over client_data itself, as in Apple's \
            sample, is also accepted. Without roots, every attestation is refused.

            Checks: request, format, certificate, nonce, key-id, authenticator-data, app-id, counter, environment, \
            public-key, signature.

            Exit status 0 if valid, 65 if not. With --batch, standard input has one object per line, the responses come \
            in the same order, and the exit status is 0.
            """)

    @Flag(help: "Read requests as JSON lines.") var batch = false

    func run() throws {
        guard batch else {
            let octets =
                try FileHandle.standardInput.read(upToCount: AttestationLine.maximumLength + 1)
                ?? Data()
            let answer = Self.answer(Array(octets))
            print(JSONValue.object(answer).text)
            if answer["valid"] != .bool(true) { throw ExitCode(EX_DATAERR) }
            return
        }
        var lines = BatchInput(maximum: AttestationLine.maximumLength)
        while let line = try lines.next() {
            try BatchOutput.write(line: JSONValue.object(Self.answer(line)).text)
        }
    }

    private static func answer(_ line: [UInt8]) -> JSONObject {
        AttestationLine.answer(line, now: PosternClock.now()) { try? TimeArgument.seconds($0) }
    }
}
