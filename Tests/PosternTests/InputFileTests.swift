// Input files of commands: pipes, links, and the errors for files that cannot be read.

import Foundation
import Glibc
import TestSupport
import Testing

@Suite(.blocking) struct InputFileTests {
    /// A named pipe from which `text` can be read once.
    private func pipe(_ runner: CommandRunner, _ name: String, _ text: String) throws {
        let path = runner.folder.appendingPathComponent(name).path
        try #require(mkfifo(path, 0o600) == 0)
        Thread.detachNewThread {
            // Waits for a reader.
            guard let pipe = FileHandle(forWritingAtPath: path) else { return }
            try? pipe.write(contentsOf: Data(text.utf8))
            try? pipe.close()
        }
    }

    private static let zone = #"{"app.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]}}"#

    @Test func dnsFile_namedPipe_isRead() throws {
        let runner = try CommandRunner.initialised()
        try pipe(runner, "verify.pipe", Self.zone)
        let verified = try runner.succeed(
            "verify", "--ip", "192.0.2.1", "--mail-from", "a@app.example", "--dns", "verify.pipe")
        #expect(verified.contains("\"pass\""))
        try pipe(runner, "explain.pipe", Self.zone)
        try runner.succeed(
            "explain", "--rcpt", "nobody@relay.example", "--mail-from", "a@app.example", "--dns",
            "explain.pipe",
            input: "From: a@app.example\n\nx\n")
    }

    @Test func inputFile_unreadable_isReportedInOneLine() throws {
        let runner = try CommandRunner.initialised()
        for command in [["explain", "--rcpt", "x@relay.example"], ["verify"]] {
            for (name, words) in [
                ("absent.json", "absent.json: no such file or directory"),
                ("data", "data: is a directory"),
            ] {
                let result = try runner.run(command + ["--dns", name])
                #expect(result.status == 66)
                #expect(result.errors == "postern: \(words)\n")
            }
        }
        let import_ = try runner.run(["import", "absent.csv"])
        #expect(
            import_.status != 0 && !import_.errors.contains("NSCocoaErrorDomain")
                && import_.errors.contains("absent.csv"))
    }

    @Test func dnsFile_malformedInBatch_isRefused() throws {
        let runner = try CommandRunner.initialised()
        try Data("{".utf8).write(to: runner.folder.appendingPathComponent("broken.json"))
        #expect(try runner.run(["explain", "--batch", "--dns", "broken.json"]).status == 65)
    }

    private static let policy = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}]
        defaults: {challenge: human_check}
        lists: {bad: lists/bad.txt}
        signals: {event: string, context.device: string?}
        rules:
        - {id: r, effect: always, events: [sign_in], challenge: human_check, reason: R, condition: context.device in bad}

        """

    /// For root, a link could print the key file.
    @Test func policyFile_linkOutOfItsFolder_isRefused() throws {
        let runner = try CommandRunner()
        let files = FileManager.default
        let folder = runner.folder.appendingPathComponent("pol")
        try files.createDirectory(
            at: folder.appendingPathComponent("lists"), withIntermediateDirectories: true)
        try files.createDirectory(
            at: folder.appendingPathComponent("data"), withIntermediateDirectories: true)
        try Data("secret\n".utf8).write(to: runner.folder.appendingPathComponent("secret.txt"))
        try Data("device\n".utf8).write(to: folder.appendingPathComponent("data/bad.txt"))
        try Data(Self.policy.utf8).write(to: folder.appendingPathComponent("policy.yaml"))
        let list = folder.appendingPathComponent("lists/bad.txt").path
        func check(_ target: String?) throws -> CommandResult {
            try? files.removeItem(atPath: list)
            if let target {
                try files.createSymbolicLink(atPath: list, withDestinationPath: target)
            }
            return try runner.run(["policy", "check", "pol"])
        }
        for target in [
            nil, "../../secret.txt", runner.folder.path + "/secret.txt", "/etc/passwd", "bad.txt",
            "/dev/zero",
        ] {
            let result = try check(target)
            #expect(result.status == 1, "\(target ?? "-")")
            #expect(
                result.errors.contains(
                    target == nil
                        ? "no such file inside the policy's folder: 'lists/bad.txt'"
                        : "the file 'lists/bad.txt' cannot be read: "
                ),
                "\(result.errors)")
        }
        // A link that stays inside is followed, because some systems mount files in this way.
        #expect(try check("../data/bad.txt").status == 0)
        try files.removeItem(at: folder.appendingPathComponent("lists"))
        try files.createSymbolicLink(
            atPath: folder.appendingPathComponent("lists").path, withDestinationPath: "data")
        #expect(try runner.run(["policy", "check", "pol"]).status == 0)
        try files.removeItem(at: folder.appendingPathComponent("lists"))
        try files.createSymbolicLink(
            atPath: folder.appendingPathComponent("lists").path, withDestinationPath: "..")
        try Data("x\n".utf8).write(to: runner.folder.appendingPathComponent("bad.txt"))
        #expect(try runner.run(["policy", "check", "pol"]).status == 1)
        // The policy file itself must not be a link either, because a message would show its lines.
        try files.removeItem(at: folder.appendingPathComponent("policy.yaml"))
        try files.createSymbolicLink(
            atPath: folder.appendingPathComponent("policy.yaml").path,
            withDestinationPath: "../secret.txt")
        let own = try runner.run(["policy", "check", "pol"])
        #expect(
            own.status == 65 && own.errors.contains("a symbolic link leads out of pol")
                && !own.errors.contains("secret\n"))
    }
}
