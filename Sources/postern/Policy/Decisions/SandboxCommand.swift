// postern sandbox: a decision service for development, only on this machine.

import Accounts
import Decisions
import ArgumentParser
import Rehearsal
import Foundation
import Logging
import Synchronization

struct SandboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sandbox",
        abstract: "Run a decision service, or a double of Sign in with Apple, on loopback, for the development of a backend.",
        discussion: """
            The sandbox has its own store, keys and issuer of identity tokens, in a temporary folder that is removed at the \
            end. It needs no installation and does not change any: its keys are not valid anywhere else.

            POST /sandbox/token issues an identity token with any real_user_status; POST /sandbox/clock sets the clock \
            forward. Test subjects, which are printed at the start, get a fixed response, whatever the policy says. \
            docs/DECISIONS.md has a walk-through.

            With --as apple, it is a double of Sign in with Apple instead, only in memory: sign-in with test users, tokens, \
            keys, notifications, Apple's errors, failures on demand, and a page at / that says why a request was refused. \
            docs/SANDBOX.md has a test suite in ten lines.
            """)

    /// The service that it imitates.
    enum Kind: String, ExpressibleByArgument, CaseIterable { case apple }

    @Option(help: "The port on 127.0.0.1; 0 takes any free one.")
    var port: Int = 8899
    @Option(name: .customLong("app"), help: ArgumentHelp("The client_id of the app.", valueName: "client-id"))
    var clientID = "com.example.app"
    @Option(help: "How tokens carry the nonce: raw or sha256_hex.")
    var nonceForm = "raw"
    @Flag(help: "Accept requests whose tokens have no nonce.")
    var nonceOptional = false
    @Option(help: ArgumentHelp("A policy's folder, instead of the default policy.", valueName: "folder"))
    var policy: String?
    @Option(name: .customLong("as"), help: ArgumentHelp("Imitate another service: apple.", valueName: "service"))
    var kind: Kind?
    @Option(help: ArgumentHelp("With --as apple: teams, clients and test users, in YAML.", valueName: "file"))
    var seed: String?
    @Flag(help: "With --as apple: print the built-in seed and exit.")
    var printSeed = false
    @Flag(help: "With --as apple: the first user signs in without being asked.")
    var auto = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if kind == nil, seed != nil || printSeed || auto {
            throw ValidationError("--seed, --print-seed and --auto go with --as apple.")
        }
        if kind != nil, policy != nil || nonceOptional || nonceForm != "raw" || clientID != "com.example.app" {
            throw ValidationError("--app, --nonce-form, --nonce-optional and --policy do not go with --as apple.")
        }
        guard (0...65_535).contains(port) else { throw ValidationError("--port must be 0 to 65535.") }
        guard AppNonceForm(rawValue: nonceForm) != nil else { throw ValidationError("--nonce-form must be raw or sha256_hex.") }
    }

    private struct Facts: Encodable {
        let url: String
        let clientId: String
        let key: String
        let issuer: String
        let testSubjects: [String: String]
    }

    func run() async throws {
        if kind == .apple { return try await runApple() }
        var settings = Sandbox.Settings(
            port: port, clientID: clientID, nonceForm: AppNonceForm(rawValue: nonceForm) ?? .raw,
            isNonceRequired: !nonceOptional)
        if let policy {
            let candidate = try PolicyFolder(path: policy).candidate()
            settings.policy = LoadedPolicy(
                policy: candidate.policy,
                hash: StoredPolicy(
                    name: candidate.policy.name, version: candidate.policy.version, document: candidate.document.octets
                ).hash)
        }
        var logger = Logger(label: "postern") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        let json = output.json
        let announcement = Announcement()
        try await Sandbox.run(settings, now: PosternClock.now, logger: logger) { facts in
            announcement.make {
                guard json else { return print(Self.introduction(facts)) }
                try printJSON(
                    Facts(
                        url: facts.url, clientId: facts.clientID, key: facts.key, issuer: facts.issuer,
                        testSubjects: Dictionary(uniqueKeysWithValues: CannedResponse.subjects.map { ($0.name, $0.purpose) })))
            }
        }
        try announcement.check()
    }

    /// What is printed once a sandbox listens. No one can use one whose address and key could not be written: it ends.
    final class Announcement: Sendable {
        private let failure = Mutex<(any Error)?>(nil)

        func make(_ show: () throws -> Void) {
            do {
                try show()
                try finishOutput()
            } catch {
                failure.withLock { $0 = error }
                kill(getpid(), SIGTERM)
            }
        }

        /// Throws why nothing could be printed.
        func check() throws {
            if let failure = failure.withLock({ $0 }) { throw failure }
        }
    }

    /// The text that is shown while it runs.
    private static func introduction(_ facts: SandboxFacts) -> String {
        let width = (CannedResponse.subjects.map(\.name.count).max() ?? 0) + 2
        let subjects = CannedResponse.subjects.map { subject in
            "  " + subject.name.padding(toLength: width, withPad: " ", startingAt: 0) + subject.purpose
        }
        return """
            The sandbox listens on \(facts.url). Everything in it is deleted when it ends (Ctrl-C).

              URL=\(facts.url)
              KEY=\(facts.key)

            A sign-up by a user about whom nothing is known (real_user_status 1):

              TOKEN=$(curl -s $URL/sandbox/token -H 'Content-Type: application/json' \\
                -d '{"sub": "jane", "real_user_status": 1, "nonce": "n-1"}' | jq -r .identity_token)
              curl -s $URL/v1/decisions -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
                -d '{"event": "sign_up", "client_id": "\(facts.clientID)", "identity_token": "'$TOKEN'", "nonce": "n-1"}'

            A sign-in, later:

              curl -s $URL/sandbox/clock -H 'Content-Type: application/json' -d '{"advance": 86400}'
              curl -s $URL/v1/decisions -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
                -d '{"event": "sign_in", "client_id": "\(facts.clientID)", "sub": "jane"}'

            These subjects get a fixed answer, whatever the policy says:

            \(subjects.joined(separator: "\n"))
            """
    }
}
