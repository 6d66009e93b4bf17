// Incoming and expected messages, byte for byte. Each incoming file says why it exists.

import Foundation
import InternetMessage
import MailAuth
import Testing

@testable import RelayCore

@Suite struct ReplyAndBounceVectorTests {
    @Test(arguments: ["reply", "bounce"])
    func everyVector(folder: String) throws {
        let base = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent(
            "Vectors/\(folder)")
        let files = try FileManager.default.contentsOfDirectory(at: base, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "incoming" }.sorted { $0.path < $1.path }
        #expect(!files.isEmpty, "no vector in \(base.path)")
        for file in files {
            let vector = try Vector(String(contentsOf: file, encoding: .isoLatin1))
            #expect(!vector.why.isEmpty, "\(file.lastPathComponent) does not say why it exists")
            let actual = Data(vector.run())
            let expectedFile = file.deletingPathExtension().appendingPathExtension("expected")
            let actualFile = file.deletingPathExtension().appendingPathExtension("actual")
            let expected = try? Data(contentsOf: expectedFile)
            if actual == expected {
                try? FileManager.default.removeItem(at: actualFile)
            } else {
                try actual.write(to: actualFile)
                Issue.record("\(file.lastPathComponent): differs; what came out stands in \(actualFile.lastPathComponent)")
            }
        }
        print("vectors \(folder): \(files.count)")
    }

    /// `# why: …`, `# from: …`, `# to: …`, `# proved: …`, then `---`, then the message. `{{reverse:a@b}}`, `{{return:a@b}}`, `{{silent}}`
    /// and `{{reply}}` stand for tokens of anna's account.
    struct Vector {
        var why = ""
        private var from = "anna@inbox.example"
        private var recipients: [String] = []
        private var proved = "inbox.example"
        private let message: String

        init(_ text: String) throws {
            let engine = Fixture(evidence: .init()).engine
            let filled = Self.fill(text, engine: engine)
            let lines = filled.split(separator: "\n", omittingEmptySubsequences: false)
            let end = try #require(lines.firstIndex(of: "---"))
            message = lines[(end + 1)...].joined(separator: "\r\n")
            for line in lines[..<end] {
                let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                let value = parts.count > 1 ? parts[1] : ""
                switch parts.first {
                case "# why": why = value
                case "# from": from = value
                case "# to": recipients.append(value)
                case "# proved": proved = value
                default: Issue.record("not understood: \(line)")
                }
            }
        }

        private static func fill(_ text: String, engine: RelayEngine) -> String {
            var output = ""
            var rest = text[...]
            while let open = rest.range(of: "{{"), let close = rest.range(of: "}}", range: open.upperBound..<rest.endIndex) {
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
            let local: String? =
                switch parts.first {
                case "reverse": address.map { engine.tokens.reverse(account: account, correspondent: $0).localPart }
                case "return":
                    address.map {
                        engine.tokens.forwardReturnPath(account: account, sender: $0, nonce: 99, expiryDay: day).localPart
                    }
                case "silent": engine.tokens.forwardReturnPath(account: account, sender: nil, nonce: 98, expiryDay: day).localPart
                case "reply": engine.tokens.replyReturnPath(account: account, nonce: 97, expiryDay: day).localPart
                default: nil
                }
            guard let local else {
                Issue.record("no token: \(name)")
                return ""
            }
            return local
        }

        /// The answer, the envelope and the message as they leave.
        func run() -> [UInt8] {
            let fixture = Fixture(evidence: proved.isEmpty ? .init() : Fixture.signed(proved))
            let bytes = Array(message.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
            let transaction = RelayTransaction(
                engine: fixture.engine, client: SMTPClientIdentity(address: "192.0.2.1", helo: "client.example", mailFrom: from),
                now: Fixture.now)
            let parsed = Message.parse(bytes)
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
            return Self.written(decision, body: parsed.body)
        }

        private static func written(_ decision: RelayDecision, body: ArraySlice<UInt8>) -> [UInt8] {
            var output: [UInt8] = []
            func line(_ text: String) { output += Array((text + "\r\n").utf8) }
            switch decision.outcome {
            case .refuse(let refusal): line("\(refusal.reply.code) \(refusal.reply.enhanced) \(refusal.reply.text)")
            case .discard:
                line("discarded: \(decision.reasons.map { $0.detail.isEmpty ? $0.code : $0.detail }.joined(separator: ", "))")
            case .untouched: line("untouched")
            case .relay:
                var fields: [HeaderField] = []
                var body = Array(body)
                for modification in decision.modifications {
                    switch modification {
                    case .changeSender(let path): line("MAIL FROM:\(path)")
                    case .addRecipient(let path): line("RCPT TO:\(path)")
                    case .insertHeader(_, let field): fields.insert(field, at: 0)
                    case .replaceBody(let pieces): body = pieces.reduce(into: []) { $0 += $1 }
                    case .changeHeader(_, _, let value): #expect(value == nil)
                    case .deleteRecipient: break
                    }
                }
                line("")
                output += HeaderSection(fields).serialized + [0x0D, 0x0A] + body
            }
            return output
        }
    }
}
