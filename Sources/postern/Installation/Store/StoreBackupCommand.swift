// postern store backup and postern store restore: the SQLite database, to and from a file.

import Accounts
import Administration
import ArgumentParser
import Database
import Foundation
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

struct StoreBackupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy the SQLite database into a new file, while the relay runs.",
        discussion: """
            The file (mode 0600) holds one consistent state. It is written beside its place, is checked, and gets its name \
            when it is complete. It does not contain the key file: keep that elsewhere, since both together reveal every \
            inbox.

            A database on PostgreSQL is backed up with pg_dump; this command then prints the command line for that.
            """)

    @Argument(help: "The file to create; an existing file is not overwritten.", transform: filePath)
    var file: String

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let (configuration, _) = try installation.configuration()
        try refuseStandardStream(file, "written")
        // An existing file is refused later, with that reason.
        if !FileManager.default.fileExists(atPath: file) { try installation.refuse(output: file) }
        let contents = try Leftovers.backups(at: file).removedIfInterrupted {
            try StoreBackup.make(configuration.database, to: file, thisChange())
        }
        if let failure = contents.auditFailure {
            Failure.warn("the audit has no line of this backup: \(failure)")
        }
        try contents.print(file: file, done: "Made \(file)", output)
    }
}

/// Refuses standard streams: SQLite reads and writes a database in any order, so a pipe is not
/// possible.
private func refuseStandardStream(_ file: String, _ done: String) throws {
    guard file == "-" else { return }
    throw CommandError.usage(
        "a backup is not \(done) through a pipe: name a file (./- for one of that name)")
}

struct StoreRestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a backup as the SQLite database.",
        discussion: """
            Nothing is overwritten, and no running relay may use the database: stop it, and move the existing files away \
            first. The backup is checked, and must belong to the key file. Changes after the backup was made are lost: relay \
            addresses that were issued since then are unknown.
            """)

    @Argument(help: "A file that postern store backup made.", transform: filePath)
    var file: String

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let (configuration, _) = try installation.configuration()
        try refuseStandardStream(file, "read")
        let keys = try KeyFile.read(path: configuration.keyFilePath)
        // A server's database is restored in another way, with any file.
        guard configuration.database.path == nil || access(file, R_OK) == 0 else {
            throw CommandError.noInput("\(file): \(Failure.words(errno))")
        }
        try contents(configuration, keys).print(
            file: file, done: "Restored \(configuration.database)", output)
    }

    /// Reads the backup. Errors of the backup name its file, so that they are not mistaken for
    /// errors of the store. A wrong key or schema is reported as an error of the installation.
    private func contents(
        _ configuration: Configuration, _ keys: KeyRing
    ) throws -> StoreBackup.Contents {
        do {
            return try StoreBackup.restore(file, to: configuration.database, keys: keys)
        } catch let failure as StoreFailure {
            guard case .permanent(let code) = failure.code,
                ![.unsealing, .newerSchema, .changedMigration].contains(code)
            else { throw failure }
            throw CommandError.data("\(file): \(failure.message)")
        }
    }
}
