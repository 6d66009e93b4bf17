// postern attestation: verify by hand what devices attest.

import AppAttest
import ArgumentParser
import CommandSupport
import Foundation
import JSON

struct AttestationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attestation", abstract: "Verify what devices attest.", subcommands: [Verify.self])

    struct Verify: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Verify attestations and assertions of Apple's App Attest.",
            discussion: """
                Reads a JSON object from standard input and prints {"valid": true, …}, or {"valid": false, "error": "CHECK: …"}, \
                which names the check that failed. No installation is needed, and nothing is kept.

                The object is {id, app_id, environment, client_data}, and for an attestation {attestation, key_id, roots, now}, \
                for an assertion {assertion, public_key, counter}. Octets are in hexadecimal, or in base64 as the device gives \
                them. app_id is TEAMID.bundle.id, environment production (the default) or development, roots certificates in \
                DER, now the time in seconds since 1970 or ISO 8601, by default this moment; public_key is the point, \
                uncompressed, and counter the last one, which the new one must exceed.

                An attestation is made over SHA-256 of client_data; one over client_data itself, as in Apple's sample, is \
                accepted too. Without roots every attestation is refused.

                Checks: request, format, certificate, nonce, key-id, authenticator-data, app-id, counter, environment, \
                public-key, signature.

                Exit status 0 valid, 65 not. With --batch, standard input holds an object a line; the answers come in the same \
                order, and the exit status is 0.
                """)

        @Flag(help: "Read requests as JSON lines.") var batch = false

        func run() throws {
            guard batch else {
                let octets = try FileHandle.standardInput.read(upToCount: AttestationLine.maximumLength + 1) ?? Data()
                let answer = Self.answer(Array(octets))
                print(JSONValue.object(answer).text)
                if answer["valid"] != .bool(true) { throw ExitCode(EX_DATAERR) }
                return
            }
            var lines = BatchInput(maximum: AttestationLine.maximumLength)
            while let line = try lines.next() { try BatchOutput.write(line: JSONValue.object(Self.answer(line)).text) }
        }

        private static func answer(_ line: [UInt8]) -> JSONObject {
            AttestationLine.answer(line, now: PosternClock.now()) { try? TimeArgument.seconds($0) }
        }
    }
}
