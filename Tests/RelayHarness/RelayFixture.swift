// A complete installation for tests and the demonstration: Postern with a new store, a private
// Postfix, name server and sinks.

import DNSClient
import DNSTesting
import Foundation
import PostfixHarness

/// Everything runs on loopback and free ports, in a temporary folder. `stop`, or the release of the
/// last reference, ends and removes it.
package final class RelayFixture: @unchecked Sendable {
    /// How it is set up.
    package struct Options {
        package var relayDomains = ["relay.example"]
        /// Names in the DNS of the installation, as JSON.
        package var zone = "{}"
        /// Configuration keys, as for `--set`.
        package var settings: [String: String] = [:]
        /// Parameters of main.cf.
        package var postfix: [String: String] = [:]
        /// More smtpd services of Postfix; see `PrivatePostfix.Options`.
        package var services: [String] = []
        /// Whether clients on loopback may send to any domain, as a
        /// team's or user's own server may.
        package var trustsLoopback = false
        /// PostgreSQL's URL instead of a file.
        package var database: String?
        /// The first host of the installation, if this fixture is a further host of it.
        package var joins: RelayFixture?
        /// Whether mail that stays at the relay domains goes to a port without a listener, as in an
        /// installation, and not to the sink.
        package var parks = false
        /// Whether a message to several users is fanned out.
        package var fansOut = false
        /// The port to which Postern hands over copies, instead of Postfix's smtpd for them.
        package var fanOutProxy: UInt16?
        /// Octets of the installation's own disk; nil to use the common one. Needs the right to
        /// mount.
        package var diskSize: Int?

        package init() {}
    }

    package let folder: String
    package let dns: TestDNSServer
    /// Accepts all outgoing mail of Postfix, for any domain.
    package let sink: SMTPSink
    package let postfix: PrivatePostfix
    /// The command under test.
    package let program: String
    private let options: Options
    /// The port of Postfix's smtpd for copies; 0 if there is none.
    package let fanOutPort: UInt16
    private var service: ManagedProcess?
    /// The addresses that must not be in the log of the service.
    private var knownInboxes: Set<String> = []

    package var configuration: String { folder + "/postern/postern.yaml" }
    package var socket: String { "unix:\(folder)/milter.sock" }

    /// Makes the store and starts everything.
    package init(_ options: Options = Options()) throws {
        self.options = options
        folder =
            NSTemporaryDirectory() + "postern-relay-" + UUID().uuidString.prefix(8).lowercased()
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o755])
        if let size = options.diskSize {
            try FileManager.default.createDirectory(
                atPath: folder + "/postern", withIntermediateDirectories: false)
            let mounted = try ManagedProcess.run(
                "/bin/mount",
                ["-t", "tmpfs", "-o", "size=\(size),mode=0755", "tmpfs", folder + "/postern"])
            guard mounted.status == 0 else { throw HarnessError("mount: \(mounted.output)") }
        }
        program = try ManagedProcess.builtProduct("postern")
        dns = try TestDNSServer(zone: ZoneFile(json: Data(options.zone.utf8)))
        sink = try SMTPSink()
        var settings = PrivatePostfix.Options()
        settings.hostName = "mx." + (options.relayDomains.first ?? "relay.example")
        settings.relayDomains = options.relayDomains
        fanOutPort = options.fansOut ? try FreePort.next() : 0
        settings.fanOut = options.fansOut ? "127.0.0.1:\(fanOutPort)" : nil
        settings.socket = "unix:\(folder)/milter.sock"
        settings.routes = ["*": sink.port]
        if options.parks {
            // Port 9 exists once on the machine, and tests run at the same time.
            let port = try FreePort.next()
            for domain in options.relayDomains { settings.routes[domain] = port }
        }
        settings.settings = options.postfix
        settings.services = options.services
        settings.trustsLoopback = options.trustsLoopback
        postfix = try PrivatePostfix(settings)
        if let first = options.joins {
            try FileManager.default.createDirectory(
                atPath: folder + "/postern", withIntermediateDirectories: false)
            try FileManager.default.copyItem(atPath: first.configuration, toPath: configuration)
            try copyKeys(from: first)
        } else if options.database == nil, options.diskSize == nil {
            try InstallationCopy.make(folder + "/postern", relayDomains: options.relayDomains)
        } else {
            let database = options.database.map { ["--database", $0] } ?? []
            try run(
                ["init", "--directory", folder + "/postern"]
                    + options.relayDomains.flatMap { ["--relay-domain", $0] } + database,
                configured: false)
        }
        try serve()
    }

    package var keyFile: String { folder + "/postern/postern.keys" }

    /// The action of an operator after a key was added on another host.
    package func copyKeys(from other: RelayFixture) throws {
        let new = keyFile + ".copy"
        try? FileManager.default.removeItem(atPath: new)
        try FileManager.default.copyItem(atPath: other.keyFile, toPath: new)
        guard chmod(new, 0o600) == 0, rename(new, keyFile) == 0 else {
            throw HarnessError("the key file cannot be copied")
        }
    }

    deinit { stop() }

    /// Ends everything and removes the folder. May be called again.
    package func stop() {
        postfix.stop()
        service?.end()
        if let service { ServiceLogs.keep(service.lines, inboxes: knownInboxes) }
        sink.stop()
        dns.stop()
        if options.diskSize != nil {
            _ = try? ManagedProcess.run("/bin/umount", ["-l", folder + "/postern"])
        }
        try? FileManager.default.removeItem(atPath: folder)
    }

    // MARK: The service

    /// The configuration keys of this fixture, as flags for any command that needs them.
    package var settings: [String] {
        let settings = [
            "milter.socket": socket, "milter.socket_mode": "0666", "dns.servers": "\(dns.address)",
            "operator_address": "ops@operator.example",
            "postfix_directory": postfix.configuration, "http.listen": "127.0.0.1:0",
            "mail.submission": "127.0.0.1:\(postfix.port)",
            "fan_out": options.fansOut ? "on" : "off",
            "fan_out_smtpd": "127.0.0.1:\(max(1, options.fanOutProxy ?? fanOutPort))",
        ].merging(options.settings) { $1 }
        return settings.sorted { $0.key < $1.key }.flatMap { ["--set", "\($0.key)=\($0.value)"] }
    }

    /// Starts `postern serve` and waits until it listens.
    package func serve() throws {
        let process = try ManagedProcess(program, ["serve", "--config", configuration] + settings)
        service = process
        // Not the line about a policy, which contains "serving" too.
        try process.waitForLine(containing: "serving pid=")
    }

    /// The running `postern serve`.
    package var process: ManagedProcess {
        get throws {
            guard let service else { throw HarnessError("postern serve is not running") }
            return service
        }
    }

    /// Sends a signal to `postern serve`, waits for its end, and returns its exit status.
    @discardableResult
    package func end(_ signal: Int32 = SIGTERM) throws -> Int32 {
        let process = try process
        // Done first: as soon as the process has ended, another thread may start the next one.
        service = nil
        process.signal(signal)
        let status = try process.waitForExit()
        ServiceLogs.keep(process.lines, inboxes: knownInboxes)
        return status
    }

    /// Ends the whole host like a loss of power: Postern and every process of its Postfix, with
    /// SIGKILL.
    package func kill() throws {
        try postfix.kill(together: [process.identifier])
        try end(SIGKILL)
    }

    /// Starts both again with the data that they left.
    package func revive() throws {
        try postfix.restart()
        try serve()
    }

    // MARK: Administration

    /// Runs a command of postern and returns its output; throws if it fails.
    @discardableResult
    package func run(_ arguments: [String], configured: Bool = true) throws -> String {
        let result = try ManagedProcess.run(
            program, arguments + (configured ? ["--config", configuration] : []))
        guard result.status == 0 else {
            throw HarnessError("postern \(arguments.joined(separator: " ")): \(result.output)")
        }
        return result.output
    }

    /// A team with one source.
    package func addTeam(_ team: String, name: String, source: String) throws {
        try run(["team", "add", team, "--name", name])
        try run(["source", "add", team, source])
    }

    /// A user with verified inboxes, the first the default.
    package func addUser(_ user: String, inboxes: [String]) throws {
        guard let first = inboxes.first else { return }
        knownInboxes.formUnion(inboxes)
        try run(["user", "add", user, "--inbox", first, "--verified"])
        for inbox in inboxes.dropFirst() { try run(["inbox", "add", user, inbox, "--verified"]) }
    }

    /// The relay address of a user for a team.
    package func address(_ team: String, _ user: String) throws -> String {
        try run(["address", "issue", team, user]).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The reverse address of a correspondent for the user of a relay address, from `postern
    /// explain`.
    package func reverseAddress(of author: String, for relayAddress: String) throws -> String {
        let zone = folder + "/explain-zone.json"
        let domain = author.split(separator: "@").last ?? ""
        try #"{"\#(domain)": {"TXT": ["v=spf1 ip4:192.0.2.1 -all"]}}"#.write(
            toFile: zone, atomically: true, encoding: .utf8)
        let result = try ManagedProcess.run(
            program,
            [
                "explain", "--config", configuration, "--mail-from", author, "--rcpt", relayAddress,
                "--ip", "192.0.2.1", "--dns",
                zone,
            ],
            input: "From: \(author)\r\nTo: \(relayAddress)\r\n\r\n")
        let line =
            result.output.split(whereSeparator: \.isNewline).first { $0.hasPrefix("From: ") } ?? ""
        guard let open = line.lastIndex(of: "<"), let close = line.lastIndex(of: ">"), open < close
        else {
            throw HarnessError("no reverse address in\n\(result.output)")
        }
        return String(line[line.index(after: open)..<close])
    }

    // MARK: Mail

    /// Sends a message to Postfix as an SMTP client.
    @discardableResult
    package func send(
        from sender: String, to recipients: [String], _ message: String
    ) throws -> SMTPTransactionResult {
        try postfix.send(
            from: "<\(sender)>", to: recipients.map { "<\($0)>" },
            message: Array(
                message.replacingOccurrences(of: "\r\n", with: "\n").replacingOccurrences(
                    of: "\n", with: "\r\n"
                ).utf8)
        )
    }

    /// The `number`th message that arrives for a recipient, counted from 1.
    package func arrival(for recipient: String, number: Int = 1) throws -> SinkMessage {
        do {
            return try sink.wait(for: number) { $0.recipients.contains("<\(recipient)>") }[
                number - 1]
        } catch {
            throw HarnessError(
                "\(error)\n--- Postfix\n\(postfix.log)\n--- postern\n\((try? process.output) ?? "not running")"
            )
        }
    }
}
