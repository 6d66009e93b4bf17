// A private Postfix: configuration, queue, data and ports are separate from the machine's, and are
// removed when it stops.

import Foundation
import Glibc
import PostfixSetup

/// A running private Postfix. Needs root, and the packages' users and groups (postfix, postdrop).
package final class PrivatePostfix: Sendable {
    /// How it is set up.
    package struct Options: Sendable {
        /// `myhostname`.
        package var hostName = "mx.relay.test"
        package var relayDomains = ["relay.test"]
        /// The address of the filter in Postfix's form; nil for no filter and no relay settings.
        package var socket: String?
        /// HOST:PORT of the smtpd for copies (fan-out), which the relay's
        /// settings make; nil for none.
        package var fanOut: String?
        /// Domains (or addresses, or `*`) and the ports on 127.0.0.1 to which their mail goes.
        package var routes: [String: UInt16] = [:]
        /// Parameters of main.cf that are set last.
        package var settings: [String: String] = [:]
        /// More services: lines for master.cf, in which `{port}` is replaced by a free
        /// port, found again in `ports`.
        package var services: [String] = []
        /// Whether 127.0.0.1 may send to any domain. Otherwise it may send only to the relay
        /// domains, like any client.
        package var trustsLoopback = false

        package init() {}
    }

    /// The reason why this machine and user cannot run one; nil if they can.
    package static var obstacle: String? {
        if geteuid() != 0 { return "a private Postfix needs root" }
        if !FileManager.default.isExecutableFile(atPath: "/usr/sbin/postfix") {
            return "Postfix is not installed"
        }
        return nil
    }

    package let options: Options
    /// The folder of everything; removed at the end.
    package let directory: String
    /// The SMTP port.
    package let port: UInt16
    /// The ports of `Options.services`, in order.
    package let ports: [UInt16]
    private let life: Watched<Life>

    /// The running Postfix, and the log of earlier ones that were killed.
    private struct Life {
        var process: ManagedProcess
        var before: [String] = []
    }

    private var process: ManagedProcess { life.with { $0.process } }

    /// The configuration directory.
    package var configuration: String { directory + "/etc" }

    /// Writes the configuration, applies the relay's settings like `postern setup postfix --apply`,
    /// and starts.
    package init(_ options: Options) throws {
        if let obstacle = Self.obstacle { throw HarnessError(obstacle) }
        self.options = options
        directory =
            NSTemporaryDirectory() + "postern-postfix-" + UUID().uuidString.prefix(8).lowercased()
        port = try FreePort.next()
        let ports = try options.services.map { _ in try FreePort.next() }
        self.ports = ports
        do {
            try Self.write(options, directory: directory, port: port, ports: ports)
            life = Watched(Life(process: try Self.start(directory)))
        } catch {
            try? FileManager.default.removeItem(atPath: directory)
            throw error
        }
        do {
            try waitUntilStarted()
        } catch {
            stop()
            throw error
        }
    }

    private func waitUntilStarted() throws {
        let line = process.wait {
            $0.first { $0.contains("daemon started") || $0.contains("postfix ended") }
        }
        guard let line, line.contains("daemon started") else {
            throw HarnessError("Postfix did not start:\n\(process.output)")
        }
    }

    deinit { stop() }

    private static func write(
        _ options: Options, directory: String, port: UInt16, ports: [UInt16]
    ) throws {
        for folder in ["etc", "queue", "data"] {
            try FileManager.default.createDirectory(
                atPath: "\(directory)/\(folder)", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o755])
        }
        guard let user = getpwnam("postfix")?.pointee, let group = getgrnam("postdrop")?.pointee
        else {
            throw HarnessError("there is no user postfix or no group postdrop")
        }
        chown("\(directory)/data", user.pw_uid, user.pw_gid)
        // Postfix would make these itself and check them with about sixty processes. The file of a
        // quick stop avoids that.
        try "".write(toFile: "\(directory)/queue/quick-start", atomically: true, encoding: .utf8)
        for (name, owner, gid, mode) in PrivateConfiguration.queueFolders {
            let path = "\(directory)/queue/\(name)"
            guard mkdir(path, mode) == 0,
                chown(path, owner ? user.pw_uid : 0, gid ? group.gr_gid : 0) == 0,
                chmod(path, mode) == 0
            else { throw HarnessError("cannot make \(path)") }
        }
        let main = PrivateConfiguration.main(options, directory: directory)
        try main.write(toFile: "\(directory)/etc/main.cf", atomically: true, encoding: .utf8)
        let master = PrivateConfiguration.master(options, port: port, ports: ports)
        try master.write(toFile: "\(directory)/etc/master.cf", atomically: true, encoding: .utf8)
        try age(directory)
        if let socket = options.socket {
            let plan = try PostfixSetup.plan(
                relayDomains: options.relayDomains, socket: socket, fanOut: options.fanOut,
                directory: "\(directory)/etc")
            try PostfixSetup.apply(plan) { content, path in
                try content.write(to: URL(filePath: path), options: .atomic)
            }
        }
        // There are no certificates here. Then the settings of the caller follow.
        try postconf(
            "\(directory)/etc", ["smtp_tls_security_level": "none"].merging(options.settings) { $1 }
        )
        try age(directory)
    }

    /// Postfix's programs wait until a configuration file is 2 s old. These files are already
    /// complete.
    private static func age(_ directory: String) throws {
        for name in ["main.cf", "master.cf"] {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -60)],
                ofItemAtPath: "\(directory)/etc/\(name)")
        }
    }

    /// Changes a setting of master.cf (`service/type/name=value`, or without value
    /// to remove it) and reloads.
    package func setMaster(_ setting: String) throws {
        let flag = setting.contains("=") ? "-P" : "-PX"
        let result = try ManagedProcess.run(
            "/usr/sbin/postconf", ["-c", configuration, flag, setting])
        guard result.status == 0 else { throw HarnessError("postconf: \(result.output)") }
        try set([:])
    }

    private static func postconf(_ configuration: String, _ settings: [String: String]) throws {
        guard !settings.isEmpty else { return }
        let result = try ManagedProcess.run(
            "/usr/sbin/postconf",
            ["-c", configuration, "-e"] + settings.map { "\($0.key) = \($0.value)" })
        guard result.status == 0 else { throw HarnessError("postconf: \(result.output)") }
    }

    /// Starts it through a shell. When the shell's input ends, because of `stop` or because this
    /// process has ended, the shell ends Postfix and removes the folder.
    private static func start(_ directory: String) throws -> ManagedProcess {
        let script = """
            (postfix -c "$1/etc" start-fg; echo "postfix ended with status $?") </dev/null & child=$!
            cat >/dev/null
            master=$(tr -d ' ' <"$1/queue/pid/master.pid") && kill -TERM $master
            wait $child
            rm -rf "$1"
            """
        return try ManagedProcess("/bin/sh", ["-c", script, "sh", directory])
    }

    /// Ends it, waits until every process has ended, and removes the folder. May be called again.
    package func stop() {
        process.closeInput()
        _ = try? process.waitForExit()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Kills all of its processes at once, like a loss of power. The queue stays unchanged.
    /// - Parameter others: more processes of the machine.
    package func kill(together others: [Int32] = []) throws {
        let process = process
        // The shell first, as it would otherwise end Postfix in good order; then all others
        // together.
        var all = [process.identifier] + others + Self.processes(in: directory + "/queue")
        // A process that one of them has started in between is found in the next round.
        for _ in 0..<1000 where !all.isEmpty {
            for identifier in all { Glibc.kill(identifier, SIGKILL) }
            usleep(10_000)
            all = Self.processes(in: directory + "/queue")
        }
        guard all.isEmpty else { throw HarnessError("Postfix cannot be killed") }
        process.end()
        life.with { $0.before += process.lines }
    }

    /// Starts it again after `kill`, on the existing queue.
    package func restart() throws {
        try "".write(toFile: "\(directory)/queue/quick-start", atomically: true, encoding: .utf8)
        let process = try Self.start(directory)
        life.with { $0.process = process }
        try waitUntilStarted()
    }

    /// All processes of Postfix work in its queue's folder.
    private static func processes(in folder: String) -> [Int32] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { Int32($0) }.filter { identifier in
            let place = try? FileManager.default.destinationOfSymbolicLink(
                atPath: "/proc/\(identifier)/cwd")
            return place.map { $0 == folder || $0.hasPrefix(folder + "/") } ?? false
        }
    }

    /// The whole log so far.
    package var log: String { logLines.joined(separator: "\n") }

    /// The end of the log, for the message of a failed test.
    package var logTail: String { logLines.suffix(40).joined(separator: "\n") }

    /// The lines of the log so far.
    package var logLines: [String] {
        let (process, before) = life.with { ($0.process, $0.before) }
        return before + process.lines
    }

    /// Waits for a log line that contains `text`, from line `start` on.
    @discardableResult
    package func waitForLog(
        containing text: String, from start: Int = 0, seconds: Double = standardTimeout
    ) throws -> String {
        let (process, before) = life.with { ($0.process, $0.before) }
        if let line = before.dropFirst(start).first(where: { $0.contains(text) }) { return line }
        return try process.waitForLine(
            containing: text, from: max(0, start - before.count), seconds: seconds)
    }

    /// Waits until Postfix has no message left of those that it accepted, and has processed
    /// `queueIDs`.
    package func waitUntilDone(_ queueIDs: [String] = [], seconds: Double = standardTimeout) throws
    {
        let end = Date(timeIntervalSinceNow: seconds)
        let (process, before) = life.with { ($0.process, $0.before) }
        // A removal in the moment of a kill may not be in the log. The queue itself then shows the
        // remaining messages.
        while try before.isEmpty ? isUnderWay || !isDone(queueIDs, process, end) : !queue().isEmpty
        {
            guard Date() < end else {
                throw HarnessError("messages stay in the queue:\n\(logTail)")
            }
            usleep(before.isEmpty ? 10_000 : 200_000)
        }
    }

    /// Whether an accepted message was not yet tried. A message in reception is not executable.
    private var isUnderWay: Bool {
        for name in ["incoming", "active"] {
            let folder = "\(directory)/queue/\(name)"
            for file in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
                var status = stat()
                if stat("\(folder)/\(file)", &status) == 0, status.st_mode & S_IXUSR != 0 {
                    return true
                }
            }
        }
        return false
    }

    /// Waits until the queue manager has logged the removal of all messages.
    private func isDone(_ queueIDs: [String], _ process: ManagedProcess, _ end: Date) -> Bool {
        process.wait(seconds: max(0, end.timeIntervalSinceNow)) { lines in
            var open = Set(queueIDs)
            for line in lines where line.contains("/qmgr[") || line.contains(": milter-discard: ") {
                guard let text = line.components(separatedBy: "]: ").dropFirst().first,
                    let colon = text.firstIndex(of: ":")
                else { continue }
                let identifier = String(text[..<colon])
                if text.hasSuffix(": removed") || text.contains(": milter-discard: ") {
                    open.remove(identifier)
                } else if text.contains(": from=<") {
                    open.insert(identifier)
                }
            }
            // A message cannot get the id of a removed one again, as ids contain microseconds.
            return open.isEmpty ? true : nil
        } ?? false
    }

    /// Changes parameters of main.cf and reloads. New smtpd processes use them; running ones end
    /// with their connection.
    package func set(_ settings: [String: String]) throws {
        try Self.postconf(configuration, settings)
        try Self.age(directory)
        let start = logLines.count
        try command("reload")
        try waitForLog(containing: "reload -- version", from: start)
    }

    /// Tries to deliver all queued mail now.
    package func flush() throws { try command("flush") }

    private func command(_ verb: String) throws {
        let result = try ManagedProcess.run("/usr/sbin/postfix", ["-c", configuration, verb])
        guard result.status == 0 else { throw HarnessError("postfix \(verb): \(result.output)") }
    }

    /// The queue, as `postqueue -j` lists it: one JSON object for each message.
    package func queue() throws -> [String] {
        let result = try ManagedProcess.run("/usr/sbin/postqueue", ["-c", configuration, "-j"])
        guard result.status == 0 else { throw HarnessError("postqueue: \(result.output)") }
        return result.output.split(separator: "\n").map(String.init)
    }

    /// Submits a message with sendmail(1), as a program on the same machine does.
    package func submit(from: String, to recipients: [String], _ message: String) throws {
        let result = try ManagedProcess.run(
            "/usr/sbin/sendmail", ["-C", configuration, "-i", "-f", from, "--"] + recipients,
            input: message)
        guard result.status == 0 else { throw HarnessError("sendmail: \(result.output)") }
    }

    /// Opens a client connection to the SMTP port.
    package func connect() throws -> SMTPClient { try SMTPClient(port: port) }

    /// Sends one message over its own connection.
    package func send(
        from: String, to recipients: [String], message: [UInt8], xclient: [(String, String)] = []
    ) throws -> SMTPTransactionResult {
        try SMTPClient.send(
            port: port, from: from, to: recipients, message: message, xclient: xclient)
    }
}
