// postern status: the state of the installation on one screen.

import ArgumentParser
import Foundation
import Monitoring

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract:
            "Show running services, the last hour's mail and decisions, and what needs attention.",
        discussion: """
            Reads the database, to which each running service reports every two seconds: all hosts of an installation are \
            shown. Only decisions of a service are counted, and not those of postern decide. Exit status 0 if nothing needs \
            attention, 1 otherwise. postern doctor checks more.

            --watch shows the same live, with the rates of the last seconds, until q is pressed. It needs a terminal.

            --dmarc shows instead the reports of receivers about mail from the relay domains (RFC 9990). The reports must be \
            sent to postmaster, abuse or one of local_recipients at a relay domain. Only reports that are proved to be from \
            their author are read.
            """)

    @Flag(help: "Show the reports of receivers of the last 30 days, and the hosts that failed.")
    var dmarc = false
    @Flag(help: "Show the state live in the terminal; q quits.")
    var watch = false
    @Option(
        help: ArgumentHelp(
            "Seconds between two updates of --watch, \(StatusWatch.intervals.lowerBound) to "
                + "\(StatusWatch.intervals.upperBound); by default \(StatusWatch.usualInterval).",
            valueName: "seconds"))
    var interval: Int?

    @OptionGroup var installation: InstallationOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if watch, dmarc { throw ValidationError("--watch and --dmarc exclude each other") }
        if watch, output.json { throw ValidationError("--watch and --json exclude each other") }
        guard let interval else { return }
        guard watch else { throw ValidationError("--interval is for --watch") }
        guard StatusWatch.intervals.contains(interval) else {
            throw ValidationError(
                "--interval must be \(StatusWatch.intervals.lowerBound) to \(StatusWatch.intervals.upperBound) seconds"
            )
        }
    }

    func run() throws {
        if watch {
            return try StatusWatch(interval: interval ?? StatusWatch.usualInterval).run(
                installation)
        }
        if dmarc { return try AggregateReports.print(installation, output) }
        var report = try installation.withInstallation {
            try StatusReport($0, now: PosternClock.now())
        }
        report.warnings = report.warnings.map { $0.with(installation.forProposals) }
        if output.json {
            try printJSON(report)
        } else {
            print(StatusScreen.lines(report).joined(separator: "\n"))
        }
        if !report.warnings.isEmpty { throw ExitCode(1) }
    }
}

/// The lines of `postern status`, which are also the lower part of --watch.
enum StatusScreen {
    static func lines(_ report: StatusReport, withWarnings: Bool = true) -> [String] {
        var lines = [
            emphasised("Postern \(PosternVersion.text)")
                + "  \(report.relayDomains.joined(separator: ", "))  \(report.configuration)"
        ]
        lines.append("\(plural(report.teams, "team")), \(plural(report.accounts, "account"))")
        lines.append("")
        lines += services(report) + [""] + mail(report)
        let refusals = report.lastHour(under: "refusals").prefix(6)
        if !refusals.isEmpty {
            lines.append(
                "  refused     " + refusals.map { "\($0.name) \($0.count)" }.joined(separator: ", ")
            )
        }
        lines.append("")
        lines += others(report)
        if !report.reports.isEmpty {
            lines += ["", emphasised("Reports of providers")]
            lines += report.reports.map { "  \($0.line)" }
        }
        guard withWarnings else { return lines }
        if !report.notes.isEmpty { lines += [""] + report.notes.map { "  \($0)" } }
        if !report.warnings.isEmpty {
            lines += ["", emphasised("Needs care")]
            lines += report.warnings.map { "  ! \($0.text)" }
        } else {
            lines += ["", "Nothing needs attention."]
        }
        return lines
    }

    static func services(_ report: StatusReport) -> [String] {
        guard !report.hosts.isEmpty else { return [emphasised("Services"), "  none"] }
        return [emphasised("Services")]
            + report.hosts.map { host in
                let what =
                    host.snapshot.map {
                        "milter \($0.milter)" + ($0.http.map { "  http \($0)" } ?? "  no http")
                    } ?? ""
                let state =
                    host.isRunning
                    ? "up \(StatusReport.duration((host.snapshot.map { PosternClock.now() - $0.startedAt }) ?? 0))"
                    : "silent for \(StatusReport.duration(host.silentFor))"
                return "  \(host.host)  pid \(host.pid)  \(state)  \(what)"
            }
    }

    static func mail(_ report: StatusReport) -> [String] {
        let outcomes = ["relayed", "discarded", "deferred", "refused"]
        var lines = [emphasised(row("Mail, last hour", outcomes.map { $0 }))]
        for direction in ["forward", "reply", "report", "answer", "operator"] {
            let counts = outcomes.map { report.lastHour["messages \(direction) \($0)"] ?? 0 }
            lines.append(row("  \(direction)", counts.map { "\($0)" }))
        }
        return lines
    }

    static func others(_ report: StatusReport) -> [String] {
        let decisions = ["allow", "require_verification"].map {
            "\($0) \(report.lastHour["decisions \($0)"] ?? 0)"
        }.joined(
            separator: ", ")
        let http = ["2xx", "4xx", "5xx"].map { "\($0) \(report.lastHour["http \($0)"] ?? 0)" }
            .joined(separator: ", ")
        let dns = ["answer", "none", "failure"].map { "\($0) \(report.lastHour["dns \($0)"] ?? 0)" }
            .joined(separator: ", ")
        let running = report.hosts.filter(\.isRunning).compactMap(\.snapshot)
        let waiting = Int(running.map(\.outboxEvents).max() ?? 0)
        let oldest = Int64(running.map(\.outboxOldest).max() ?? 0)
        let latency = ["rcpt", "header", "message"].compactMap { stage in
            running.compactMap { $0.latency[stage] }.max { $0.high < $1.high }.map {
                "\(stage) \(milliseconds($0.median))/\(milliseconds($0.high))"
            }
        }.joined(separator: ", ")
        return [
            emphasised("Last hour"), "  decisions   \(decisions)",
            "  events      \(waiting) waiting"
                + (waiting > 0 ? ", the oldest for \(StatusReport.duration(oldest))" : ""),
        ] + (report.removals.count > 0 ? ["  removals    \(report.removals.count) under way"] : [])
            + (report.nextHoldEnd.map {
                ["  holds       \(report.holds) in force, the next ends at \(timestamp($0))"]
            } ?? [])
            + [
                "  http        \(http)", "  dns         \(dns)",
                "  milter ms   \(latency.isEmpty ? "-" : latency + "  (median/95th, up to)")",
            ]
    }

    static func row(_ label: String, _ cells: [String]) -> String {
        label.padding(toLength: 18, withPad: " ", startingAt: 0)
            + cells.map { String(repeating: " ", count: max(0, 11 - $0.count)) + $0 }.joined()
    }

    private static func milliseconds(_ seconds: Double) -> String {
        let value = seconds * 1000
        return value < 10 ? "\((value * 10).rounded() / 10)" : "\(Int(value))"
    }

    private static func plural(_ count: Int, _ word: String) -> String {
        "\(count) \(word)\(count == 1 ? "" : "s")"
    }
}
