// postern support-bundle: what others need to help, without personal data and secrets.

import Accounts
import ArgumentParser
import Database
import Doctor
import Foundation
import Glibc
import Monitoring
import PosternConfiguration
import Support

struct SupportBundleCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "support-bundle",
        abstract: "Write what others need to help you into a tar file, without personal data.",
        discussion: """
            The file (mode 0600; an existing file is not overwritten) has versions, the schema, the number of rows of each \
            table, the last hour's counts, what postern status and the checks of doctor on this machine say, how many \
            endpoints fail, and the configuration: numbers as they are, and of other values only whether they are set. No \
            row of a user or a team is in it, no log, no key and no password. Whatever looks like an email address, a \
            URL or a path is replaced. Look through it before you send it: tar -xOf FILE.
            """)

    @Argument(help: "The file to create.", transform: filePath)
    var file: String
    @OptionGroup var installation: InstallationOptions

    func run() throws {
        guard file != "-" else {
            throw CommandError.usage("a support bundle is not written to a pipe: name a file")
        }
        let now = PosternClock.now()
        // Before the work: nothing is gathered for a file that cannot be written.
        let output: Int32
        do { output = try OwnedFile.open(file, O_WRONLY | O_CREAT | O_EXCL) } catch {
            throw CommandError(
                status: EX_CANTCREAT,
                message: error.code == EEXIST
                    ? "\(file) exists, and is not overwritten: name another file" : "\(error)")
        }
        var isComplete = false
        defer {
            close(output)
            if !isComplete { unlink(file) }
        }
        var archive = TarArchive()
        for part in try SupportBundle.parts(installation, now: now) {
            let text = SupportBundle.withoutAddresses(part.text)
            guard archive.add(part.name, Array(text.utf8), time: now) else {
                throw CommandError(
                    status: EX_SOFTWARE, message: "\(part.name) does not fit into the file")
            }
        }
        let handle = FileHandle(fileDescriptor: output, closeOnDealloc: false)
        do { try handle.write(contentsOf: Data(archive.octets)) } catch {
            throw CommandError(
                status: EX_IOERR, message: "\(file) cannot be written: \(Failure.words(errno))")
        }
        isComplete = true
        print("Made \(file). Look through it before you send it: tar -xOf \(file)")
    }
}

/// The contents of a support bundle.
enum SupportBundle {
    struct Part {
        let name: String
        let text: String
    }

    /// All parts. One that cannot be read says why, because a bundle is made when something fails.
    static func parts(_ options: InstallationOptions, now: Int64) throws -> [Part] {
        let (configuration, resolved) = try options.configuration()
        let facts = LocalProbe.gather(
            flag: options.config, environment: ProcessInfo.processInfo.environment,
            set: options.set, now: now)
        let probe = PostfixProbe(
            directory: configuration.postfixDirectory, configuration: configuration)
        func store<T: Encodable>(_ body: (Installation) throws -> T) -> any Encodable {
            do { return try options.withInstallation(body) } catch {
                return ["cannot_be_read": "\(error)"]
            }
        }
        let contents: [(String, any Encodable)] = [
            ("versions.json", versions(configuration, now: now)),
            ("configuration.json", settings(resolved)),
            ("doctor.json", LocalChecks.judge(facts) + PostfixChecks.judge(probe.gather().0)),
            ("status.json", store { try Status(StatusReport($0, now: now)) }),
            ("schema.json", store { try schema($0.store.database) }),
            ("rows.json", store { try rows($0.store.database) }),
            ("failures.json", store { try failures($0.store.database) }),
            ("retention.json", store { try retention($0.store) }),
        ]
        return try contents.map { name, value in
            Part(name: name, text: String(decoding: try jsonOctets(value), as: UTF8.self) + "\n")
        }
    }

    /// The parts of a status that have no name of a machine, a team or a file.
    private struct Status: Encodable {
        let teams, accounts: Int
        let runningServices, silentServices: Int
        let lastHour: [String: Int]
        let removals: RemovalRepository.Backlog
        let warnings: Int

        init(_ report: StatusReport) {
            (teams, accounts, lastHour) = (report.teams, report.accounts, report.lastHour)
            runningServices = report.hosts.count { $0.isRunning }
            silentServices = report.hosts.count { !$0.isRunning }
            (removals, warnings) = (report.removals, report.warnings.count)
        }
    }

    private static func versions(_ configuration: Configuration, now: Int64) -> [String: String] {
        var system = utsname()
        uname(&system)
        func text<T>(_ field: T) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        let release = try? String(contentsOfFile: "/etc/os-release", encoding: .utf8)
        let name = release?.split(separator: "\n").first { $0.hasPrefix("PRETTY_NAME=") }
        return [
            "postern": PosternVersion.text, "made_at": timestamp(now),
            "kernel": text(system.release), "machine": text(system.machine),
            "system": name.map { String($0.dropFirst(12)).replacing("\"", with: "") } ?? "unknown",
            "engine": configuration.database.path == nil ? "postgresql" : "sqlite",
        ]
    }

    /// Each key: a number as it is; of any other value only whether one is set, because it can name
    /// people, machines, files or a password.
    private static func settings(_ resolved: ResolvedConfiguration) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: resolved.entries.map { entry in
                let origin: String =
                    switch entry.origin {
                    case .standard: "default"
                    case .file: "file"
                    case .environment: "environment"
                    case .flag: "--set"
                    }
                let value =
                    if case .integer(let number) = entry.value { "\(number)" } else {
                        entry.origin == .standard ? "as by default" : "set"
                    }
                return (entry.key.rawValue, "\(value) (\(origin))")
            })
    }

    private static func schema(_ database: any Database) throws -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: try database.rows(
                "SELECT name, checksum FROM schema_migrations ORDER BY name"
            ).map { row in
                let (name, checksum): (String, String) = try (row["name"], row["checksum"])
                return (name, checksum)
            })
    }

    /// The number of rows of each table of the schema.
    private static func rows(_ database: any Database) throws -> [String: Int64] {
        var counts: [String: Int64] = [:]
        for migration in Migration.all {
            for line in migration.sql.split(separator: "\n") where line.hasPrefix("CREATE TABLE ") {
                let name = line.dropFirst(13).prefix { $0 != " " }
                counts[String(name)] = try database.value(
                    "SELECT COUNT(*) FROM \(raw: String(name))")
            }
        }
        return counts
    }

    /// What failed, as counts: the texts of other servers may say anything.
    private static func failures(_ database: any Database) throws -> [String: [String: Int64]] {
        func counts(_ sql: SQL) throws -> [String: Int64] {
            Dictionary(
                uniqueKeysWithValues: try database.rows(sql).map { row in
                    let (name, count): (String, Int64) = try (row["name"], row["count"])
                    return (name, count)
                })
        }
        return [
            "refused_mail_by_answer": try counts(
                "SELECT SUBSTR(answer, 1, 9) AS name, CAST(SUM(count) AS BIGINT) AS count FROM rejections GROUP BY SUBSTR(answer, 1, 9)"
            ),
            "failing_endpoints_by_dialect": try counts(
                """
                SELECT e.dialect AS name, COUNT(*) AS count FROM endpoint_health h
                JOIN event_endpoints e ON e.id = h.endpoint_id WHERE h.failures > 0 GROUP BY e.dialect
                """),
            "events_by_state": try counts(
                "SELECT state AS name, COUNT(*) AS count FROM outbox GROUP BY state"),
            "deliveries_by_outcome": try counts(
                "SELECT outcome AS name, CAST(SUM(count) AS BIGINT) AS count FROM delivery_results GROUP BY outcome"
            ),
        ]
    }

    private static func retention(_ store: Store) throws -> [String: Int] {
        var days = Dictionary(
            uniqueKeysWithValues: try store.retention.all().map { ($0.dataClass.name, $0.days) })
        days["holds_in_force"] = try store.holds.all().count
        return days
    }

    /// The text without anything that looks like an email address, a URL or a path, in whichever
    /// form: a run without blanks and quotation marks that has an at sign or `://`, or begins with
    /// a slash. A path may have the name of a person or a customer, and a URL a user.
    static func withoutAddresses(_ text: String) -> String {
        let signs: [Unicode.Scalar] = ["@", "\u{FE6B}", "\u{FF20}"]
        let ends: [Unicode.Scalar] = [" ", "\t", "\n", "\r", "\"", "'", ",", ";", "<", ">"]
        return text.unicodeScalars.split(
            omittingEmptySubsequences: false, whereSeparator: ends.contains
        ).reduce(into: "") { result, word in
            let isAddress =
                word.contains(where: signs.contains)
                || String(word).utf8.firstRange(of: "%40".utf8) != nil
            let isPath = word.first == "/" && word.dropFirst().first != nil
            let isURL = String(word).utf8.firstRange(of: "://".utf8) != nil
            result +=
                isAddress ? "[address]" : isURL ? "[url]" : isPath ? "[path]" : String(word)
            if word.endIndex < text.unicodeScalars.endIndex {
                result.unicodeScalars.append(text.unicodeScalars[word.endIndex])
            }
        }
    }
}
