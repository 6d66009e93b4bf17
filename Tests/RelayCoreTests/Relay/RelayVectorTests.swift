// Incoming and expected messages, byte for byte. Each incoming file states why it exists.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct RelayVectorTests {
    @Test(arguments: ["forward", "reply", "bounce"])
    func relay_everyVector_givesExpectedOutput(folder: String) throws {
        let base = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(
                "Vectors/\(folder)")
        let files = try FileManager.default.contentsOfDirectory(
            at: base, includingPropertiesForKeys: nil
        )
        .filter { $0.pathExtension == "incoming" }.sorted { $0.path < $1.path }
        #expect(!files.isEmpty, "no vector in \(base.path)")
        for file in files {
            let vector = try Vector(
                String(contentsOf: file, encoding: .isoLatin1), isForward: folder == "forward")
            #expect(!vector.why.isEmpty, "\(file.lastPathComponent) does not say why it exists")
            let actual = Data(vector.run())
            let expectedFile = file.deletingPathExtension().appendingPathExtension("expected")
            let actualFile = file.deletingPathExtension().appendingPathExtension("actual")
            let expected = try? Data(contentsOf: expectedFile)
            if actual == expected {
                try? FileManager.default.removeItem(at: actualFile)
            } else {
                try actual.write(to: actualFile)
                Issue.record(
                    "\(file.lastPathComponent): differs; what came out stands in \(actualFile.lastPathComponent)"
                )
            }
        }
        print("vectors \(folder): \(files.count)")
    }

    /// `# why: …`, `# from: …`, `# to: …`, `# proved: …` (the domain of a valid signature), `# spf:
    /// …` (a domain that passes), then `---`, then the message.
    ///
    /// Placeholders: `{{reverse:a@b}}`, `{{return:a@b}}`, `{{silent}}` and `{{reply:a@b}}` for
    /// tokens of anna's account. `{{original:id|subject}}` for the data that identifies a forward
    /// in its report. `{{hidden:id@domain}}`, `{{bobs-hidden:id@domain}}` and
    /// `{{witness:id@domain}}` for message ids. `{{xN}}` for N letters.
    struct Vector {
        var why = ""
        private var from = "anna@inbox.example"
        private var recipients: [String] = []
        private var proved = "inbox.example"
        private var spf: [String] = []
        let message: [UInt8]

        /// carla's account with the team of app.example, at the second relay domain.
        private static let carla = {
            let inbox = UserInbox(
                address: InboxAddress(AddrSpec(localPart: "carla", domain: "inbox.example")),
                isVerified: true)
            return RelayAccount(
                number: AccountNumber(4)!,
                relayAddress: AddrSpec(localPart: "carlarelay", domain: "second.example"),
                isForwardingOn: true, hasLiveGrant: true, inbox: inbox, inboxes: [inbox],
                sharedName: nil,
                sources: Fixture.anna.sources)
        }()

        init(_ text: String, isForward: Bool = false) throws {
            if isForward { (from, proved) = ("bounce@app.example", "app.example") }
            let engine = Fixture(evidence: .init()).engine
            let filled = Self.fill(text, engine: engine)
            let lines = filled.split(separator: "\n", omittingEmptySubsequences: false)
            let end = try #require(lines.firstIndex(of: "---"))
            message = lines[(end + 1)...].joined(separator: "\r\n").unicodeScalars.map {
                UInt8(truncatingIfNeeded: $0.value)
            }
            for line in lines[..<end] {
                let parts = line.split(separator: ":", maxSplits: 1).map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
                let value = parts.count > 1 ? parts[1] : ""
                switch parts.first {
                case "# why": why = value
                case "# from": from = value
                case "# to": recipients.append(value)
                case "# proved": proved = value
                case "# spf": spf.append(value)
                default: Issue.record("not understood: \(line)")
                }
            }
            if isForward, recipients.isEmpty { recipients = [Fixture.anna.relayAddress.wireForm] }
        }

        private static func fill(_ text: String, engine: RelayEngine) -> String {
            var output = ""
            var rest = text[...]
            while let open = rest.range(of: "{{"),
                let close = rest.range(of: "}}", range: open.upperBound..<rest.endIndex)
            {
                output += rest[..<open.lowerBound]
                output += token(String(rest[open.upperBound..<close.lowerBound]), engine: engine)
                rest = rest[close.upperBound...]
            }
            return output + rest
        }

        private static func token(_ name: String, engine: RelayEngine) -> String {
            let account = Fixture.anna.number
            let day = UInt64(Fixture.now / 86_400) + 3
            let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
            let address = parts.count > 1 ? AddrSpec(envelope: parts[1]) : nil
            let id = parts.count > 1 ? Array(parts[1].utf8) : []
            func text(_ octets: [UInt8]) -> String { String(decoding: octets, as: UTF8.self) }
            let local: String? =
                switch parts.first {
                case "reverse":
                    address.map {
                        engine.tokens.reverse(account: account, correspondent: $0).localPart
                    }
                case "return":
                    address.map {
                        engine.tokens.forwardReturnPath(
                            account: account, sender: $0, nonce: 99, expiryDay: day
                        ).localPart
                    }
                case "silent":
                    engine.tokens.forwardReturnPath(
                        account: account, sender: nil, nonce: 98, expiryDay: day
                    ).localPart
                case "reply":
                    engine.tokens.replyReturnPath(
                        account: account, recipients: address.map { [$0] } ?? [], nonce: 97,
                        expiryDay: day
                    ).localPart
                case "hidden":
                    text(engine.ids.hide(id, account: account, relayDomain: "relay.example"))
                case "bobs-hidden":
                    text(
                        engine.ids.hide(
                            id, account: Fixture.bob.number, relayDomain: "relay.example"))
                case "original":
                    // `{{original:ID|SUBJECT}}`
                    witness(
                        parts.count > 1 ? parts[1].split(separator: "|").map(String.init) : [],
                        engine: engine)
                case "witness":
                    text(
                        engine.ids.witness(for: id, account: account, relayDomain: "relay.example"))
                case let letters?:
                    Int(letters.dropFirst()).map { String(repeating: "x", count: $0) }
                case nil: nil
                }
            guard let local else {
                Issue.record("no token: \(name)")
                return ""
            }
            return local
        }

        private static func witness(_ words: [String], engine: RelayEngine) -> String? {
            guard words.count == 2 else { return nil }
            let header = HeaderSection([
                HeaderField("Message-ID", words[0]), HeaderField("Subject", words[1]),
            ])
            return engine.witness.field(for: header, account: Fixture.anna.number).unfoldedValue
        }

        /// The answer, the outgoing envelope and the outgoing message.
        func run() -> [UInt8] {
            var evidence = proved.isEmpty ? .init() : AuthenticationEvidence.signed(proved)
            evidence.spf = spf.map {
                SPFFinding(result: .pass, identity: .mailFrom, domain: $0, reason: "")
            }
            let fixture = Fixture(
                accounts: [Fixture.anna, Fixture.bob, Fixture.annaElsewhere, Self.carla],
                evidence: evidence)
            let transaction = RelayTransaction(
                engine: fixture.engine,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "client.example", mailFrom: from),
                now: Fixture.now)
            let parsed = Message.parse(message)
            let decision: RelayDecision
            do throws(Refusal) {
                for recipient in recipients { try transaction.addRecipient("<\(recipient)>") }
                for field in parsed.header.fields { transaction.addHeader(field) }
                try transaction.endHeader()
                try transaction.addBody(parsed.body)
                decision = transaction.finish()
            } catch {
                decision = .refuse(error)
            }
            return written(decision, parsed)
        }

        private func written(_ decision: RelayDecision, _ parsed: Message) -> [UInt8] {
            var output: [UInt8] = []
            func line(_ text: String) { output += Array((text + "\r\n").utf8) }
            switch decision.outcome {
            case .refuse(let refusal):
                line("\(refusal.reply.code) \(refusal.reply.enhanced) \(refusal.reply.text)")
            case .discard:
                line(
                    "discarded: \(decision.reasons.map { $0.detail.isEmpty ? $0.code.rawValue : $0.detail }.joined(separator: ", "))"
                )
            case .untouched: line("untouched")
            case .relay:
                var after = ModifiedMessage(
                    header: parsed.header, body: parsed.body, sender: from, recipients: recipients)
                after.apply(decision.modifications)
                line("MAIL FROM:<\(after.sender)>")
                for recipient in after.recipients { line("RCPT TO:<\(recipient)>") }
                line("")
                output += after.bytes
            }
            return output
        }
    }
}
