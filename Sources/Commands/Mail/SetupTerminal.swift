// The guide of `postern setup` on a terminal.

import ArgumentParser
import CommandSupport
import Foundation
import PosternConfiguration

/// Talks to whoever sits there.
struct SetupTerminal: SetupDialogue {
    func say(_ text: String) { print(text) }

    func answer() -> String? {
        fflush(nil)
        return readLine()?.trimmingCharacters(in: .whitespaces)
    }

    func run(_ command: [String]) -> Int32 { status(command, isQuiet: false) }

    func succeeds(_ command: [String]) -> Bool { status(command, isQuiet: true) == 0 }

    private func status(_ command: [String], isQuiet: Bool) -> Int32 {
        fflush(nil)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        // The very program that asks, whatever else is called so.
        process.arguments = command.map { $0 == "postern" ? Self.program : $0 }
        if isQuiet { (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice) }
        process.standardInput = FileHandle.nullDevice
        do { try process.run() } catch { return 127 }
        process.waitUntilExit()
        return process.terminationStatus
    }

    private static let program =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
}

extension SetupSituation {
    /// What is found on this machine.
    static func here(_ environment: [String: String]) -> SetupSituation {
        var found = SetupSituation()
        let files = FileManager.default
        found.configuration = ResolvedConfiguration.locate(flag: nil, environment: environment)
        // The package's folder is a link.
        if let folder = try? files.destinationOfSymbolicLink(atPath: found.folder) {
            found.configuration = folder + "/" + (found.configuration as NSString).lastPathComponent
        }
        found.isInstalled = files.fileExists(atPath: found.configuration)
        found.hostname = ProcessInfo.processInfo.hostName
        if !found.hostname.contains(".") { found.hostname = "" }
        found.switchesUser = getuid() == 0 && getpwnam("postern") != nil
        found.hasPostfix = ["/usr/sbin/postconf", "/usr/local/sbin/postconf"].contains(where: files.isExecutableFile)
        found.hasSystemd = files.fileExists(atPath: "/run/systemd/system")
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
            try SetupGuide(dialogue: SetupTerminal(), situation: .here(ProcessInfo.processInfo.environment)).run()
        } catch SetupGuide.Ending.failed {
            throw CommandError(
                status: EX_UNAVAILABLE,
                message: "the last command failed, and says why above: fix that, and run postern setup again")
        } catch SetupGuide.Ending.noMoreAnswers {
            throw CommandError.usage("the questions were not answered: nothing more was done")
        }
    }
}
