// postern backup, restore, store copy: the database as a whole.

import Database
import Administration
import Accounts
import ArgumentParser
import Foundation
import Monitoring
import PosternConfiguration
import Support

extension StoreBackup.Contents {
    fileprivate func print(file: String, done: String, _ output: OutputOptions) throws {
        if output.json {
            return try printJSON(
                [
                    "file": file, "schema_version": schemaVersion, "teams": teams, "users": users,
                    "relay_addresses": relayAddresses,
                ] as Members)
        }
        Swift.print(
            "\(done): \(Count.text(teams, "team")), \(Count.text(users, "user")), \(Count.text(relayAddresses, "relay address", "relay addresses")), schema version \(schemaVersion)"
        )
    }
}

struct BackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy the SQLite database into a new file, while the relay runs.",
        discussion: """
            The file (mode 0600) holds one consistent state. It is written beside its place, is checked, and gets its name \
            once it is whole. It does not contain the key file: keep that elsewhere, since both together reveal every inbox.

            A database on PostgreSQL is backed up with pg_dump; this command then prints the command line for that.
            """)

    @Argument(help: "The file to create; an existing file is not overwritten.", transform: filePath)
    var file: String

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let (configuration, _) = try installation.configuration()
        try refuseStandardStream(file, "written")
        // One that exists is refused for that.
        if !FileManager.default.fileExists(atPath: file) { try installation.refuse(output: file) }
        let contents = try Leftovers.backups(at: file).removedIfInterrupted {
            try StoreBackup.make(configuration.database, to: file, thisChange())
        }
        if let failure = contents.auditFailure { Failure.warn("the audit has no line of this backup: \(failure)") }
        try contents.print(file: file, done: "Made \(file)", output)
    }
}

/// SQLite writes and reads a database in any order, so that none goes through a pipe.
private func refuseStandardStream(_ file: String, _ done: String) throws {
    guard file == "-" else { return }
    throw CommandError.usage("a backup is not \(done) through a pipe: name a file (./- for one of that name)")
}

struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a backup as the SQLite database.",
        discussion: """
            Nothing is overwritten, and no running relay may use the database: stop it, and move the existing files away \
            first. The backup is checked, and must belong to the key file. Changes after the backup was made are lost: relay \
            addresses that were issued since then are unknown.
            """)

    @Argument(help: "A file that postern backup made.", transform: filePath)
    var file: String

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let (configuration, _) = try installation.configuration()
        try refuseStandardStream(file, "read")
        let keys = try KeyFile.read(path: configuration.keyFilePath)
        // A server's database is restored otherwise, whatever the file.
        guard configuration.database.path == nil || access(file, R_OK) == 0 else {
            throw CommandError.noInput("\(file): \(Failure.words(errno))")
        }
        try contents(configuration, keys).print(file: file, done: "Restored \(configuration.database)", output)
    }

    /// What is wrong with the backup is said with its name: it is not the store. A key or a schema that is not this program's
    /// is a matter of the installation.
    private func contents(_ configuration: Configuration, _ keys: KeyRing) throws -> StoreBackup.Contents {
        do {
            return try StoreBackup.restore(file, to: configuration.database, keys: keys)
        } catch let failure as StoreFailure {
            guard case .permanent(let code) = failure.code, ![.unsealing, .newerSchema, .changedMigration].contains(code)
            else { throw failure }
            throw CommandError.data("\(file): \(failure.message)")
        }
    }
}

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store", abstract: "Move the store to another engine.", subcommands: [Copy.self])

    struct Copy: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy the SQLite database to PostgreSQL.",
            discussion: """
                One consistent state is copied in one transaction, as a whole or not at all. The target must be empty. \
                Afterwards the rows of both are counted, and must agree. Numbers and keys stay unchanged, so every address \
                that is in use keeps working.

                Stop postern serve first: what it writes after the copy begins would be missing. Then set database to the URL in \
                postern.yaml, and start it again. Keep the password in ~/.pgpass rather than in the URL.
                """)

        @Option(help: ArgumentHelp("The target.", valueName: "postgresql://user@host/name"))
        var to: String

        @Flag(help: "Copy while a postern serve is running: for a rehearsal, since what it writes meanwhile is missing.")
        var live = false

        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            if let complaint = StoreCopy.complaint(about: to) { throw CommandError.usage("--to: \(complaint)") }
            let counts = try installation.withInstallation { installation in
                let running = try installation.store.runningServices(now: PosternClock.now())
                guard live || running.isEmpty else {
                    throw StoreFailure.refused(
                        .unmet,
                        "postern serve is running (\(running.joined(separator: "; "))): stop it first, "
                            + "or see --live; nothing was changed")
                }
                var bar: ProgressBar?
                defer { bar?.clear() }
                return try StoreCopy.copy(installation.store, to: to, now: PosternClock.now()) { done, total in
                    if bar == nil { bar = ProgressBar(total: total) }
                    bar?.update(done: done, count: done, of: "rows")
                }
            }
            if output.json { return try printJSON(counts.map { ["table": $0.table, "rows": $0.rows] as Members }) }
            Table(header: ["TABLE", "ROWS"], rows: counts.filter { $0.rows > 0 }.map { [$0.table, "\($0.rows)"] }).printInReport()
            print(
                "Copied \(Count.text(Int(counts.reduce(0) { $0 + $1.rows }), "row")) in \(counts.count) tables; the counts of both sides agree."
            )
            print("Next: set database in postern.yaml to this URL, and start postern serve.")
            if let path = try installation.configuration().0.database.path {
                print("Once it runs, remove \(path) (and -wal, -shm): it keeps what it had, and nothing reads it any more.")
            }
        }
    }
}
