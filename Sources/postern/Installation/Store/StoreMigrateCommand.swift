// postern store migrate: the schema of the database.

import ArgumentParser
import Database
import Foundation
import PosternConfiguration
import Support

struct StoreMigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Migrate the database to the schema of this program.",
        discussion: """
            Every command and the relay itself do this when they start; this command does nothing else, and reports what it \
            did. Migrations only go forward: a database that a newer postern migrated is refused by an older one. --plan \
            changes nothing: it reports what a new program would do to the database, about how long that takes, and whether \
            hosts with the older program can continue during this time.
            """)

    @Flag(help: "Report what would be done, and change nothing.")
    var plan = false
    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let (configuration, _) = try installation.configuration()
        let database = try configuration.database.open()
        defer { try? database.close() }
        try Migrator().requireBegun(database)
        if plan {
            let steps = try Migrator().plan(database)
            let space = configuration.database.path.flatMap {
                DiskSpace(of: ($0 as NSString).deletingLastPathComponent)
            }
            let plan = MigrationPlan(
                steps: steps, free: space?.free, hasOneHost: configuration.database.path != nil)
            return output.json ? try printJSON(plan.members) : plan.print()
        }
        let report = try Migrator().migrate(database, now: PosternClock.now())
        if output.json {
            try printJSON(
                ["from": report.from, "to": report.to, "applied": report.applied] as Members)
        } else if report.applied.isEmpty {
            print("The database has schema version \(report.to); there was nothing to do.")
        } else {
            print(
                "Applied \(report.applied.joined(separator: ", ")); the database has schema version \(report.to)."
            )
        }
    }
}

/// The facts that an operator needs before an upgrade.
private struct MigrationPlan {
    let steps: [MigrationStep]
    /// Free octets on the disk of the database; nil if the database is on another machine.
    let free: UInt64?
    /// Whether the database cannot be open on any other host.
    let hasOneHost: Bool

    private var milliseconds: Int64 { steps.reduce(0) { $0 + $1.milliseconds } }
    private var octets: Int64 { steps.reduce(0) { $0 + $1.octets } }
    private var removed: [String] { steps.flatMap(\.removed) }

    var members: Members {
        [
            "seconds": Self.seconds(milliseconds), "octets": octets, "free_octets": free,
            "is_rolling": removed.isEmpty,
            "steps": steps.map { step in
                [
                    "migration": step.title, "seconds": Self.seconds(step.milliseconds),
                    "octets": step.octets,
                    "removed": step.removed,
                    "passes": step.passes.map {
                        ["table": $0.table, "work": $0.work.rawValue, "rows": $0.rows] as Members
                    },
                ] as Members
            },
        ]
    }

    func print() {
        guard !steps.isEmpty else {
            return Swift.print("There is nothing to do: the database has this program's schema.")
        }
        Table(
            header: ["MIGRATION", "GOES THROUGH", "SECONDS"],
            rows: steps.map { step in
                let passes = step.passes.map {
                    "\($0.work == .read ? "reads" : "writes") \($0.rows) rows of \($0.table)"
                }
                return [
                    step.title, passes.isEmpty ? "no rows" : passes.joined(separator: ", "),
                    "\(Self.seconds(step.milliseconds))",
                ]
            }
        ).printInReport()
        let room = free.map { ", of which \(Self.text($0)) are free" } ?? ""
        Swift.print(
            "Together it takes about \(Self.seconds(milliseconds)) s, and \(Self.text(UInt64(octets))) of disk\(room). "
                + "Mail is deferred during this time.")
        if let free, UInt64(octets) > free {
            Swift.print("The disk is too small: make room before you upgrade.")
        }
        Swift.print(rolling)
        Swift.print(
            "Only `postern store restore` leads back: make a backup first with the program that runs now."
        )
    }

    private var rolling: String {
        guard removed.isEmpty else {
            return
                "Not while the older program runs: it needs \(removed.joined(separator: ", ")), which will be removed. Stop it on "
                + (hasOneHost ? "this host" : "every host") + ", and then start the new one."
        }
        return hasOneHost
            ? "A service with the older program continues until you restart it."
            : "Hosts can be upgraded one after the other: those with the older program continue, but cannot be restarted with it."
    }

    private static func seconds(_ milliseconds: Int64) -> Int64 { (milliseconds + 999) / 1000 }

    private static func text(_ octets: UInt64) -> String {
        octets < 1_000_000_000
            ? "\((octets + 999_999) / 1_000_000) MB" : "\(octets / 1_000_000_000) GB"
    }
}
