// All of Postern in one process, for the developers of apps: a real installation in a private
// folder, without Postfix and DNS.

import Accounts
import Administration
import Database
import Decisions
import Foundation
import InternetMessage
import Logging
import MailCrypto
import PosternConfiguration
import PosternSQLite
import Service
import Synchronization

/// All files of a sandbox are in a private folder, which is removed at the end. The sandbox has its
/// own keys and its own database, so that none of its keys, tokens, counters or decisions can reach
/// another installation.
package struct Sandbox {
    /// The settings of the sandbox.
    package struct Settings: Sendable {
        /// 0: any free port.
        package var port: Int
        /// The port for mail; 0: any free one.
        package var smtpPort: Int
        package var clientID: String
        /// In addition to those of every sandbox.
        package var redirectURIs: [String]
        /// How identity tokens contain the nonce.
        package var nonceForm: AppNonceForm
        package var isNonceRequired: Bool
        /// Nil: the policy that is part of the program.
        package var policy: StoredPolicy?

        package init(
            port: Int, smtpPort: Int = 0, clientID: String, redirectURIs: [String] = [],
            nonceForm: AppNonceForm = .raw,
            isNonceRequired: Bool = true, policy: StoredPolicy? = nil
        ) {
            (self.port, self.smtpPort, self.clientID, self.redirectURIs) = (
                port, smtpPort, clientID, redirectURIs
            )
            (self.nonceForm, self.isNonceRequired, self.policy) = (
                nonceForm, isNonceRequired, policy
            )
        }
    }

    /// Reports of a sandbox while it runs.
    package enum News: Sendable {
        /// A message is in a mailbox.
        case mail(SandboxMail)
        /// A request was refused, with the reason.
        case refusal(String)
    }

    /// Serves until SIGTERM or SIGINT.
    /// - Parameters:
    ///   - now: seconds since 1970; `/sandbox/clock` adds to it.
    ///   - announce: called once it listens.
    ///   - tell: called for each report.
    package static func run(
        _ settings: Settings, now: @escaping @Sendable () -> Int64, logger: Logger,
        announce: @escaping @Sendable (SandboxFacts) -> Void,
        tell: @escaping @Sendable (News) -> Void
    ) async throws {
        let folder = try SandboxFolder.make()
        defer { folder.remove() }
        let reserved = settings.port == 0 ? ReservedPort() : nil
        let port = reserved?.number ?? settings.port
        let smtp = try await SandboxSMTPServer.listen(port: settings.smtpPort)
        let installation: Installation
        do {
            installation = try makeInstallation(
                in: folder, port: port, smtpPort: smtp.port, now: now())
        } catch {
            smtp.close()
            throw error
        }
        defer { try? installation.close() }
        let clock = SandboxClock(now)
        let (zone, failures, journal) = (SandboxZone(), SandboxFailures(), SandboxJournal())
        let issuer = try SandboxIssuer.make(issuer: SandboxNames.issuer)
        let facts = try SandboxSeed(
            store: installation.store, zone: zone, settings: settings,
            url: "http://127.0.0.1:\(port)",
            smtp: "127.0.0.1:\(smtp.port)", issuer: issuer, now: now()
        ).plant()
        let copy = folder.url.appendingPathComponent("start.db").path
        try (installation.store.database.first as? SQLiteDatabase)?.backUp(to: copy)

        let pool = BlockingPool(.trials)
        let desk = SandboxDesk(
            facts: facts, clock: clock, zone: zone, failures: failures, journal: journal,
            issuer: issuer, copy: copy,
            records: zone.snapshot)
        var surroundings = Surroundings()
        surroundings.now = { clock.now }
        // A developer may move the clock by a year in a second.
        surroundings.deletionInterval = .seconds(1)
        surroundings.resolver = zone
        surroundings.mail = .own { handler, ready in
            let room = SandboxMailRoom(
                store: installation.store, handler: handler, failures: failures,
                own: installation.configuration.mail.from.wireForm, now: { clock.now }
            ) { mail in
                // A user answers from the inbox, so mail from its domain must pass SPF.
                if mail.side == .user, let inbox = try? AddrSpec.typed(mail.recipient) {
                    zone.open(inbox.domain)
                }
                tell(.mail(mail))
            } refused: { command, reply in
                tell(
                    .refusal(
                        journal.note(
                            at: clock.now, "SMTP", command, status: reply.code,
                            error: reply.enhanced, cause: reply.text
                        ).words))
            }
            desk.open(room)
            return SandboxMailService(
                server: smtp, room: room, pool: pool,
                limit: installation.configuration.limits.messageSize.max, ready: ready)
        }
        surroundings.posting = { SandboxPoster(base: $0, failures: failures) }
        surroundings.statuses = { SandboxStatuses(base: $0, ordered: desk.statuses) }
        surroundings.canned = CannedResponse.answer
        surroundings.refusesOddContext = true
        surroundings.allowsLoopbackEndpoints = true
        surroundings.listenSetting = "--port"
        surroundings.middleware = [
            SandboxGate(failures: failures, journal: journal, now: { clock.now }) {
                tell(.refusal($0.words))
            }
        ]
        surroundings.modules = { parts in
            [
                SandboxOrderRoutes(desk: desk, parts: parts, pool: pool),
                SandboxMailRoutes(desk: desk, pool: pool),
                SandboxPageRoutes(desk: desk),
            ]
        }
        // The facts are announced when both servers listen, so that every printed command works.
        let waiting = ReadyCount(of: 2) { announce(facts) }
        surroundings.listening = { _ in waiting.down() }
        try await RelayService.run(
            installation: installation, surroundings: surroundings, reread: nil, logger: logger
        ) { _ in waiting.down() }
        smtp.close()
        await pool.stop()
    }

    /// An installation as `postern init` makes it, on loopback.
    private static func makeInstallation(
        in folder: SandboxFolder, port: Int, smtpPort: Int, now: Int64
    ) throws -> Installation {
        let set: [(ConfigurationKey, String)] = [
            (.httpListen, "127.0.0.1:\(port)"), (.httpPublicURL, "http://127.0.0.1:\(port)"),
            (.mailSubmission, "127.0.0.1:\(smtpPort)"), (.signInPage, "built-in"),
            (.signInSignUp, "open"),
            // Copies for further accounts need an smtpd of Postfix. Here the client sends the
            // message again.
            (.fanOut, "off"), (.serviceName, "Postern sandbox"), (.eventsPrivateReceivers, "yes"),
            // A test suite signs in the same user many times.
            (.httpRequestsPerSecond, "1000"), (.verificationPerInbox, "100"),
            (.verificationPerUser, "1000"),
            (.signInMessagesPerNetwork, "1000000"), (.signInWrongCodesPerNetwork, "1000000"),
        ]
        let path = try Installation.create(
            directory: folder.url.appendingPathComponent("data").path,
            relayDomains: [SandboxNames.relayDomain],
            operatorAddress: SandboxNames.operatorAddress, set: set.map { "\($0.rawValue)=\($1)" },
            change: Change(actor: "sandbox", now: now))
        return try Installation.open(flag: path, environment: [:], now: now)
    }
}

/// Calls `body` once, when `down` was called this many times.
private final class ReadyCount: Sendable {
    private let left: Mutex<Int>
    private let body: @Sendable () -> Void

    init(of count: Int, _ body: @escaping @Sendable () -> Void) {
        left = Mutex(count)
        self.body = body
    }

    func down() {
        let isLast = left.withLock { left in
            left -= 1
            return left == 0
        }
        if isLast { body() }
    }
}
