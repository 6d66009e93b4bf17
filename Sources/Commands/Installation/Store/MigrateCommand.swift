// postern migrate: the schema of the database.

import Database
import ArgumentParser
import CommandSupport

struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Bring the database to the schema of this program.",
        discussion: """
            Every command and the relay itself do so when they start; this command does nothing else, and reports what it did. \
            Migrations only go forward: a database that a newer postern migrated is refused by an older one.
            """)

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let (configuration, _) = try installation.configuration()
        let database = try configuration.database.open()
        defer { try? database.close() }
        let report = try Migrator().migrate(database, now: PosternClock.now())
        if output.json {
            try printJSON(["from": report.from, "to": report.to, "applied": report.applied] as Members)
        } else if report.applied.isEmpty {
            print("The database has schema version \(report.to); there was nothing to do.")
        } else {
            print("Applied \(report.applied.joined(separator: ", ")); the database has schema version \(report.to).")
        }
    }
}
