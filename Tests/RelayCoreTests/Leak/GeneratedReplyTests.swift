// Replies written by Tools/attack.py, with an inbox planted in every form that programs and people
// write. The tool also reads the results.

import Foundation
import InternetMessage
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct GeneratedReplyTests {
    private static let tool = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appendingPathComponent("Tools/attack.py").path

    /// `POSTERN_ATTACK=SEED:COUNT` uses other messages and another number of them.
    /// `POSTERN_ATTACK_RESULTS=FILE` keeps the output.
    private static let (seed, count): (String, String) = {
        let parts = (ProcessInfo.processInfo.environment["POSTERN_ATTACK"] ?? "postern:1500").split(
            separator: ":"
        ).map(
            String.init)
        return (parts[0], parts.count > 1 ? parts[1] : "1500")
    }()

    private static func run(_ arguments: [String], to file: URL) throws {
        try ProgramRun.succeed(["python3", tool] + arguments).standardOutput.write(to: file)
    }

    @Test func reply_generatedAttacks_leaksNothing() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-attack-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (messages, results, report) = (
            folder.appendingPathComponent("messages"), folder.appendingPathComponent("results"),
            folder.appendingPathComponent("report")
        )
        let engine = Fixture(evidence: .init()).engine
        let account = Fixture.anna.number
        let tokens = [
            engine.tokens.reverse(
                account: account,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")),
            engine.tokens.reverse(
                account: account,
                correspondent: AddrSpec(localPart: "Stored", domain: "app.example")),
        ].map(\.localPart)
        try Self.run(["generate", Self.seed, Self.count] + tokens, to: messages)
        var output = Data()
        var total = 0
        for line in try Data(contentsOf: messages).split(separator: 0x0A) {
            var item = try #require(try JSONSerialization.jsonObject(with: line) as? [String: Any])
            let inbox = AddrSpec(
                localPart: try #require(item["local"] as? String),
                domain: try #require(item["domain"] as? String))
            let message = Message.parse(
                [UInt8](
                    try #require((item["message"] as? String).flatMap { Data(base64Encoded: $0) })))
            total += 1
            switch Self.rewrite(message, inbox: inbox, engine: engine) {
            case .success(let bytes): item["output"] = Data(bytes).base64EncodedString()
            case .failure(let refusal):
                item["refused"] = "\(refusal.reason.code) \(refusal.reason.detail)"
            }
            output += try JSONSerialization.data(withJSONObject: item) + Data("\n".utf8)
        }
        // Some messages that would prove nothing are left out.
        #expect(total * 10 > (Int(Self.count) ?? 0) * 8)
        try output.write(to: results)
        if let kept = ProcessInfo.processInfo.environment["POSTERN_ATTACK_RESULTS"] {
            try output.write(to: URL(fileURLWithPath: kept))
        }
        try Self.run(
            ["check", Corpus.hasLeakcheck ? Corpus.leakcheck.path : "", results.path], to: report)
        let found = try String(contentsOf: report, encoding: .utf8).split(separator: "\n")
        for line in found { Issue.record("\(line)") }
        print("attack: \(total) messages, \(found.count) findings")
    }

    private static func rewrite(
        _ message: Message, inbox: AddrSpec, engine: RelayEngine
    ) -> Result<[UInt8], Refusal> {
        let own = UserInbox(address: InboxAddress(inbox), isVerified: true)
        let account = RelayAccount(
            number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
            isForwardingOn: true, hasLiveGrant: true,
            inbox: own,
            inboxes: [own], sharedName: nil, sources: Fixture.anna.sources)
        let rewriting = ReplyRewriting(
            engine: engine, account: account, header: message.header,
            envelopeSender: inbox.wireForm, isAutomatic: false,
            now: Fixture.now,
            hops: 1, stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
        do throws(Refusal) {
            let outgoing = try rewriting.rewrite(body: Array(message.body))
            return .success(
                outgoing.header.serialized + [0x0D, 0x0A]
                    + (outgoing.body ?? [message.body]).reduce(into: []) { $0 += $1 })
        } catch {
            return .failure(error)
        }
    }
}
