// postern sandbox: all of Postern for development, in one process and only on this machine.

import Accounts
import ArgumentParser
import Decisions
import Foundation
import Logging
import Rehearsal
import Synchronization

struct SandboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sandbox",
        abstract:
            "Run all of Postern, or a double of Sign in with Apple, on loopback, for the development of an app.",
        discussion: """
            The sandbox is a whole installation in one process: decisions, sign-in with its page, events, relayed mail and \
            self-service, with a team, an app, its credentials and two users. It needs no Postfix, no DNS, no root and no \
            configuration. Everything is in a private temporary folder, which is removed at the end; the next start removes \
            the folder of a killed one. Its keys are not valid anywhere else.

            At the start it prints what an app needs. From then on each message that arrives, on either side, is a line with \
            its sign-in code, and each refused request is a line with the reason. The page /sandbox shows both.

            Orders below /sandbox add users and DNS records, set the clock forward, make parts of the service fail or hang, \
            send mail, and reset everything. Test subjects, which are printed at the start, get a fixed decision, independent \
            of the policy. docs/SANDBOX.md lists all orders; docs/START.md has a first half hour.

            With --as apple, it is a double of Sign in with Apple instead, only in memory: sign-in with test users, tokens, \
            keys, notifications, Apple's errors, failures on demand, and a page at / that says why a request was refused.
            """)

    /// The standard ports, which are in the documents.
    private static let standardPort = 8899
    private static let standardSMTPPort = 8825

    /// The service that it imitates.
    enum Kind: String, ExpressibleByArgument, CaseIterable { case apple }

    @Option(help: "The port on 127.0.0.1; 0 takes any free one.")
    var port: Int = standardPort
    @Option(
        help:
            "The port for mail on 127.0.0.1. By default 8825 beside port 8899, otherwise any free one."
    )
    var smtpPort: Int?
    @Option(
        name: .customLong("app"),
        help: ArgumentHelp("The client_id of the app.", valueName: "client-id"))
    var clientID = "com.example.app"
    @Option(
        name: .customLong("redirect-uri"),
        help: ArgumentHelp(
            "A redirect URI of the app besides those on loopback; may be repeated.",
            valueName: "uri"))
    var redirectURIs: [String] = []
    @Option(help: "How tokens carry the nonce: raw or sha256_hex.")
    var nonceForm = "raw"
    @Flag(help: "Accept requests whose tokens have no nonce.")
    var nonceOptional = false
    @Option(
        help: ArgumentHelp(
            "A policy's folder, instead of the default policy.", valueName: "folder"),
        transform: filePath)
    var policy: String?
    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("Imitate another service: apple.", valueName: "service"))
    var kind: Kind?
    @Option(
        help: ArgumentHelp(
            "With --as apple: teams, clients and test users, in YAML.", valueName: "file"),
        transform: filePath)
    var seed: String?
    @Flag(help: "With --as apple: print the built-in seed and exit.")
    var printSeed = false
    @Flag(help: "With --as apple: the first user signs in without a prompt.")
    var auto = false
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if kind == nil, seed != nil || printSeed || auto {
            throw ValidationError("--seed, --print-seed and --auto go with --as apple.")
        }
        if kind != nil,
            policy != nil || nonceOptional || nonceForm != "raw" || clientID != "com.example.app"
                || smtpPort != nil
                || !redirectURIs.isEmpty
        {
            throw ValidationError(
                "--app, --nonce-form, --nonce-optional, --policy, --redirect-uri and --smtp-port do not go with --as apple."
            )
        }
        guard (0...65_535).contains(port) else {
            throw ValidationError("--port must be 0 to 65535.")
        }
        guard (0...65_535).contains(smtpPort ?? 0) else {
            throw ValidationError("--smtp-port must be 0 to 65535.")
        }
        guard port == 0 || smtpPort != port else {
            throw ValidationError("--port and --smtp-port must differ.")
        }
        guard AppNonceForm(rawValue: nonceForm) != nil else {
            throw ValidationError("--nonce-form must be raw or sha256_hex.")
        }
    }

    /// The output of `--json`.
    private struct Facts: Encodable {
        let facts: SandboxFacts
        let testSubjects: [String: String]

        private enum CodingKeys: String, CodingKey { case testSubjects }

        func encode(to encoder: any Encoder) throws {
            try facts.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(testSubjects, forKey: .testSubjects)
        }
    }

    func run() async throws {
        if kind == .apple { return try await runApple() }
        var settings = Sandbox.Settings(
            port: port,
            smtpPort: smtpPort ?? (port == Self.standardPort ? Self.standardSMTPPort : 0),
            clientID: clientID,
            redirectURIs: redirectURIs, nonceForm: AppNonceForm(rawValue: nonceForm) ?? .raw,
            isNonceRequired: !nonceOptional)
        if let policy {
            let candidate = try PolicyFolder(path: policy).candidate()
            settings.policy = StoredPolicy(
                name: candidate.policy.name, version: candidate.policy.version,
                document: candidate.document.octets)
        }
        var logger = Logger(label: "postern") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .error
        let json = output.json
        let announcement = Announcement()
        try await Sandbox.run(settings, now: PosternClock.now, logger: logger) { facts in
            announcement.make {
                guard json else { return print(SandboxIntroduction(facts).text) }
                try printJSON(
                    Facts(
                        facts: facts,
                        testSubjects: Dictionary(
                            uniqueKeysWithValues: CannedResponse.subjects.map {
                                ($0.name, $0.purpose)
                            })))
            }
        } tell: { news in
            // With --json, standard output has one object and nothing else.
            let line = SandboxIntroduction.line(news)
            if json { return Failure.remark(line) }
            print(shown(line))
            try? finishOutput()
        }
        try announcement.check()
    }

    /// The output at the start of a sandbox. If its address and key could not be written, no one
    /// can use the sandbox, and it ends.
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

        /// Throws if the output could not be written.
        func check() throws {
            if let failure = failure.withLock({ $0 }) { throw failure }
        }
    }
}
