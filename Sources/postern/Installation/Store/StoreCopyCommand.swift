// postern store copy: copies the database to another engine.

import Administration
import ArgumentParser
import Database
import Monitoring
import Support

struct StoreCopyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy", abstract: "Copy the SQLite database to PostgreSQL.",
        discussion: """
            One consistent state is copied in one transaction, as a whole or not at all. The target must be empty. \
            Afterwards the rows of both are counted, and must agree. Numbers and keys stay unchanged, so every address \
            that is in use keeps working.

            Stop postern serve first: its changes after the beginning of the copy would be missing. Then set database to the \
            URL in postern.yaml, and start it again. Keep the password in ~/.pgpass rather than in the URL.
            """)

    @Option(help: ArgumentHelp("The target.", valueName: "postgresql://user@host/name"))
    var to: String

    @Flag(
        help:
            "Copy while postern serve is running: only for a rehearsal, because its later changes are missing."
    )
    var live = false

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        if let complaint = StoreCopy.complaint(about: to) {
            throw CommandError.usage("--to: \(complaint)")
        }
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
            return try StoreCopy.copy(installation.store, to: to, now: PosternClock.now()) {
                done, total in
                if bar == nil { bar = ProgressBar(total: total) }
                bar?.update(done: done, count: done, of: "rows")
            }
        }
        if output.json {
            return try printJSON(counts.map { ["table": $0.table, "rows": $0.rows] as Members })
        }
        Table(
            header: ["TABLE", "ROWS"],
            rows: counts.filter { $0.rows > 0 }.map { [$0.table, "\($0.rows)"] }
        ).printInReport()
        print(
            "Copied \(Count.text(Int(counts.reduce(0) { $0 + $1.rows }), "row")) in \(counts.count) tables; the counts of both sides agree."
        )
        print("Next: set database in postern.yaml to this URL, and start postern serve.")
        if let path = try installation.configuration().0.database.path {
            print(
                "Once it runs, remove \(path) (and -wal, -shm): it keeps the old data, and no program reads it."
            )
        }
    }
}
