// `postern setup postfix`: shows or applies the settings that Postfix needs.

import ArgumentParser
import Database
import Foundation
import Milter
import PostfixSetup
import Relay
import Support

struct SetupCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "setup",
        abstract: "Start an installation step by step, or attach Postern to Postfix.",
        discussion: """
            Without a subcommand, on a terminal, it asks for domain, host and address, and guides you through installation, \
            DNS, the service, Postfix and a message to yourself. Each step is a command, which is shown before it runs.
            """, subcommands: [SetupPostfixCommand.self])
}

struct SetupPostfixCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postfix", abstract: "Show or apply the settings that Postfix needs.",
        discussion: """
            Reads the running configuration with postconf and prints what differs, each setting with its reason. With \
            --apply, the settings are applied after the difference is printed. Your own values are kept if they do not \
            conflict; if any conflicts, nothing is changed. With --print, the whole fragments for main.cf and master.cf are \
            printed, also without Postfix on this machine.

            What --apply changes is recorded in postern_settings.json beside main.cf. --remove undoes this, before Postern is \
            removed from the machine: settings that are still unchanged get their previous values, and the others stay and are \
            listed. Without --apply, it only shows the changes.
            """)

    @OptionGroup var options: InstallationOptions
    @Option(help: ArgumentHelp("Postfix's configuration directory.", valueName: "dir"))
    var configDirectory = "/etc/postfix"
    @Flag(help: "Set what differs. Then reload Postfix.") var apply = false
    @Flag(help: "Undo the settings, instead of making them.") var remove = false
    @OptionGroup var output: OutputOptions
    @Flag(name: .customLong("print"), help: "Print the whole fragments instead of the difference.")
    var printsFragments = false

    func validate() throws {
        _ = try filePath(configDirectory)
        guard !(apply && printsFragments) else {
            throw ValidationError("--apply and --print exclude each other")
        }
        guard !(output.json && printsFragments) else {
            throw ValidationError("--json and --print exclude each other")
        }
        guard !(remove && printsFragments) else {
            throw ValidationError("--remove and --print exclude each other")
        }
    }

    func run() throws {
        // Postern's configuration may already be deleted.
        if remove { return try takeBack() }
        let (configuration, resolved) = try options.configuration()
        guard let socket = MilterSocket(configuration.milter.socket) else {
            throw CommandError(
                status: EX_CONFIG,
                message:
                    "\(resolved.path): milter.socket cannot be read: \(configuration.milter.socket)"
            )
        }
        if printsFragments {
            // The header check must use the host name that Postfix itself uses; otherwise it
            // matches nothing.
            let names = try? PostfixSetup.names(directory: configDirectory)
            if names == nil {
                Failure.warn(
                    "\(configDirectory) cannot be read: the header check names \(configuration.hostname), which must be Postfix's myhostname"
                )
            }
            var inputs = PostfixInputs(
                relayDomains: configuration.relayDomains, socket: socket.postfixName,
                hostName: names?.host ?? configuration.hostname,
                mailName: names?.mail ?? "Postfix",
                headerChecksFile: "\(configDirectory)/postern_header_checks",
                fanOut: configuration.fanOut?.text)
            inputs.outgoing = configuration.outgoingServices
            print(PostfixSetup.fragments(inputs), terminator: "")
            return
        }
        let plan: SetupPlan
        do {
            plan = try PostfixSetup.plan(
                relayDomains: configuration.relayDomains,
                formerDomains: configuration.formerRelayDomains,
                socket: socket.postfixName, fanOut: configuration.fanOut?.text,
                outgoing: configuration.outgoingServices, directory: configDirectory)
        } catch {
            throw CommandError(
                status: EX_UNAVAILABLE,
                message:
                    "\(configDirectory) cannot be read: \(error); name Postfix's directory with --config-directory, or use --print"
            )
        }
        if !output.json { print(plan.text, terminator: "") }
        let owner =
            (try? PostfixConfiguration.read(directory: plan.directory))?.expanded["mail_owner"]
            ?? "postfix"
        if let trouble = MilterPeers(configuration.milter.peers).trouble(mailOwner: owner) {
            Failure.warn(trouble.text)
        }
        let isApplied = apply && plan.conflicts.isEmpty
        func show() throws {
            guard output.json else { return }
            func changes(_ changes: [SettingChange]) -> [Members] {
                changes.map {
                    ["name": $0.name, "old": $0.old, "new": $0.new, "reason": $0.reason]
                }
            }
            try printJSON(
                [
                    "directory": plan.directory, "applied": isApplied,
                    "main": changes(plan.mainChanges),
                    "master": changes(plan.masterChanges), "services": changes(plan.newServices),
                    "header_checks": plan.headerChecks?.path, "notes": plan.notes,
                    "bypasses": plan.bypasses,
                    "conflicts": plan.conflicts,
                ] as Members)
        }
        guard plan.conflicts.isEmpty else {
            try show()
            throw CommandError(
                status: EX_CONFIG, message: "nothing was changed: resolve the conflicts above first"
            )
        }
        guard apply, !plan.isEmpty else { return try show() }
        do {
            try PostfixSetup.apply(plan, write: write)
        } catch let error as PostfixToolError {
            throw CommandError(status: EX_UNAVAILABLE, message: "\(configDirectory): \(error)")
        } catch {
            throw CommandError(
                status: EX_NOPERM, message: "\(configDirectory) cannot be changed: \(error)")
        }
        guard !output.json else { return try show() }
        print("Applied. Now: \(reload.text)")
    }

    private func takeBack() throws {
        let found: RemovalPlan?
        do { found = try PostfixSetup.removal(directory: configDirectory) } catch {
            throw CommandError(
                status: EX_UNAVAILABLE, message: "\(configDirectory) cannot be read: \(error)")
        }
        guard let plan = found else {
            throw CommandError.noInput(
                "\(configDirectory)/\(SetupRecord.fileName) is not there: postern setup postfix --apply was never run here, or the settings "
                    + "were taken back already")
        }
        if output.json {
            try printJSON(
                [
                    "directory": plan.directory, "applied": apply, "changes": plan.lines,
                    "kept": plan.kept,
                ] as Members)
        } else {
            print(plan.text, terminator: "")
        }
        guard apply else { return }
        do {
            try PostfixSetup.remove(plan, write: write)
        } catch let error as PostfixToolError {
            throw CommandError(status: EX_UNAVAILABLE, message: "\(configDirectory): \(error)")
        } catch {
            throw CommandError(
                status: EX_NOPERM, message: "\(configDirectory) cannot be changed: \(error)")
        }
        guard !output.json else { return }
        print(
            plan.kept.isEmpty
                ? "Taken back. Now: \(reload.text)"
                : "Taken back, except the parts named above: check these, then \(reload.text)")
    }

    /// Creates a file, or replaces it with the same owner and mode. A new file must be readable for
    /// Postfix's own processes, so this process's umask does not apply. The record contains the
    /// text of main.cf and master.cf, so users who cannot read these cannot read the record.
    private func write(_ content: Data, _ path: String) throws {
        // The permissions of main.cf may have become stricter after the record was created.
        let isNew =
            !FileManager.default.fileExists(atPath: path)
            || path.hasSuffix("/\(SetupRecord.fileName)")
        var mode: mode_t = 0o644
        var status = stat()
        for name in ["main.cf", "master.cf"] where stat("\(configDirectory)/\(name)", &status) == 0
        { mode &= status.st_mode }
        try OwnedFile.write(content, to: path, mode: mode | 0o400, isModeFixed: isNew)
    }

    private var reload: Remedy {
        "\(.reloadPostfix, postfix: URL(fileURLWithPath: configDirectory).standardizedFileURL.path)"
    }
}
