// What postern serve writes into its log while it starts and ends.

import Foundation
import PostfixHarness
import Testing

@Suite struct ServeLogTests {
    /// At the level `debug` the group of services writes each of them down, which held the keys of deleted accounts, of codes and of
    /// cursors, octet by octet.
    @Test func atTheLevelOfTraceTheLogHoldsNoKey() throws {
        let runner = try CommandRunner.initialised()
        // A path of its own and short: the whole of it has room in 107 octets.
        let socket = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(socket) }
        let process = try ManagedProcess(
            CommandRunner.executable.path,
            [
                "serve", "--config", runner.configuration, "--set", "milter.socket=unix:\(socket)", "--set", "http.listen=127.0.0.1:0", "--set",
                "http.public_url=http://127.0.0.1", "--set", "log.level=trace",
            ])
        defer { process.end() }
        _ = try process.waitForLine(containing: "notice serving")
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
        let log = process.output
        #expect(log.contains("sl-service=HousekeepingService") && log.contains("sl-service=APIService"))
        #expect(log.firstMatch(of: /\[\d+(, \d+){7}/)?.output == nil, "octets in a list")
        #expect(process.lines.allSatisfy { $0.utf8.count < 1_000 })
        let keys = try String(contentsOfFile: (runner.configuration as NSString).deletingLastPathComponent + "/postern.keys", encoding: .utf8)
        let secrets = keys.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { $0.split(separator: " ").last }
        #expect(secrets.count >= 3)
        for secret in secrets { #expect(!log.contains(secret)) }
    }
}
