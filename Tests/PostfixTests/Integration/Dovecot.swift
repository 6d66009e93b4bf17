// A private Dovecot with the operator's own mailboxes next to the relay, set up as in
// docs/INTEGRATION.md.

import Foundation
import PostfixHarness
import RelayHarness

final class Dovecot: RelayNeighbour {
    static let program = "/usr/sbin/dovecot"
    /// The recipe is for 2.3; 2.4 has other names.
    static let isThere =
        FileManager.default.isExecutableFile(atPath: "/usr/lib/dovecot/lmtp")
        && (try? ManagedProcess.run(program, ["--version"]).output.hasPrefix("2.3")) == true

    private let folder: ProgramFolder
    private var process: NeighbourProgram?

    init() throws { folder = try ProgramFolder() }

    let variables: [String: String] = [:]

    var log: String { process?.output ?? "Dovecot did not run" }

    func start(beside fixture: RelayFixture) throws {
        let users = try folder.write("users", Recipe.text("/etc/dovecot/users", [:]))
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/vmail", withIntermediateDirectories: true)
        let spool = fixture.postfix.directory + "/queue"
        let recipe = try Recipe.text(
            "/etc/dovecot/local.conf",
            [
                "/etc/dovecot/users": users, "/var/vmail": "\(folder.path)/vmail",
                "/var/spool/postfix": spool,
                "uid=vmail gid=vmail": "uid=nobody gid=nogroup",
            ])
        let file = try folder.write(
            "dovecot.conf",
            """
            protocols = lmtp
            base_dir = \(folder.path)/run
            state_dir = \(folder.path)/state
            log_path = /dev/stderr
            ssl = no
            \(recipe)
            """)
        try folder.give(to: "nobody")
        let process = try NeighbourProgram(Self.program, ["-F", "-c", file], in: folder)
        self.process = process
        try process.waitForLine(containing: "starting up")
        // The operator's settings before the relay, except those for outgoing mail; then the relay.
        let settings = try Recipe.postfix("/etc/postfix/main.cf, with Dovecot", beside: fixture)
        try fixture.postfix.set(
            settings.merging([
                "transport_maps": "", "relayhost": "[127.0.0.1]:\(fixture.sink.port)",
            ]) { $1 })
        try fixture.run(
            ["setup", "postfix", "--apply", "--config-directory", fixture.postfix.configuration]
                + fixture.settings)
        try fixture.postfix.set(["smtp_tls_security_level": "none"])
    }

    /// `[mailbox]`: lines `ADDRESS TEXT`. For each, the mailbox must contain exactly one message
    /// with a line that has this text.
    func failures(_ outline: TestCase) -> [String] {
        (outline.sections["mailbox"] ?? []).compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
            let names = parts[0].split(separator: "@")
            let box = "\(folder.path)/vmail/\(names[1])/\(names[0])/new"
            let files = (try? FileManager.default.contentsOfDirectory(atPath: box)) ?? []
            let texts = files.compactMap {
                try? String(contentsOfFile: "\(box)/\($0)", encoding: .utf8)
            }
            let found = texts.count {
                $0.split(whereSeparator: \.isNewline).contains { $0 == parts[1] }
            }
            return found == 1
                ? nil
                : "\(found) messages with \(parts[1]) in the mailbox of \(parts[0]):\n\(texts)"
        }
    }

    func stop() { process?.stop() }
}
