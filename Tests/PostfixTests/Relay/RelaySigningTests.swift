// The relay's signatures verify after a real Postfix, with independent verifiers.

import Foundation
import InternetMessage
import MailTesting
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelaySigningTests {
    private static let count = 200

    @Test(
        .enabled(
            if: DKIMVerifiers.python != nil && DKIMVerifiers.hasMailDKIM,
            "skipped: no dkimpy (make test-tools) or no Mail::DKIM")
    )
    func forward_generatedMessages_haveValidSignatures() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { $0.settings["limits.messages_per_day"] = "100000" })
        defer { fixture.stop() }
        try fixture.run(["source", "add", "juice", "app.example"])
        try fixture.run([
            "keys", "dkim", "generate", "--domain", "relay.example", "--algorithm", "ed25519",
            "--selector", "e1",
        ])
        try fixture.run(["keys", "dkim", "activate", "e1", "--force"])
        // Not the first change, which may be the new key that does not yet sign.
        try fixture.process.waitForLine(containing: "relay.example: 2")
        for number in 0..<Self.count {
            let message = GeneratedMail.message(number)
            let result = try fixture.postfix.send(
                from: "<bounce@app.example>", to: ["<\(address)>"],
                message: message.header.serialized + [0x0D, 0x0A] + message.body)
            #expect(result.data?.code == 250, "\(number) \(GeneratedMail.kind(number)): \(result)")
        }
        try fixture.postfix.waitUntilDone()
        let arrived = fixture.sink.messages
        #expect(arrived.count == Self.count)

        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "postern-signed-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for (number, message) in arrived.enumerated() {
            try Data(message.data).write(to: folder.appendingPathComponent("\(1000 + number).eml"))
        }
        try Data(try records(fixture).utf8).write(to: folder.appendingPathComponent("dns.tsv"))
        let python = try #require(DKIMVerifiers.python)
        let dkimpy = try DKIMVerifiers.dkimpy(folder, python: python)
        let perl = try DKIMVerifiers.mailDKIM(folder)
        #expect(dkimpy.count == Self.count && perl.count == Self.count)
        for line in dkimpy { #expect(line.dropFirst() == ["pass", "pass"], "dkimpy: \(line)") }
        for line in perl {
            #expect(
                line.count == 3 && line[1] == "pass" && ["pass", "unsupported"].contains(line[2]),
                "Mail::DKIM: \(line)")
        }
        print(
            "signed by the relay, through Postfix: \(dkimpy.count { $0.dropFirst() == ["pass", "pass"] }) of \(Self.count) verified by dkimpy, \(perl.count { $0.count == 3 && $0[1] == "pass" }) by Mail::DKIM"
        )
    }

    /// Names and texts of the published keys, as the verifiers' tools read them.
    private func records(_ fixture: RelayFixture) throws -> String {
        struct Record: Decodable {
            let name: String
            let text: String
        }
        return try JSONDecoder().decode(
            [Record].self, from: Data(try fixture.run(["keys", "dkim", "publish", "--json"]).utf8)
        )
        .map { "\($0.name)\t\($0.text)\n" }.joined()
    }
}
