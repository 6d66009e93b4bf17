// The log of Postfix is followed through rotations, truncation and restarts: each line counts once.

import Accounts
import Foundation
import InternetMessage
import RelayCore
import TestSupport
import Testing

@testable import PosternConfiguration
@testable import Relay

@Suite(.blocking) struct DeliveryLogFollowerTests {
    private static let now: Int64 = 1_795_000_000

    /// An installation with one address of one team, and a log.
    private final class Opened {
        let runner: CommandRunner
        let installation: Installation
        let account: AccountNumber
        let path: String
        private var messages = 0

        init() throws {
            runner = try CommandRunner.initialised()
            try runner.succeed("team", "add", "juice", "--name", "Juice")
            try runner.succeed("user", "add", "jane", "--inbox", "jane@home.example", "--verified")
            let address = try AddrSpec.typed(
                try runner.succeed("address", "issue", "juice", "jane"))
            installation = try Installation.open(
                flag: runner.configuration, environment: [:], now: now)
            account = try #require(
                try installation.store.relay.relayAddress(
                    localPart: address.localPart, domain: address.domain)
            ).number
            path = runner.folder.appendingPathComponent("mail.log").path
        }

        deinit { try? installation.close() }

        /// The lines of a delivered forward; each log begins with a line of its own.
        func lines(_ keys: KeyRing? = nil) throws -> String {
            let mint = TokenMint(keys: try #require(TokenKeys((keys ?? installation.keys).token)))
            messages += 1
            let id = "4F\(10_000 + messages)"
            let token = mint.forwardReturnPath(
                account: account, sender: nil,
                context: SenderContext(domains: [], relayAddresses: []), nonce: UInt64(messages),
                expiryDay: UInt64(now / 86_400) + 14)
            let head = "2026-11-18T00:00:00.000000+00:00 mx1 postfix/"
            return """
                \(head)qmgr[7]: \(id): from=<\(token.localPart)@relay.example>, size=9, nrcpt=1 (queue active)
                \(head)smtp[8]: \(id): to=<jane@home.example>, relay=aspmx.l.google.com[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=2.0.0, status=sent (250 2.0.0 OK)
                \(head)qmgr[7]: \(id): removed

                """
        }

        func write(_ text: String, to name: String = "mail.log") throws {
            let file = runner.folder.appendingPathComponent(name)
            if !FileManager.default.fileExists(atPath: file.path) {
                try Data().write(to: file)
            }
            let handle = try FileHandle(forWritingTo: file)
            try handle.seekToEnd()
            try handle.write(contentsOf: Data(text.utf8))
            try handle.close()
        }

        func rename(_ name: String, to other: String) throws {
            try FileManager.default.moveItem(
                at: runner.folder.appendingPathComponent(name),
                to: runner.folder.appendingPathComponent(other))
        }

        func log() throws -> DeliveryLog {
            let log = DeliveryLog(installation, now: { DeliveryLogFollowerTests.now })
            return try #require(log)
        }

        /// What `postern serve` makes at its start.
        func follower() throws -> DeliveryLogFollower {
            DeliveryLogFollower(path: path, log: try log())
        }

        var delivered: Int {
            get throws {
                try installation.store.deliveries.figures(since: 0).first {
                    $0.provider == .google
                }?
                .count(.delivered) ?? 0
            }
        }
    }

    /// Steps until all is read; more than a rotation needs.
    private func read(_ follower: inout DeliveryLogFollower) throws {
        for _ in 0..<6 {
            guard case .read = follower.step() else {
                Issue.record("the log cannot be read")
                return
            }
        }
    }

    @Test func log_thatGrowsByParts_countsEachLineOnce() throws {
        let opened = try Opened()
        let text = try opened.lines()
        // The first line is not complete when it is read first.
        try opened.write(String(text.prefix(40)))
        var follower = try opened.follower()
        try read(&follower)
        #expect(try opened.delivered == 0)
        try opened.write(String(text.dropFirst(40)))
        try read(&follower)
        #expect(try opened.delivered == 1)
        try opened.write(try opened.lines())
        try read(&follower)
        #expect(try opened.delivered == 2)
        var again = try opened.follower()
        try read(&again)
        #expect(try opened.delivered == 2, "a restart")
    }

    @Test func rotation_withLinesWrittenAfterIt_losesNone() throws {
        let opened = try Opened()
        try opened.write(try opened.lines())
        var follower = try opened.follower()
        try read(&follower)
        try opened.rename("mail.log", to: "mail.log.1")
        try opened.write(try opened.lines())
        _ = follower.step()
        // The writer has not been told of the new file yet.
        try opened.write(try opened.lines(), to: "mail.log.1")
        try read(&follower)
        #expect(try opened.delivered == 3)
    }

    @Test func rotation_whileNothingRuns_isReadAfterTheStart() throws {
        let opened = try Opened()
        try opened.write(try opened.lines())
        var follower = try opened.follower()
        try read(&follower)
        try opened.write(try opened.lines())
        // Never read before: another program's, or too old.
        try opened.write(try opened.lines(), to: "mail.log.2")
        try opened.rename("mail.log", to: "mail.log-20261118")
        try opened.write(try opened.lines())
        var next = try opened.follower()
        try read(&next)
        #expect(try opened.delivered == 3)
    }

    @Test func log_truncatedInPlace_isReadFromItsBeginning() throws {
        let opened = try Opened()
        try opened.write(try opened.lines() + opened.lines())
        var follower = try opened.follower()
        try read(&follower)
        truncate(opened.path, 0)
        try opened.write(try opened.lines())
        try read(&follower)
        #expect(try opened.delivered == 3)
    }

    @Test func log_thatCannotBeRead_isNamedAndReadLater() throws {
        let opened = try Opened()
        var follower = try opened.follower()
        guard case .failed(let missing) = follower.step() else {
            Issue.record("a missing log")
            return
        }
        #expect("\(missing)" == "No such file or directory")
        mkfifo(opened.path, 0o600)
        guard case .failed(let pipe) = follower.step() else {
            Issue.record("a pipe")
            return
        }
        #expect("\(pipe)" == "not a file")
        unlink(opened.path)
        try opened.write(String(repeating: "x", count: 70_000))
        guard case .failed(let other) = follower.step() else {
            Issue.record("not a log")
            return
        }
        #expect("\(other)".hasPrefix("not a log"))
        unlink(opened.path)
        try opened.write(try opened.lines())
        try read(&follower)
        #expect(try opened.delivered == 1)
    }

    @Test func log_replacedByAnotherFile_isReadAgainLater() throws {
        let opened = try Opened()
        try opened.write(try opened.lines())
        var follower = try opened.follower()
        try read(&follower)
        try opened.rename("mail.log", to: "mail.log.1")
        try opened.write(String(repeating: "x", count: 70_000))
        let failures = (0..<6).compactMap { _ in
            if case .failed(let failure) = follower.step() { "\(failure)" } else { nil }
        }
        #expect(failures.last?.hasPrefix("not a log") == true)
        unlink(opened.path)
        try opened.write(try opened.lines())
        _ = follower.step()
        try read(&follower)
        #expect(try opened.delivered == 2)
    }

    @Test(arguments: [[0x1F, 0x8B, 0x08, 0x0A], [0x28, 0xB5, 0x2F, 0xFD], Array("BZh91AY".utf8)])
    func log_compressed_isNamed(_ octets: [UInt8]) throws {
        let opened = try Opened()
        try Data(octets + [0x0A]).write(to: URL(filePath: opened.path))
        var follower = try opened.follower()
        guard case .failed(let failure) = follower.step() else {
            Issue.record("not refused")
            return
        }
        #expect("\(failure)".hasPrefix("compressed"))
    }

    /// `postern serve` and a command, or two commands.
    @Test func log_readByTwoAtOnce_countsEachLineOnce() throws {
        let opened = try Opened()
        let text = try Array((opened.lines() + opened.lines()).utf8)
        var (first, second) = (try opened.log(), try opened.log())
        var summaries = [DeliveryLog.Summary(), DeliveryLog.Summary()]
        // Both began before either wrote; the first has less.
        let half = try #require(text.firstRange(of: Array("removed\n".utf8))).upperBound
        try first.take(Array(text[..<half]), &summaries[0])
        try second.take(text, &summaries[1])
        try first.write(&summaries[0])
        #expect(try opened.delivered == 1)
        try second.write(&summaries[1])
        #expect(try opened.delivered == 2)
        try first.take(Array(text[half...]), &summaries[0])
        try first.write(&summaries[0])
        #expect(try opened.delivered == 2)
        #expect(summaries.map(\.results) == [1, 1])
        // Later lines are new for both, and count once.
        let more = try Array(opened.lines().utf8)
        try first.take(more, &summaries[0])
        try first.write(&summaries[0])
        try second.take(more, &summaries[1])
        try second.write(&summaries[1])
        #expect(try opened.delivered == 3)
    }

    /// An older copy of a log that was read.
    @Test func log_shorterCopy_countsNothing() throws {
        let opened = try Opened()
        let text = try opened.lines() + opened.lines()
        try opened.write(text)
        var follower = try opened.follower()
        try read(&follower)
        try opened.write(String(text.prefix(text.utf8.count / 2 + 10)), to: "copy")
        for name in ["copy", "mail.log"] {
            var log = try opened.log()
            let file = open(opened.runner.folder.appending(path: name).path, O_RDONLY)
            defer { close(file) }
            #expect(try log.read(file: file) == DeliveryLog.Summary())
        }
        #expect(try opened.delivered == 2)
    }
}
