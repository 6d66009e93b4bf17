// The log of postern serve while it starts and ends.

import Foundation
import PostfixHarness
import TestSupport
import Testing

@Suite(.blocking) struct ServeLogTests {
    /// At the level `debug` the service group logs each service. It must not print the keys of
    /// deleted accounts, codes and cursors in it.
    @Test func log_traceLevel_containsNoKey() throws {
        let runner = try CommandRunner.initialised()
        // A separate short path, because it must fit into 107 octets.
        let socket = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(socket) }
        let process = try ManagedProcess(
            CommandRunner.executable.path,
            [
                "serve", "--config", runner.configuration, "--set", "milter.socket=unix:\(socket)",
                "--set",
                "http.listen=127.0.0.1:0", "--set",
                "http.public_url=http://127.0.0.1", "--set", "log.level=trace",
            ])
        defer { process.end() }
        _ = try process.waitForLine(containing: "notice serving")
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
        let log = process.output
        #expect(
            log.contains("sl-service=HousekeepingService") && log.contains("sl-service=APIService"))
        #expect(log.firstMatch(of: /\[\d+(, \d+){7}/)?.output == nil, "octets in a list")
        #expect(process.lines.allSatisfy { $0.utf8.count < 1_000 })
        let keys = try String(
            contentsOfFile: (runner.configuration as NSString).deletingLastPathComponent
                + "/postern.keys", encoding: .utf8)
        let secrets = keys.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: " ").last
        }
        #expect(secrets.count >= 3)
        for secret in secrets { #expect(!log.contains(secret)) }
    }

    /// A service whose standard error is the one that `JOURNAL_STREAM` names, from its start to its
    /// end.
    private func journal(_ runner: CommandRunner, _ more: [String] = []) throws -> [String] {
        let socket = NSTemporaryDirectory() + "postern-\(UUID().uuidString.prefix(8)).sock"
        defer { unlink(socket) }
        let process = try ManagedProcess(
            "/bin/sh",
            [
                "-c", "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$@\"", "sh",
                CommandRunner.executable.path,
                "serve", "--config",
                runner.configuration, "--set", "milter.socket=unix:\(socket)", "--set",
                "http.listen=off",
            ] + more)
        defer { process.end() }
        _ = try process.waitForLine(containing: "serving")
        process.signal(SIGTERM)
        #expect(try process.waitForExit() == 0)
        return process.lines.filter { !$0.isEmpty }
    }

    /// Lines in the journal have different priorities, and no second time.
    @Test func log_journal_hasPrioritiesAndNoTime() throws {
        let runner = try CommandRunner.initialised()
        let lines = try journal(runner)
        #expect(
            lines.allSatisfy {
                $0.wholeMatch(of: /<[2-7]>(critical|error|warning|notice|info|debug|trace) .+/)
                    != nil
            },
            "\(lines)")
        #expect(lines.contains { $0.hasPrefix("<5>notice serving") })
        let objects = try journal(runner, ["--set", "log.format=json"])
        for line in objects {
            let text = try #require(line.wholeMatch(of: /<[2-7]>(\{.+\})/)).output.1
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            #expect(object["time"] == nil && object["level"] != nil && object["message"] != nil)
        }
        // Standard error of a shell under systemd leads elsewhere.
        #expect(
            try runner.run(
                ["serve", "--set", "milter.socket=nonsense"], environment: ["JOURNAL_STREAM": "1:1"]
            ).errors.hasPrefix(
                "postern: "))
    }

    /// The last line of a log in JSON must be JSON too.
    @Test func log_fatalError_isALineOfJSON() throws {
        let runner = try CommandRunner.initialised()
        func fatal(
            _ arguments: String..., environment: [String: String] = [:]
        ) throws -> [String: Any] {
            let result = try runner.run(["serve"] + arguments, environment: environment)
            #expect(result.status != 0)
            return try #require(
                try JSONSerialization.jsonObject(with: Data(result.errors.utf8)) as? [String: Any],
                "\(result.errors)")
        }
        // The configuration is wrong; the socket cannot be created; the key file is missing.
        for object in [
            try fatal("--set", "log.format=json", "--set", "limits.hops=many"),
            try fatal("--set", "limits.hops=many", environment: ["POSTERN_LOG_FORMAT": "json"]),
            try fatal("--set", "log.format=json", "--set", "key_file=/nonexistent/keys"),
        ] {
            #expect(
                object["level"] as? String == "critical" && object["time"] != nil
                    && (object["message"] as? String)?.isEmpty == false)
        }
        #expect(
            try runner.run(["serve", "--set", "limits.hops=many"]).errors.hasPrefix(
                "postern: --set: limits.hops"))
    }
}
