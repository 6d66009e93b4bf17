// Mail of others to an address that only a team was given: twenty-nine leaks and twenty-four
// innocent messages, one in each file.

import Foundation
import InternetMessage
import MailAuth
import MailTesting
import Synchronization
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct UseByOthersTests {
    @Test(arguments: ["leak", "innocent"])
    func use_everyVector_givesExpectedVerdict(folder: String) throws {
        let base = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Vectors/uses/\(folder)")
        let files = try FileManager.default.contentsOfDirectory(
            at: base, includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "incoming" }.sorted { $0.path < $1.path }
        #expect(files.count >= 20, "vectors are missing in \(base.path)")
        for file in files {
            let vector = try Vector(String(contentsOf: file, encoding: .utf8))
            let name = "\(folder)/\(file.deletingPathExtension().lastPathComponent)"
            #expect(!vector.why.isEmpty, "\(name) does not say why it exists")
            #expect(vector.run() == vector.expected, "\(name)")
        }
    }

    /// Whoever owns an address, and whatever is recorded, an outsider gets the same answer.
    @Test func answer_leakOrInnocent_isTheSameForEveryUser() throws {
        let base = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Vectors/uses")
        for name in ["leak/own-domain", "leak/no-signature", "innocent/mailman", "leak/bcc"] {
            let text = try String(
                contentsOf: base.appendingPathComponent("\(name).incoming"), encoding: .utf8)
            let anna = try Vector(text).answer(to: "annarelay2")
            #expect(anna == (try Vector(text).answer(to: "bobrelay22")), "\(name)")
            #expect(anna.hasPrefix("550 5.7.1 "), "\(name)")
        }
    }

    @Test func unsignedMail_ofAStranger_asksNoAuthenticator() throws {
        let vector = try Vector(
            """
            # expect: unproved
            # from: b@spam.example
            ---
            From: offers@spam.example
            To: annarelay2@relay.example

            Hello.
            """)
        #expect(vector.run() == "unproved" && vector.authentications.value == 0)
    }

    /// The body is longer than a message may be: the answer stays that to an unknown sender.
    @Test func largeMail_ofAStranger_getsTheSameAnswer() throws {
        var limits = RelayLimits()
        limits.messageSize = 1_000
        let fixture = Fixture(
            evidence: .init(),
            settings: RelaySettings(
                relayDomains: ["relay.example"], authservID: "mx.relay.example", limits: limits))
        let header = "From: offers@spam.example\r\nTo: annarelay2@relay.example\r\n\r\n"
        func refusal(_ body: Int) -> String {
            let response = fixture.play(
                from: "b@spam.example", to: ["annarelay2@relay.example"],
                message: header + String(repeating: "x", count: body))
            guard case .refuse(let refusal) = response.decision.outcome else { return "" }
            return "\(refusal.reply)"
        }
        #expect(refusal(10) == refusal(2_000) && !refusal(10).isEmpty)
    }

    /// A message to several users counts for each of them, if it names them.
    @Test func mail_toSeveralUsers_isAUseOfEachAddress() throws {
        let evidence = AuthenticationEvidence.signed("spam.example")
        let fixture = Fixture(evidence: evidence)
        let transaction = RelayTransaction(
            engine: fixture.engine,
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "client.example", mailFrom: "b@spam.example"),
            now: Fixture.now, canFanOut: { true })
        try transaction.addRecipient("<annarelay2@relay.example>")
        try transaction.addRecipient("<bobrelay22@relay.example>")
        for field in [
            HeaderField(
                "DKIM-Signature",
                "v=1; a=rsa-sha256; d=spam.example; s=s; h=from:to; bh=aaaa; b=bbbb"),
            HeaderField("From", "offers@spam.example"),
            HeaderField("To", "annarelay2@relay.example, bobrelay22@relay.example"),
        ] { transaction.addHeader(field) }
        try transaction.endHeader()
        #expect(transaction.original == nil, "the body of a stranger's message is kept")
        let decision = transaction.finish()
        guard case .refuse(let refusal) = decision.outcome else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.kind == .unauthorizedSender)
        #expect(
            transaction.usesByOthers.map(\.account) == [Fixture.anna.number, Fixture.bob.number])
        #expect(transaction.usesByOthers.allSatisfy { $0.proof?.domain == "spam.example" })
    }

    /// What a hostile filter or signer writes is never taken for a name.
    @Test(arguments: [
        ("spam.example", "s1", true), ("spam.example", "", false), ("", "s1", false),
        ("spam.example", "anna@inbox", false), ("<b>.example", "s1", false),
        ("spam\r\n.example", "s1", false), ("spam.example", "ſ1", false),
        (String(repeating: "a", count: 254), "s1", false),
    ])
    func proof_ofOddNames_isNone(domain: String, selector: String, isProof: Bool) {
        #expect((UseByOthers.Proof(domain: domain, selector: selector) != nil) == isProof)
    }

    final class AuthenticationCount: Sendable {
        private let count = Mutex(0)
        func add() { count.withLock { $0 += 1 } }
        var value: Int { count.withLock { $0 } }
    }

    struct Vector {
        var why = ""
        private(set) var expected = ""
        private var from = ""
        private var evidence = AuthenticationEvidence()
        private var organization: String?
        private var source = RegisteredSource(scope: .domain("app.example"))
        private let message: [UInt8]
        /// How many messages were authenticated.
        let authentications = AuthenticationCount()

        /// `# why:`, `# expect:` (`proved DOMAIN SELECTOR`, `unproved`, `innocent REASON`, or
        /// `nothing` if the message is not refused as a stranger's), `# from:`, `# dkim:` (result,
        /// domain, selector), `# spf:`, `# organization:` (by DMARC), `# source:` and `# paired:`
        /// of anna's team, then `---`, then the message.
        init(_ text: String) throws {
            let lines = try Self.fill(text).split(
                separator: "\n", omittingEmptySubsequences: false)
            let end = try #require(lines.firstIndex(of: "---"))
            message = Array(lines[(end + 1)...].joined(separator: "\r\n").utf8)
            for line in lines[..<end] {
                let parts = line.split(separator: ":", maxSplits: 1).map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
                let value = parts.count > 1 ? parts[1] : ""
                let words = value.split(separator: " ").map(String.init)
                switch parts.first {
                case "# why": why = value
                case "# expect": expected = value
                case "# from": from = value
                case "# dkim":
                    let isPartial = words[0] == "partial"
                    evidence.dkim.append(
                        DKIMFinding(
                            result: isPartial
                                ? .pass : try #require(DKIMResult(rawValue: words[0])),
                            domain: words[1], selector: words[2], algorithm: "rsa-sha256",
                            coversWholeBody: !isPartial, reason: ""))
                case "# spf":
                    evidence.spf.append(
                        SPFFinding(
                            result: try #require(SPFResult(rawValue: words[0])),
                            identity: .mailFrom, domain: words[1], reason: ""))
                case "# organization": organization = value
                case "# source": source = RegisteredSource(scope: .domain(value))
                case "# paired":
                    source = RegisteredSource(scope: source.scope, pairedEnvelopeDomain: value)
                default: Issue.record("not understood: \(line)")
                }
            }
            if let organization {
                evidence.dmarc = DMARCFinding(
                    result: .pass, domain: organization, policy: "none",
                    organizationalDomain: organization)
            }
        }

        private static func fill(_ text: String) throws -> String {
            let engine = Fixture(evidence: .init()).engine
            return text.replacing(/\{\{([a-z-]+):([^}]*)\}\}/) { match in
                let value = String(match.2)
                func hidden(_ account: AccountNumber) -> String {
                    String(
                        decoding: engine.ids.hide(
                            Array(value.utf8), account: account, relayDomain: "relay.example"),
                        as: UTF8.self)
                }
                return switch match.1 {
                case "hidden": hidden(Fixture.anna.number)
                case "bobs-hidden": hidden(Fixture.bob.number)
                default:
                    engine.tokens.reverse(
                        account: Fixture.anna.number, correspondent: AddrSpec(envelope: value)!
                    ).localPart
                }
            }
        }

        private func transaction(to local: String) -> (RelayTransaction, RelayDecision) {
            let anna = RelayAccount(
                number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
                inbox: Fixture.anna.inbox, inboxes: Fixture.anna.inboxes, sources: [source])
            let engine = RelayEngine(
                settings: RelaySettings(
                    relayDomains: ["relay.example"], authservID: "mx.relay.example"),
                keys: Fixture.keys,
                directory: MemoryDirectory([anna, Fixture.bob, Fixture.annaElsewhere]),
                authenticator: TestAuthenticator { [evidence, authentications] _ in
                    authentications.add()
                    return evidence
                }, replyMemory: ReplyMemory(limit: 1 << 28),
                randomness: { Array(repeating: 5, count: $0) })!
            let transaction = RelayTransaction(
                engine: engine,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "client.example", mailFrom: from),
                now: Fixture.now)
            let parsed = Message.parse(message)
            do throws(Refusal) {
                try transaction.addRecipient("<\(local)@relay.example>")
                for field in parsed.header.fields { transaction.addHeader(field) }
                try transaction.endHeader()
                try transaction.addBody(parsed.body)
                return (transaction, transaction.finish())
            } catch {
                return (transaction, .refuse(error))
            }
        }

        func answer(to local: String) -> String {
            guard case .refuse(let refusal) = transaction(to: local).1.outcome else { return "" }
            return "\(refusal.reply.code) \(refusal.reply.enhanced) \(refusal.reply.text)"
        }

        /// The verdict as `# expect:` writes it.
        func run() -> String {
            let (transaction, decision) = transaction(to: "annarelay2")
            if let use = transaction.usesByOthers.first {
                return use.proof.map { "proved \($0.domain) \($0.selector)" } ?? "unproved"
            }
            guard case .refuse(let refusal) = decision.outcome,
                refusal.kind == .unauthorizedSender || refusal.kind == .unknownAddress
            else { return "nothing" }
            let reading = UseReading(
                header: Message.parse(message).header,
                client: SMTPClientIdentity(
                    address: "192.0.2.1", helo: "client.example", mailFrom: from),
                evidence: evidence, engine: transaction.engine)
            guard
                case .innocent(let innocence) = reading?.verdict(
                    for: RelayAccount(
                        number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
                        inbox: nil, inboxes: [], sources: [source]))
            else { return "no verdict" }
            return "innocent \(innocence.rawValue)"
        }
    }
}
