// A private rspamd next to the relay, with Debian's settings and those of docs/INTEGRATION.md in
// addition.

import Foundation
import PostfixHarness
import RelayHarness

final class Rspamd: RelayNeighbour {
    static let program = "/usr/bin/rspamd"
    private static let user = "_rspamd"

    private let folder: ProgramFolder
    private let port: UInt16
    private let key: OperatorKey
    private var process: NeighbourProgram?

    init() throws {
        folder = try ProgramFolder()
        port = try FreePort.next()
        for name in ["dkim", "run", "db", "log"] {
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(name)", withIntermediateDirectories: true)
        }
        key = try OperatorKey(file: "\(folder.path)/dkim/operator.example.mail.key")
    }

    /// `{rspamd}`: its socket. `{operator-key}`, `{sender-key}`: DKIM records.
    var variables: [String: String] {
        [
            "rspamd": "inet:127.0.0.1:\(port)", "operator-key": key.record,
            "sender-key": SenderKey.record,
        ]
    }

    var log: String { process?.output ?? "rspamd did not run" }

    func start(beside fixture: RelayFixture) throws {
        let local = { (name: String, replacements: [String: String]) in
            let text = try Recipe.text("/etc/rspamd/local.d/\(name)", replacements)
            try self.folder.write("etc/local.d/\(name)", text)
        }
        try local("worker-proxy.inc", ["11332": "\(port)"])
        try local("milter_headers.conf", [:])
        try local("dkim_signing.conf", ["/var/lib/rspamd/dkim": "\(folder.path)/dkim"])
        try local("actions.conf", [:])
        // A test makes no queries to the network, and no other part of rspamd listens.
        try folder.write(
            "etc/local.d/options.inc", "dns { nameserver = [\"\(fixture.dns.address)\"]; }\n")
        try folder.write("etc/local.d/logging.inc", "type = \"console\";\n")
        for worker in ["normal", "controller"] {
            try folder.write("etc/local.d/worker-\(worker).inc", "enabled = false;\n")
        }
        try folder.give(to: Self.user)
        let folders = ["LOCAL_CONFDIR": "etc", "DBDIR": "db", "RUNDIR": "run", "LOGDIR": "log"]
        let process = try NeighbourProgram(
            Self.program,
            ["-f", "-u", Self.user, "-g", Self.user, "-c", "/etc/rspamd/rspamd.conf"]
                + folders.flatMap { ["--var", "\($0.key)=\(folder.path)/\($0.value)"] }, in: folder)
        self.process = process
        try process.waitUntilServed(port)
        try fixture.postfix.set(
            Recipe.postfix(
                "/etc/postfix/main.cf, with rspamd", beside: fixture, ["11332": "\(port)"]))
    }

    func stop() { process?.stop() }
}
