// A message to several accounts, one of which refuses: who learns of it when the message comes
// again.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct RefusedRecipientTests {
    private static let message =
        "From: billing@app.example\r\nMessage-ID: <1@app.example>\r\n\r\nx\r\n"
    private static let both = ["annarelay2@relay.example", "bobrelay22@relay.example"]
    private static let spf = AuthenticationEvidence(
        spf: [SPFFinding(result: .pass, identity: .mailFrom, domain: "app.example", reason: "")])

    /// The replies to a sender: for each recipient at RCPT, and at the end of data. Copies are
    /// refused if their account accepts no mail.
    private static func send(
        _ engine: RelayEngine, _ evidence: AuthenticationEvidence,
        from sender: String = "bounce@app.example",
        address: String = "192.0.2.1",
        to recipients: [String] = both, message: String = message
    ) -> [String] {
        func transaction(_ canFanOut: Bool) -> RelayTransaction {
            RelayTransaction(
                engine: engine.authenticating(by: TestAuthenticator(evidence: evidence)),
                client: SMTPClientIdentity(
                    address: address, helo: "client.example", mailFrom: sender), now: Fixture.now,
                isCopy: !canFanOut, canFanOut: { canFanOut })
        }
        func play(
            _ transaction: RelayTransaction, _ recipients: [String]
        ) -> (told: [String], decision: RelayDecision) {
            let told = recipients.map { recipient in
                do throws(Refusal) {
                    try transaction.addRecipient("<\(recipient)>")
                    return "250"
                } catch {
                    return "\(error.reply.code) \(error.reply.enhanced)"
                }
            }
            let parsed = Message.parse(Array(message.utf8))
            for field in parsed.header.fields { transaction.addHeader(field) }
            do throws(Refusal) {
                try transaction.endHeader()
                try transaction.addBody(parsed.body)
            } catch {
                return (told, .refuse(error))
            }
            return (told, transaction.finish())
        }
        func code(_ outcome: RelayOutcome) -> String {
            if case .refuse(let refusal) = outcome {
                return "\(refusal.reply.code) \(refusal.reply.enhanced)"
            }
            return "250"
        }
        let first = transaction(true)
        let (told, decision) = play(first, recipients)
        var end = code(decision.outcome)
        for copy in decision.copies {
            let (_, decision) = play(
                transaction(false), copy.paths.map { String($0.dropFirst().dropLast()) })
            if case .refuse(let refusal) = decision.outcome {
                let answer = first.refused(copy, refusal.reply).reply
                end = "\(answer.code) \(answer.enhanced)"
            } else {
                try? first.handedOver(copy)
            }
        }
        return told + [end]
    }

    private static func bob(isOff: Bool) -> RelayAccount {
        Fixture.account(
            2, "bobrelay22", team: "app.example", inboxes: ["bob@inbox.example"],
            isForwardingOn: !isOff)
    }

    private static func engine(isBobOff: Bool = true) -> RelayEngine {
        Fixture(accounts: [Fixture.anna, bob(isOff: isBobOff)], evidence: .init()).engine
    }

    @Test func refusal_whereSPFProvesTheEnvelope_isToldInATransactionOfItsOwn() {
        let engine = Self.engine()
        #expect(Self.send(engine, Self.spf) == ["250", "250", "451 4.3.0"])
        #expect(Self.send(engine, Self.spf) == ["250", "452 4.5.3", "250"])
        #expect(
            Self.send(engine, Self.spf, to: Self.both.reversed()) == [
                "250", "452 4.5.3", "550 5.2.1",
            ])
        #expect(
            Self.send(engine, Self.spf, to: [Self.both[1].uppercased()]) == ["250", "550 5.2.1"])
    }

    /// A recorded refusal must not refuse all later mail of the envelope sender.
    @Test func refusal_ofAnAccountThatTakesMailAgain_isNotRemembered() {
        let fixture = Fixture(accounts: [Fixture.anna, Self.bob(isOff: true)], evidence: .init())
        #expect(Self.send(fixture.engine, Self.spf) == ["250", "250", "451 4.3.0"])
        fixture.directory.put(Self.bob(isOff: false))
        #expect(Self.send(fixture.engine, Self.spf, to: [Self.both[1]]) == ["250", "250"])
    }

    /// At RCPT, the state of an account must not be revealed to a client and sender without proof.
    @Test func refusal_envelopeNotProved_isNotToldAtRCPT() {
        let proved = AuthenticationEvidence.signed("app.example")
        let engine = Self.engine()
        #expect(Self.send(engine, proved) == ["250", "250", "451 4.3.0"])
        // From here on each account has its own transaction, regardless of its state.
        #expect(Self.send(engine, .init()) == ["250", "452 4.5.3", "550 5.7.26"])
        #expect(Self.send(engine, .init(), to: [Self.both[1]]) == ["250", "550 5.7.26"])
        #expect(
            Self.send(engine, .init(), to: Self.both.reversed()) == [
                "250", "452 4.5.3", "550 5.7.26",
            ])
        // The proved author learns it at the end of data, only for that recipient.
        #expect(Self.send(engine, proved, to: [Self.both[1]]) == ["250", "550 5.2.1"])
        #expect(Self.send(engine, proved) == ["250", "452 4.5.3", "250"])
        // Another client or sender is not affected.
        #expect(
            Self.send(engine, .init(), from: "other@app.example") == ["250", "250", "550 5.7.26"])
        #expect(Self.send(engine, .init(), address: "192.0.2.2") == ["250", "250", "550 5.7.26"])
    }

    /// A DMARC result counts only without other evidence. Copied from a signature's result, it
    /// would prove the envelope.
    @Test func envelopeProof_signatureAlone_isNil() throws {
        let client = SMTPClientIdentity(address: "192.0.2.1", helo: "x", mailFrom: "a@app.example")
        var signed = AuthenticationEvidence.signed("app.example")
        signed.dmarc = DMARCFinding(
            result: .pass, domain: "app.example", policy: "none",
            organizationalDomain: "app.example")
        #expect(signed.ofEnvelope(client) == nil)
        signed.spf = [SPFFinding(result: .pass, identity: .helo, domain: "app.example", reason: "")]
        #expect(signed.ofEnvelope(client) == nil)
        signed.spf = Self.spf.spf
        let alone = try #require(signed.ofEnvelope(client))
        #expect(alone.dkim.isEmpty && alone.spf == Self.spf.spf)
        #expect(
            signed.ofEnvelope(SMTPClientIdentity(address: "192.0.2.1", helo: "x", mailFrom: ""))
                == nil)
        #expect(
            signed.ofEnvelope(
                SMTPClientIdentity(address: nil, helo: "x", mailFrom: "a@app.example")) == nil)
    }

    /// A message without proof must leave no record: it would reveal what only a proof may reveal,
    /// or prevent fan-out for others.
    @Test func refusal_unprovedMessage_isNotRemembered() {
        let engine = Self.engine()
        for _ in 0..<2 { #expect(Self.send(engine, .init()) == ["250", "250", "550 5.7.26"]) }
        #expect(Self.send(engine, Self.spf) == ["250", "250", "451 4.3.0"])
    }

    /// The fault of one message must not be reported for the next one.
    @Test func refusal_ofTheMessageItself_isNotRemembered() throws {
        let engine = Self.engine(isBobOff: false)
        let transaction = RelayTransaction(
            engine: engine.authenticating(by: TestAuthenticator(evidence: Self.spf)),
            client: SMTPClientIdentity(
                address: "192.0.2.1", helo: "client.example", mailFrom: "bounce@app.example"),
            now: Fixture.now,
            canFanOut: { true })
        for recipient in Self.both { try transaction.addRecipient("<\(recipient)>") }
        let parsed = Message.parse(Array(Self.message.utf8))
        for field in parsed.header.fields { transaction.addHeader(field) }
        try transaction.endHeader()
        try transaction.addBody(parsed.body)
        let copy = try #require(transaction.finish().copies.first)
        #expect(transaction.refused(copy, Refusal.unrewritable(part: "x").reply).reply.code == 451)
        transaction.end()
        #expect(Self.send(engine, Self.spf) == ["250", "452 4.5.3", "250"])
        #expect(Self.send(engine, Self.spf, to: [Self.both[1]]) == ["250", "250"])
    }
}
