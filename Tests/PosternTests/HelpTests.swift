// The help texts, as files. POSTERN_TEST_RECORD=1 writes them again: look at the difference before you commit it.

import Foundation
import Testing

@Suite struct HelpTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Snapshots")

    static let commands: [[String]] = [
        ["init"], ["config"], ["config", "check"], ["config", "show"], ["migrate"], ["backup"], ["restore"], ["store"],
        ["store", "copy"],
        ["key-file"], ["key-file", "show"], ["key-file", "rotate"], ["key-file", "retire"], ["team"], ["team", "add"],
        ["team", "list"],
        ["team", "show"], ["team", "complaints"], ["team", "remove"], ["source"], ["source", "add"], ["source", "list"],
        ["source", "remove"], ["app"],
        ["app", "add"], ["app", "list"], ["app", "remove"], ["app", "appearance"], ["app", "nonce"], ["user"], ["user", "add"],
        ["user", "list"],
        ["user", "show"],
        ["user", "remove"], ["inbox"], ["inbox", "add"], ["inbox", "list"], ["inbox", "show"], ["inbox", "verify"],
        ["inbox", "confirm"], ["inbox", "default"],
        ["inbox", "remove"], ["address"], ["address", "issue"], ["address", "list"], ["address", "show"], ["address", "on"],
        ["address", "off"], ["address", "retire"], ["dkim"], ["dkim", "generate"], ["dkim", "list"], ["dkim", "activate"],
        ["dkim", "retire"], ["dkim", "dns"], ["issuer"], ["issuer", "add"],
        ["issuer", "list"], ["issuer", "show"], ["issuer", "remove"], ["issuer", "test"], ["issuer", "poll"], ["token"],
        ["token", "verify"],
        ["passkey"], ["passkey", "verify"], ["attestation"], ["attestation", "verify"],
        ["signing-key"],
        ["signing-key", "generate"], ["signing-key", "list"], ["signing-key", "rotate"], ["signing-key", "retire"],
        ["signing-key", "jwks"], ["verify"], ["doctor"], ["source", "check"], ["import"], ["app", "redirect"],
        ["app", "attestation"], ["app", "attestation", "add"],
        ["app", "attestation", "list"], ["app", "attestation", "remove"],
        ["app", "redirect", "add"], ["app", "redirect", "remove"], ["app", "key"], ["app", "key", "add"], ["app", "key", "list"],
        ["app", "key", "remove"], ["app", "client"], ["app", "secret"], ["app", "secret", "issue"], ["app", "secret", "list"],
        ["app", "secret", "revoke"],
        ["policy"], ["policy", "check"], ["policy", "test"], ["policy", "explain"], ["policy", "eval"], ["policy", "diff"],
        ["policy", "activate"], ["policy", "rollback"], ["policy", "bind"], ["policy", "unbind"], ["policy", "list"],
        ["policy", "show"],
        ["policy", "backtest"], ["policy", "bench"], ["policy", "stats"],
        ["list"], ["list", "create"], ["list", "add"], ["list", "remove"], ["list", "import"], ["list", "show"],
        ["list", "remove-list"],
        ["key"], ["key", "issue"], ["key", "list"], ["key", "rotate"], ["key", "revoke"],
        ["account"], ["account", "show"], ["account", "list"], ["account", "revoke"], ["account", "delete"],
        ["account", "state"],
        ["account", "link"], ["endpoint"], ["endpoint", "set"], ["endpoint", "show"], ["endpoint", "test"],
        ["endpoint", "remove"], ["stream"], ["stream", "list"], ["stream", "status"], ["stream", "remove"],
        ["event"], ["event", "list"], ["event", "retry"], ["event", "park"], ["event", "test"], ["transfer"],
        ["transfer", "start"],
        ["transfer", "status"], ["transfer", "finish"], ["transfer", "cancel"],
        ["decide"], ["decision"], ["decision", "list"], ["decision", "show"], ["decision", "label"], ["decision", "replay"],
        ["review"], ["review", "list"], ["review", "show"], ["review", "label"], ["review", "note"], ["review", "snooze"],
        ["sandbox"],
        ["apply"], ["export"],
        ["status"], ["top"], ["audit"], ["serve"], ["explain"], ["setup"], ["setup", "postfix"], ["retention"],
        ["retention", "show"], ["retention", "set"],
    ]

    @Test(arguments: commands) func help(_ command: [String]) throws {
        let runner = try CommandRunner()
        let result = try runner.run(command + ["--help"])
        #expect(result.status == 0)
        let file = Self.folder.appendingPathComponent("help-\(command.joined(separator: "-")).txt")
        if ProcessInfo.processInfo.environment["POSTERN_TEST_RECORD"] == "1" {
            try Data(result.output.utf8).write(to: file)
        }
        let expected = try String(contentsOf: file, encoding: .utf8)
        #expect(result.output == expected, "the help of \(command.joined(separator: " ")) changed: see POSTERN_TEST_RECORD above")
    }

    @Test func everySnapshotBelongsToACommand() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).filter { $0.hasPrefix("help-") }
        #expect(Set(names) == Set(Self.commands.map { "help-\($0.joined(separator: "-")).txt" }))
    }

    @Test func theRootNamesEveryCommand() throws {
        let result = try CommandRunner().run(["--help"])
        #expect(result.status == 0)
        for command in Self.commands where command.count == 1 { #expect(result.output.contains("\n  \(command[0]) ")) }
    }
}
