// Rebuilt reports contain none of the addresses in the public reports.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct BounceLeakTests {
    private struct Case: Decodable {
        let file: String
        let hidden_addresses: [String]
    }

    @Test(
        .enabled(
            if: Corpus.isThere && Corpus.hasLeakcheck,
            "../shared/conformance or leakcheck.py is not there"))
    func bounceReport_rebuilt_hasNoHiddenAddress() throws {
        let cases = try JSONDecoder().decode(
            [Case].self,
            from: Data(contentsOf: Corpus.root.appendingPathComponent("bounces/leak-cases.json")))
        #expect(!cases.isEmpty)
        var items: [LeakOracle.Item] = []
        for item in cases {
            let data = try Data(contentsOf: Corpus.root.appendingPathComponent(item.file))
            let message = Message.parse(Corpus.crlf([UInt8](data)))
            let fixture = Fixture(evidence: .init())
            let token = fixture.engine.tokens.forwardReturnPath(
                account: Fixture.anna.number,
                sender: AddrSpec(localPart: "bounces", domain: "app.example"), nonce: 1,
                expiryDay: UInt64(Fixture.now / 86_400) + 1)
            let transaction = RelayTransaction(
                engine: fixture.engine,
                client: SMTPClientIdentity(address: "192.0.2.1", helo: "mx.example", mailFrom: ""),
                now: Fixture.now)
            try transaction.addRecipient("<\(token.localPart)@relay.example>")
            for field in message.header.fields where field.isSafe { transaction.addHeader(field) }
            try transaction.endHeader()
            try transaction.addBody(message.body)
            let decision = transaction.finish()
            var output: [UInt8] = []
            for case .replaceBody(let pieces) in decision.modifications {
                output = pieces.reduce(into: output) { $0 += $1 }
            }
            for case .insertHeader(_, let field) in decision.modifications {
                output = field.bytes + [0x0D, 0x0A] + output
            }
            if case .refuse(let refusal) = decision.outcome {
                Issue.record("\(item.file): \(refusal.reply.text)")
            }
            // Dropped reports have no output to search.
            guard case .relay = decision.outcome else { continue }
            // Local parts that are ordinary words of any report do not count as a trace of the
            // address.
            for address in item.hidden_addresses
            where !["recipient", "userunknown"].contains(address.prefix { $0 != "@" }) {
                items.append(
                    LeakOracle.Item(
                        id: "\(item.file) \(address)", address: address, message: output))
            }
        }
        for (id, hits) in try LeakOracle.run(items).sorted(by: { $0.key < $1.key }) {
            Issue.record("\(id): \(hits)")
        }
        #expect(items.count >= 40, "only \(items.count)")
        print("rebuilt reports: \(items.count) addresses looked for")
    }
}
