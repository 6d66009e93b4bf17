// The guide of `postern setup` on a terminal.

import ArgumentParser
import Concurrency
import Foundation
import PosternConfiguration

/// Interacts with the user at the terminal.
struct SetupTerminal: SetupDialogue {
    /// The configuration that the commands use.
    let configuration: String

    func say(_ text: String) { print(text) }

    func answer() -> String? {
        fflush(nil)
        return readLine()?.trimmingCharacters(in: .whitespaces)
    }

    func run(_ command: GuidedCommand) -> Int32 { status(command, isQuiet: false) }

    func succeeds(_ command: GuidedCommand) -> Bool { status(command, isQuiet: true) == 0 }

    private func status(_ command: GuidedCommand, isQuiet: Bool) -> Int32 {
        fflush(nil)
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        let process = try? SystemProcess(
            "/usr/bin/env", command.line(postern: Self.program),
            environment: ProcessInfo.processInfo.environment.merging([
                "POSTERN_CONFIG": configuration
            ]) { $1 },
            descriptors: (
                nothing, isQuiet ? nothing : STDOUT_FILENO, isQuiet ? nothing : STDERR_FILENO
            ))
        return process?.wait() ?? 127
    }

    private static let program =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        ?? CommandLine.arguments[0]
}

extension SetupSituation {
    /// The situation on this machine.
    /// - Throws: if the installation cannot be accessed, or if its file does not have the name that
    ///   `init` gives.
    static func here(_ environment: [String: String]) throws -> SetupSituation {
        var found = SetupSituation()
        let usual = ResolvedConfiguration.usualPath
        let located = ResolvedConfiguration.locate(flag: nil, environment: environment)
        // The package's folder in /etc is a link.
        if located != usual || access(usual, F_OK) == 0 {
            var isFolder: ObjCBool = false
            let isNamedFolder =
                located.hasSuffix("/")
                || FileManager.default.fileExists(atPath: located, isDirectory: &isFolder)
                    && isFolder.boolValue
            let folder = isNamedFolder ? located : (located as NSString).deletingLastPathComponent
            guard isNamedFolder || (located as NSString).lastPathComponent == "postern.yaml" else {
                throw CommandError.usage(
                    "postern setup makes a file postern.yaml: POSTERN_CONFIG names \(located)")
            }
            found.configuration =
                URL(filePath: folder).resolvingSymlinksInPath().path + "/postern.yaml"
        }
        found.isInstalled = access(found.configuration, F_OK) == 0
        guard found.isInstalled || errno != EACCES else {
            throw CommandError(
                status: EX_NOPERM,
                message:
                    "\(found.folder) cannot be read: run postern setup as root, or as the user postern"
            )
        }
        found.hostname = ProcessInfo.processInfo.hostName
        if !found.hostname.contains(".") { found.hostname = "" }
        found.switchesUser = getuid() == 0 && getpwnam("postern") != nil
        found.hasPostfix =
            access("/usr/sbin/postconf", X_OK) == 0 || access("/usr/local/sbin/postconf", X_OK) == 0
        found.hasSystemd = access("/run/systemd/system", F_OK) == 0
        return found
    }
}

extension SetupCommand {
    func run() throws {
        guard isTerminal, isatty(STDIN_FILENO) == 1 else {
            throw CommandError.usage(
                "postern setup asks questions and needs a terminal: without one use postern init, postern setup postfix and postern doctor"
            )
        }
        do {
            let situation = try SetupSituation.here(ProcessInfo.processInfo.environment)
            try SetupGuide(
                dialogue: SetupTerminal(configuration: situation.configuration),
                situation: situation
            ).run()
        } catch SetupGuide.Ending.failed {
            throw CommandError(
                status: EX_UNAVAILABLE,
                message:
                    "the last command failed, with the reason above: fix it, and run postern setup again"
            )
        } catch SetupGuide.Ending.noMoreAnswers {
            throw CommandError.usage("not all questions were answered: nothing more was done")
        }
    }
}
