// The body of a reply is kept only if a proof is still possible, and not during DNS queries.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

/// Returns one finding before the body and another after it, and records how much of the body was
/// in memory at the call.
private struct TwoStepAuthenticator: SenderAuthenticator {
    let best, final: AuthenticationEvidence
    let asked: @Sendable () -> Void

    func begin(
        client: SMTPClientIdentity, header: HeaderSection, now: Int64
    ) -> any AuthenticationSession { Session(self) }

    private final class Session: AuthenticationSession {
        private let base: TwoStepAuthenticator
        init(_ base: TwoStepAuthenticator) { self.base = base }
        func prepare() -> AuthenticationEvidence? {
            base.asked()
            return base.best
        }
        func update(body: UnsafeRawBufferPointer) {}
        func finish() -> AuthenticationEvidence { base.final }
    }
}

@Suite(.blocking) struct UnprovedBodyTests {
    private static let signed = AuthenticationEvidence.signed("inbox.example")

    private static func begin(
        best: AuthenticationEvidence, final: AuthenticationEvidence
    ) throws -> (Fixture, RelayTransaction) {
        let base = Fixture(evidence: final)
        let memory = base.engine.replyMemory
        let engine = base.engine.authenticating(
            by: TwoStepAuthenticator(best: best, final: final) {
                #expect(memory.inUse == 0 && memory.turns == (0, 0))
            })
        let reverse = engine.tokens.reverse(
            account: Fixture.anna.number,
            correspondent: AddrSpec(localPart: "billing", domain: "app.example"))
        let transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "client.example", mailFrom: "anna@inbox.example"),
            now: Fixture.now)
        try transaction.addRecipient("<\(reverse.localPart)@relay.example>")
        transaction.addHeader(HeaderField("From", "anna@inbox.example"))
        return (Fixture(directory: base.directory, engine: engine), transaction)
    }

    /// A slow name server must not keep bodies in memory.
    @Test func reply_notProvable_holdsNoBody() throws {
        let (fixture, transaction) = try Self.begin(best: .init(), final: .init())
        let refusal = #expect(throws: Refusal.self) { try transaction.endHeader() }
        #expect(refusal.map { "\($0.reply.code) \($0.reply.enhanced)" } == "550 5.7.26")
        #expect(fixture.engine.replyMemory.inUse == 0)
    }

    @Test func reply_dnsFailure_isDeferredBeforeTheBody() throws {
        let failing = AuthenticationEvidence(spf: [
            SPFFinding(result: .temperror, identity: .mailFrom, domain: "inbox.example", reason: "")
        ])
        let (_, transaction) = try Self.begin(best: failing, final: failing)
        let refusal = #expect(throws: Refusal.self) { try transaction.endHeader() }
        #expect(refusal.map { "\($0.reply.code) \($0.reply.enhanced)" } == "451 4.4.3")
    }

    /// The body decides: a signature that matches only the fields proves nothing.
    @Test func reply_finalEvidence_decidesTheProof() throws {
        for (final, answer) in [(Self.signed, nil), (AuthenticationEvidence(), "550 5.7.26")]
            as [(AuthenticationEvidence, String?)]
        {
            let (fixture, transaction) = try Self.begin(best: Self.signed, final: final)
            try transaction.endHeader()
            try transaction.addBody(Array("Hello\r\n".utf8)[...])
            #expect(fixture.engine.replyMemory.inUse > 0)
            let decision = transaction.finish()
            if case .refuse(let refusal) = decision.outcome {
                #expect("\(refusal.reply.code) \(refusal.reply.enhanced)" == answer)
            } else {
                #expect(answer == nil && decision.outcome == .relay)
            }
        }
    }
}
