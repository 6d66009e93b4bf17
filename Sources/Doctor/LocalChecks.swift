// Checks of this machine. The facts are gathered before, so that each case can be tested.

import Accounts
import Database
import Milter
import Monitoring
import PosternConfiguration
import Support

/// The facts about this machine.
package struct LocalFacts: Sendable {
    package enum Outcome: Sendable, Hashable {
        case fine
        case trouble(String)
    }

    /// The response of a part of the service.
    package enum Answer: Sendable, Hashable {
        case fine
        /// It accepted the connection, and sent nothing for some seconds.
        case silent
        case trouble(String)
    }

    /// Whether configuration, key file and database can be used, and if not, why.
    package var configuration = Outcome.fine
    /// The code of that error; nil if it has none.
    package var configurationFault: ConfigurationError.Code?
    package var keyFile = Outcome.fine
    package var database = Outcome.fine
    /// The reason why the database cannot be used; nil if it can.
    package var databaseFailure: StoreFailure?
    /// Files that the service's user cannot read, with the user's name.
    package var unreadable: [(path: String, user: String)] = []
    /// The key file if other users can read it; nil if they cannot.
    package var openKeyFile: String?
    /// Files beside the database that other users can read.
    package var openFiles: [String] = []
    /// The database's folder if every user may replace its files; nil if not.
    package var openFolder: String?
    /// Whether the file of the database does not exist; false for a server.
    package var isDatabaseMissing = false
    /// Whether its path is a folder.
    package var isDatabaseFolder = false
    /// Migrations that the database lacks.
    package var pendingMigrations: [String] = []
    /// Relay domains that have addresses, but are not in the configuration, in words; nil for none.
    package var lostDomains: String?
    /// Permission bits of the database file; nil if unknown.
    package var databaseMode: UInt32?
    /// The file, or the server's URL without its password.
    package var databasePath = ""
    package var isOnServer = false
    /// The network file system that the file is on; nil for a disk of this machine, and for a
    /// server.
    package var databaseElsewhere: NetworkFileSystem?
    /// Free and total octets on the database's disk; nil if unknown.
    package var freeOctets: UInt64?
    package var totalOctets: UInt64?
    /// The milter's socket, and whether a milter answered there.
    package var socket = ""
    package var filter = Answer.fine
    /// Seconds since 1970, by the machine's clock.
    package var now: Int64 = 0
    /// The newest time in the audit; nil if there is none.
    package var newestChange: Int64?
    package var hasOperatorAddress = true
    /// Whether users can reach their page.
    package var hasUserPage = true
    /// The address of the HTTP API, and whether it answers there; nil if there is no API, or it
    /// listens on any free port.
    package var http: (address: String, outcome: Answer)?
    /// The address to which message copies are submitted, and whether Postfix listens there; nil if
    /// this is off, or no server listens there.
    package var copies: (address: String, outcome: Answer)?
    /// Problems of the policies in force, one line each; nil if the policies could not be read.
    package var policyProblems: [String]?
    /// Damage that the database engine reports in the file, one line each; nil if the engine could
    /// not check it.
    package var damage: [String]?
    /// The size of the file, and the largest size that is examined, in octets; nil
    /// if the file was examined.
    package var unchecked: (size: Int64, limit: Int64)?
    /// The settings of the server; nil for a file, and if they could not be read.
    package var server: ServerFacts?
    /// The standby for listings, and why it cannot answer; nil if none is configured.
    package var replica: (place: String, trouble: String?)?
    /// Whether this machine's clock is synchronized; nil if no program on this machine knows.
    package var isClockKept: Bool?
    /// The hosts whose clocks differ; nil if none do.
    package var clockSkew: String?
    /// Items removed long ago that still have rows, one sentence each.
    package var removals: [String] = []
    /// Streams without delivery because their receivers are private.
    package var receivers: [Trouble] = []
    /// The file that `delivery.log` names, and the reason why it cannot be read; nil if none is
    /// named.
    package var postfixLog: (path: String, trouble: String?)?
    /// Events of each team that Postern gave up.
    package var parkedEvents: [Trouble] = []
    /// Holds in force, the next to end first.
    package var holds: [Hold] = []
    /// Hosts that use another policy than the active one, because the active one does not load
    /// there, one line each.
    package var policyRefusals: [String] = []

    package init() {}
}

package enum LocalChecks {
    /// Octets of free space below which the database is expected to run out of space soon.
    package static let tightDisk: UInt64 = 500 << 20
    /// Octets of free space below which the next checkpoint may fail.
    package static let fullDisk: UInt64 = 50 << 20
    /// Seconds that the clocks of several hosts may differ.
    package static let clockLeeway: Int64 = 300
    /// The earliest plausible time: 2026-01-01. This program did not exist before.
    package static let earliestTime: Int64 = 1_767_225_600

    package static func judge(_ facts: LocalFacts) -> [Check] {
        [configuration(facts), keyFile(facts)].compactMap { $0 } + serviceUser(facts)
            + database(facts)
            + [exposure(facts), filter(facts), copies(facts), http(facts)].compactMap { $0 }
            + policy(facts)
            + [disk(facts), clock(facts), clocks(facts), operatorAddress(facts), userPage(facts)]
            .compactMap { $0 }
            + facts.removals.map { .warning(.removals, $0, remedy: StatusReport.removalRemedy) }
            + [postfixLog(facts)].compactMap { $0 }
            + facts.receivers.map { .warning(.receivers, $0.sentence, remedy: $0.remedy) }
            + facts.parkedEvents.map { .warning(.parkedEvents, $0.sentence, remedy: $0.remedy) }
            + [holds(facts)].compactMap { $0 }
    }

    /// The checks that the service must pass before it can start.
    static func ofStore(_ facts: LocalFacts) -> [Check] {
        [configuration(facts), keyFile(facts)].compactMap { $0 } + serviceUser(facts)
            + database(facts) + policy(facts)
            + [disk(facts)].compactMap { $0 }
    }

    /// The checks that a reload must pass. A full disk or an expired certificate is not a reason to
    /// keep the old configuration.
    static func ofReload(_ facts: LocalFacts) -> [Check] {
        [configuration(facts), relayDomains(facts)].compactMap { $0 }
    }

    /// Seconds before its end in which a hold is named.
    package static let holdWarning: Int64 = 7 * 86_400
    /// Seconds after its end in which a running service ends a hold.
    package static let holdLeeway: Int64 = 2 * 3_600

    private static func holds(_ facts: LocalFacts) -> Check? {
        guard let next = facts.holds.first else { return nil }
        let verb = facts.holds.count == 1 ? "is" : "are"
        let count = "\(Count.text(facts.holds.count, "hold")) \(verb) in force"
        let late = facts.holds.filter { facts.now - $0.endsAt > holdLeeway }
        guard late.isEmpty else {
            return .warning(
                .holds,
                "\(count); \(names(late)) should have ended, the first at \(UTCTime.text(next.endsAt)): no service ends holds",
                remedy: "start postern serve, which ends them; \(.listHolds) shows them")
        }
        let soon = facts.holds.filter { $0.endsAt - facts.now <= holdWarning }
        guard soon.isEmpty else {
            return .warning(
                .holds,
                "\(count); \(names(soon)) \(soon.count == 1 ? "ends" : "end") within a week, the first at \(UTCTime.text(next.endsAt)), and then its data is deleted",
                remedy: "extend each that is still needed; \(.listHolds) shows why it began")
        }
        return .ok(.holds, "\(count), and the next ends at \(UTCTime.text(next.endsAt))")
    }

    /// `hold 3`, `holds 3, 4`: numbers alone, as the name of a user is not for this report.
    private static func names(_ holds: [Hold]) -> String {
        "\(holds.count == 1 ? "hold" : "holds") \(holds.map { "\($0.number)" }.joined(separator: ", "))"
    }

    private static func relayDomains(_ facts: LocalFacts) -> Check? {
        facts.lostDomains.map {
            .broken(
                .relayDomains, $0,
                remedy: "correct relay_domains; do not change Postfix's domains for it")
        }
    }

    private static func configuration(_ facts: LocalFacts) -> Check {
        switch facts.configuration {
        case .fine: .ok(.configuration, "the configuration can be read")
        case .trouble(let what):
            .broken(.configuration, what, remedy: configurationRemedy(facts.configurationFault))
        }
    }

    private static func configurationRemedy(_ fault: ConfigurationError.Code?) -> Remedy {
        switch fault {
        case .missing?:
            "name the file with --config or POSTERN_CONFIG; a new installation begins with postern init"
        case .notPermitted?: "run this as root, or as the user that postern serve runs as"
        default: "correct the named value; \(.listKeys) prints every key and its accepted values"
        }
    }

    private static func keyFile(_ facts: LocalFacts) -> Check? {
        guard facts.configuration == .fine else { return nil }
        return switch facts.keyFile {
        case .fine: .ok(.keyFile, "the key file is readable, by its owner only")
        case .trouble(let what):
            .broken(
                .keyFile, what,
                remedy: facts.openKeyFile.map { "run \(.closeFile, $0)" }
                    ?? "do what it says; if the file is lost, restore the key file of this installation, with mode 0600"
            )
        }
    }

    private static func serviceUser(_ facts: LocalFacts) -> [Check] {
        facts.unreadable.map { path, user in
            .broken(
                .serviceUser, "\(path) cannot be read by \(user), whom postern serve runs as",
                remedy: "run \(.ownFile, "\(user):", path), and let the user into its folders")
        }
    }

    private static func database(_ facts: LocalFacts) -> [Check] {
        guard facts.configuration == .fine else { return [] }
        let server = facts.server.map(ServerChecks.judge) ?? []
        if case .trouble(let what) = facts.database {
            let remedy = DatabaseRemedies.remedy(
                facts.databaseFailure ?? .temporary(.unreachable, what), at: facts.databasePath,
                isOnServer: facts.isOnServer,
                isFolder: facts.isDatabaseFolder, isMissing: facts.isDatabaseMissing)
            return [.broken(.database, what, remedy: remedy)] + server
        }
        var checks: [Check] = [
            facts.pendingMigrations.isEmpty
                ? .ok(.database, "the database is writable and has the schema of this program")
                : .warning(
                    .database,
                    "the database lacks \(facts.pendingMigrations.joined(separator: ", "))",
                    remedy: "run \(.migrate), or restart postern serve, which does so")
        ]
        checks += server
        if let (place, trouble) = facts.replica {
            checks.append(
                trouble.map {
                    .warning(
                        .databaseReplica,
                        "listings are read at the primary, as the standby at \(place) cannot answer: \($0)",
                        remedy: StatusReport.replicaRemedy)
                } ?? .ok(.databaseReplica, "listings are read at the standby at \(place)"))
        }
        if let lost = relayDomains(facts) { checks.append(lost) }
        if let damage = facts.damage {
            checks.append(
                damage.isEmpty
                    ? .ok(.databaseIntegrity, "the database is intact")
                    : .broken(
                        .databaseIntegrity,
                        "the database is damaged: \(damage.joined(separator: "; "))",
                        remedy:
                            "stop postern serve, keep \(facts.databasePath) for later, and restore the last backup"
                    ))
        }
        if let (size, limit) = facts.unchecked {
            checks.append(
                .ok(
                    .databaseIntegrity,
                    "not checked: the file has \(size >> 20) MiB, and above \(limit >> 20) MiB that takes too long here; "
                        + "postern store backup checks the copy that it makes"))
        }
        if let system = facts.databaseElsewhere {
            checks.append(
                .broken(
                    .databaseDisk,
                    "\(facts.databasePath) is on \(system.rawValue): SQLite's locks do not hold there, and two programs damage the file",
                    remedy:
                        "move it to a disk of this machine, or use PostgreSQL (database: postgresql://…)"
                ))
        }
        if let mode = facts.databaseMode, mode & 0o077 != 0 {
            checks.append(
                .warning(
                    .databaseMode,
                    "other users than its owner can read the database: it contains no inbox in clear text, but shows who has accounts",
                    remedy: "run \(.closeFile, facts.databasePath)"))
        }
        checks += facts.openFiles.map {
            .warning(
                .databaseMode,
                "other users than its owner can read \($0), which holds parts of the database",
                remedy: "run \(.closeFile, $0)")
        }
        if let folder = facts.openFolder {
            checks.append(
                .broken(
                    .databaseMode, "every user of this machine may replace the files in \(folder)",
                    remedy: "let its owner alone write there (mode 0700)"))
        }
        return checks
    }

    /// Anyone who can reach the milter's socket can find out which addresses exist.
    static func exposure(_ facts: LocalFacts) -> Check? {
        guard facts.configuration == .fine,
            case .tcp(let host, let port)? = MilterSocket(facts.socket),
            ListenAddress(
                host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)")?
                .isLoopback == false
        else { return nil }
        return .warning(
            .milter,
            "milter.socket is \(facts.socket), which other machines may reach: anyone who connects can find out which addresses exist",
            remedy: "write inet:8891@127.0.0.1 or unix:/path, and restart postern serve")
    }

    private static func filter(_ facts: LocalFacts) -> Check? {
        guard facts.configuration == .fine else { return nil }
        if case .trouble(let what) = facts.filter, let http = facts.http,
            case .trouble = http.outcome
        {
            return .broken(
                .filter,
                "nothing answers at \(facts.socket) (\(what)), nor at \(http.address): postern serve is not running. "
                    + "Mail waits at its senders, and teams get no decisions",
                remedy: "start postern serve; its log says what prevents it from running")
        }
        if facts.filter == .silent, let http = facts.http, case .trouble = http.outcome {
            return .broken(
                .filter,
                "what listens at \(facts.socket) does not answer as postern serve does, and nothing answers at \(http.address)",
                remedy:
                    "find out what listens there (\(.listListeners)): if it is another program, end it or name another port in "
                    + "milter.socket; then start postern serve")
        }
        return switch facts.filter {
        case .fine: .ok(.filter, "a milter answers at \(facts.socket)")
        case .silent:
            .broken(
                .filter,
                "postern serve runs and does not answer at \(facts.socket). Mail waits at its senders",
                remedy: "restart postern serve; its log before that says what it was doing")
        case .trouble(let what):
            .broken(
                .filter, "\(facts.socket): \(what). Mail waits at its senders",
                remedy: "start postern serve; its log says what prevents it from running")
        }
    }

    private static func postfixLog(_ facts: LocalFacts) -> Check? {
        guard let (path, trouble) = facts.postfixLog else { return nil }
        guard let trouble else { return .ok(.postfixLog, "\(path) can be read") }
        return .warning(
            .postfixLog,
            "Postern does not count what became of forwards: \(trouble)",
            remedy: StatusReport.logRemedy)
    }

    private static func copies(_ facts: LocalFacts) -> Check? {
        // Postfix waits for the milter there too, so a silent milter would make this check fail.
        guard let copies = facts.copies, facts.filter != .silent else { return nil }
        return switch copies.outcome {
        case .fine: .ok(.copies, "Postfix accepts copies of messages at \(copies.address)")
        case .silent:
            .broken(
                .copies,
                "\(copies.address) (fan_out_smtpd) accepts connections and does not greet as a mail server. Copies of messages to several users "
                    + "are not submitted there",
                remedy:
                    "find the process that listens there (\(.listListeners)); if it is Postfix, its log says what it waits for"
            )
        case .trouble(let what):
            .broken(
                .copies,
                "\(copies.address) (fan_out_smtpd): \(what). Copies of messages to several users are not submitted there",
                remedy:
                    "find that process (\(.listListeners)) and stop it, then run \(.applySettings); if Postfix runs as that user, name it in milter.peers"
            )
        }
    }

    private static func http(_ facts: LocalFacts) -> Check? {
        // If the milter is silent too, its check reports the trouble for both.
        guard facts.configuration == .fine, let http = facts.http,
            facts.filter == .fine || http.outcome == .fine
        else {
            return nil
        }
        return switch http.outcome {
        case .fine: .ok(.http, "the HTTP API answers at \(http.address)")
        case .silent:
            .broken(
                .http,
                "\(http.address) accepts connections and does not answer. Teams get no decisions",
                remedy: "restart postern serve; its log before that says what it was doing")
        case .trouble(let what):
            .broken(
                .http, "\(http.address): \(what). Teams get no decisions",
                remedy:
                    "start postern serve, or check its log; set http.listen: off if no HTTP API is wanted"
            )
        }
    }

    private static func policy(_ facts: LocalFacts) -> [Check] {
        guard let problems = facts.policyProblems else { return [] }
        let refusals = facts.policyRefusals.map {
            Check.warning(
                .policy, $0,
                remedy:
                    "\(.listPolicies) gives the reason; activate a policy that loads, or go back to the one before (policy rollback)"
            )
        }
        guard !problems.isEmpty else {
            return refusals.isEmpty ? [.ok(.policy, "a policy is in force")] : refusals
        }
        return refusals
            + problems.map {
                .warning(
                    .policy, $0,
                    remedy:
                        "run \(.listPolicies); postern serve activates the built-in policy if there is none, policy activate any other"
                )
            }
    }

    private static func disk(_ facts: LocalFacts) -> Check? {
        guard let free = facts.freeOctets else { return nil }
        let sentence = "\(free >> 20) MiB are free for the database"
        let remedy: Remedy = "free space on the file system of \(facts.databasePath)"
        if free < fullDisk { return .broken(.disk, sentence, remedy: remedy) }
        if free < tightDisk { return .warning(.disk, sentence, remedy: remedy) }
        return .ok(.disk, sentence)
    }

    private static func clock(_ facts: LocalFacts) -> Check {
        let remedy: Remedy =
            "set the clock, and let chrony or systemd-timesyncd synchronize it: signatures and return paths expire by it"
        if facts.now < earliestTime {
            return .broken(.clock, "the clock is years behind", remedy: remedy)
        }
        if let newest = facts.newestChange, facts.now < newest - clockLeeway {
            return .broken(
                .clock,
                "the clock is \(newest - facts.now) s behind the last change in the database",
                remedy: remedy)
        }
        return switch facts.isClockKept {
        case true: .ok(.clock, "the clock is plausible, and synchronized")
        case false:
            .warning(
                .clock, "the clock is plausible, but not synchronized: it will drift",
                remedy:
                    "start chrony or systemd-timesyncd: signatures and return paths expire by it")
        case nil:
            .ok(.clock, "the clock is plausible; whether it is synchronized cannot be determined")
        }
    }

    private static func clocks(_ facts: LocalFacts) -> Check? {
        facts.clockSkew.map { .warning(.clocks, $0, remedy: ClockSkew.remedy) }
    }

    private static func operatorAddress(_ facts: LocalFacts) -> Check? {
        guard facts.configuration == .fine else { return nil }
        return facts.hasOperatorAddress
            ? .ok(.postmaster, "mail to postmaster and abuse reaches the operator")
            : .broken(
                .postmaster,
                "mail to postmaster and abuse reaches no one, but RFC 5321 and RFC 2142 require it",
                remedy: "set operator_address in postern.yaml")
    }

    private static func userPage(_ facts: LocalFacts) -> Check? {
        guard facts.configuration == .fine, !facts.hasUserPage else { return nil }
        return .warning(
            .userPage,
            "users cannot confirm an inbox themselves: no page is configured on which they can enter the code",
            remedy:
                "set http.listen and http.public_url, or enter the codes that users give you: \(.confirmInbox)"
        )
    }
}
