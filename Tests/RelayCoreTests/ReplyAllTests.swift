// A reply to all: the user's own relay address and other users of the relay are among those whom the message went to.

import InternetMessage
import MailAuth
import Testing

@testable import RelayCore

@Suite struct ReplyAllTests {
    private static let own = "annarelay2@relay.example"
    private static let users = AuthenticationEvidence(
        spf: [SPFFinding(result: .pass, identity: .mailFrom, domain: "inbox.example", reason: "")])

    private static func reverse(_ account: RelayAccount, _ correspondent: String, _ fixture: Fixture) -> String {
        fixture.engine.tokens.reverse(account: account.number, correspondent: AddrSpec(envelope: correspondent)!).localPart + "@relay.example"
    }

    private static func message(from author: String, to: [String]) -> String {
        "From: \(author)\r\nTo: \(to.joined(separator: ",\r\n "))\r\nMessage-ID: <1@inbox.example>\r\n\r\nHello\r\n"
    }

    private static func code(_ decision: RelayDecision) -> String {
        if case .refuse(let refusal) = decision.outcome { return "\(refusal.reply.code) \(refusal.reply.enhanced)" }
        return "\(decision.outcome)"
    }

    private static func recipients(_ decision: RelayDecision) -> [String] {
        decision.modifications.compactMap { if case .addRecipient(let path) = $0 { path } else { nil } }
    }

    // MARK: The user's own relay address

    /// First it was told `452 … another account`, then, by itself, `550 unauthorized sender`: every reply to all earned a bounce.
    @Test(arguments: [[0, 1, 2], [1, 0, 2], [2, 1, 0]]) func theUsersOwnAddressIsTakenBesideReverseAddresses(order: [Int]) {
        let fixture = Fixture(evidence: Self.users)
        let all = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture), Self.reverse(Fixture.anna, "help@app.example", fixture)]
        let recipients = order.map { all[$0] }
        let answer = fixture.play(from: "anna@inbox.example", to: recipients, message: Self.message(from: "anna@inbox.example", to: recipients))
        #expect(answer.refusals.isEmpty && Self.code(answer.decision) == "relay")
        #expect(Set(Self.recipients(answer.decision)) == ["<billing@app.example>", "<help@app.example>"])
        for recipient in all { #expect(answer.decision.modifications.contains(.deleteRecipient("<\(recipient)>"))) }
        #expect(fixture.directory.reserved(.reply, Fixture.anna.number) == 1 && fixture.directory.reserved(.forward, Fixture.anna.number) == 0)
    }

    /// Some servers give each recipient a transaction of its own.
    @Test func theUsersOwnAddressAloneIsTakenWhereTheMessageAnswersAReverseAddress() {
        let fixture = Fixture(evidence: Self.users)
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let answer = fixture.play(from: "anna@inbox.example", to: [Self.own], message: Self.message(from: "anna@inbox.example", to: both))
        #expect(Self.code(answer.decision) == "discard" && answer.decision.reasons.map(\.code) == ["own-address"])
        // Nobody to whom it could have gone besides: it would be lost.
        #expect(
            Self.code(fixture.play(from: "anna@inbox.example", to: [Self.own], message: Self.message(from: "anna@inbox.example", to: [Self.own])).decision)
                == "550 5.7.1")
        let bobs = [Self.own, Self.reverse(Fixture.bob, "billing@app.example", fixture)]
        #expect(
            Self.code(fixture.play(from: "anna@inbox.example", to: [Self.own], message: Self.message(from: "anna@inbox.example", to: bobs)).decision)
                == "550 5.7.1")
        #expect(fixture.directory.counted(.forwarded) == 0)
    }

    /// Whoever guesses the inbox is told what everybody is told.
    @Test func onlyTheProvedUsersOwnAddressIsTaken() {
        var answers: Set<RelayDecision> = []
        for (author, evidence) in [
            ("anna@inbox.example", AuthenticationEvidence()), ("eve@inbox.example", AuthenticationEvidence()), ("eve@inbox.example", Self.users),
        ] {
            let fixture = Fixture(evidence: evidence)
            let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
            answers.insert(fixture.play(from: "x@inbox.example", to: [Self.own], message: Self.message(from: author, to: both)).decision)
            #expect(Self.code(fixture.play(from: author, to: both, message: Self.message(from: author, to: both)).decision) == "550 5.7.26")
        }
        #expect(answers.count == 1 && answers.map(Self.code) == ["550 5.7.1"])
        // What passes by itself is no failure.
        let undecided = AuthenticationEvidence(spf: [SPFFinding(result: .temperror, identity: .mailFrom, domain: "inbox.example", reason: "")])
        let fixture = Fixture(evidence: undecided)
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let answer = fixture.play(from: "anna@inbox.example", to: [Self.own], message: Self.message(from: "anna@inbox.example", to: both))
        #expect(Self.code(answer.decision) == "451 4.4.3")
    }

    /// The inbox of somebody who works for a team of this relay.
    @Test func theUserMayWriteFromADomainThatIsASource() {
        let accounts = [Fixture.account(1, "annarelay2", team: "app.example", inboxes: ["anna@shop.example"]), Fixture.annaElsewhere]
        let fixture = Fixture(accounts: accounts, evidence: Fixture.signed("shop.example"))
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let alone = fixture.play(from: "anna@shop.example", to: [Self.own], message: Self.message(from: "anna@shop.example", to: both))
        #expect(Self.code(alone.decision) == "discard")
        let together = fixture.play(from: "anna@shop.example", to: both, message: Self.message(from: "anna@shop.example", to: both))
        #expect(Self.recipients(together.decision) == ["<billing@app.example>"])
    }

    @Test func aTeamsMailToItsUserAndToAReverseAddressComesApart() {
        let fixture = Fixture(evidence: Fixture.signed("app.example"))
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let message = Self.message(from: "billing@app.example", to: both)
        let first = fixture.play(from: "billing@app.example", to: both, message: message)
        #expect(first.refusals.isEmpty && Self.code(first.decision) == "451 4.3.0")
        let second = fixture.play(from: "billing@app.example", to: both, message: message)
        #expect(second.refusals.mapValues(\.reply.code) == [both[1]: 452])
        #expect(Self.recipients(second.decision) == ["<anna@inbox.example>"])
        let third = fixture.play(from: "billing@app.example", to: [both[1]], message: message)
        #expect(Self.code(third.decision) == "550 5.7.26")
    }

    @Test func withoutAProofTheRecipientsStayTogether() {
        let fixture = Fixture(evidence: AuthenticationEvidence())
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        for author in ["billing@app.example", "eve@evil.example"] {
            for _ in 0..<2 {
                let answer = fixture.play(from: author, to: both, message: Self.message(from: author, to: both))
                #expect(answer.refusals.isEmpty && Self.code(answer.decision) == "550 5.7.26")
            }
        }
    }

    // MARK: Other users

    /// They stood there as reverse addresses for the relay's own domain: what was sent to them was taken, and lay in Postfix for five days.
    @Test(arguments: ["To", "Cc", "Reply-To"]) func everyAddressOfAForwardThatIsAnsweredIsAccepted(field: String) throws {
        let fixture = Fixture(evidence: Fixture.signed("app.example"))
        let message =
            "From: Billing <billing@app.example>\r\nSubject: x\r\n"
            + (field == "To" ? "" : "To: Anna <annarelay2@relay.example>\r\n")
            + "\(field): Bob <bobrelay22@relay.example>, Help <help@app.example>, Us: annaother2@relay.example, postmaster@relay.example;\r\n\r\nx\r\n"
        let decision = fixture.play(from: "billing@app.example", to: [Self.own], message: message).decision
        let parsed = Message.parse(Array(message.utf8))
        var forward = ModifiedMessage(header: parsed.header, body: parsed.body, sender: "", recipients: [Self.own])
        forward.apply(decision.modifications)
        let fields = ["From", "Reply-To", "To", "Cc"].flatMap { HeaderSection(forward.header).all($0) }
        let answered = fields.flatMap { AddressList.parse($0.rawValue).mailboxes }.map { $0.addrSpec.wireForm }
        let text = String(decoding: forward.header.flatMap { $0.bytes + [0x0A] }, as: UTF8.self)
        #expect(answered.count == (field == "To" ? 3 : 4) && !text.contains("bobrelay22") && !text.contains("annaother2"))
        #expect(text.contains("(you and 2 other users of this relay)") == (field != "Reply-To"))
        let user = Fixture(directory: fixture.directory, engine: fixture.engine.authenticating(by: FixedEvidenceAuthenticator(evidence: Self.users)))
        let reply = user.play(from: "anna@inbox.example", to: answered, message: Self.message(from: "anna@inbox.example", to: answered))
        #expect(reply.refusals.isEmpty && Self.code(reply.decision) == "relay")
        // Nothing at a relay domain is delivered; the operator's mailboxes lead to the operator.
        #expect(Set(Self.recipients(reply.decision)) == ["<billing@app.example>", "<help@app.example>", "<ops@operator.example>"])
    }

    @Test(arguments: ["bobrelay22@relay.example", "carlarelay@second.example", "whatever-it-is-that-is-so-long-that-it-has-to-be-stored@relay.example"])
    func aReverseAddressForAnotherUserIsRefused(correspondent: String) throws {
        let fixture = Fixture(evidence: Self.users)
        let address = AddrSpec(envelope: correspondent)!
        let token = fixture.engine.tokens.reverse(account: Fixture.anna.number, correspondent: address)
        if let stored = StoredAddress(token) {
            #expect(try fixture.directory.store([stored], account: Fixture.anna.number, day: 1, newPerDay: 1))
        }
        let bob = token.localPart + "@relay.example"
        let team = Self.reverse(Fixture.anna, "billing@app.example", fixture)
        let answer = fixture.play(from: "anna@inbox.example", to: [bob, team], message: Self.message(from: "anna@inbox.example", to: [bob, team]))
        #expect(answer.refusals.mapValues { "\($0.reply.code) \($0.reply.enhanced)" } == [bob: "550 5.1.1"])
        #expect(Self.recipients(answer.decision) == ["<billing@app.example>"])
    }

    @Test func theOperatorsMailboxWaitsWhileNobodyIsBehindIt() {
        let fixture = Fixture(evidence: Self.users, settings: RelaySettings(relayDomains: ["relay.example"], authservID: "mx"))
        let operators = Self.reverse(Fixture.anna, "abuse@relay.example", fixture)
        let answer = fixture.play(from: "anna@inbox.example", to: [operators], message: Self.message(from: "anna@inbox.example", to: [operators]))
        #expect(answer.refusals.mapValues(\.reply.code) == [operators: 451])
    }

    /// A domain may become a relay domain after somebody has an inbox there, or a team a sender.
    @Test func nothingIsSentToARelayDomain() {
        let anna = Fixture.account(1, "annarelay2", team: "app.example", inboxes: ["anna@second.example"])
        let fixture = Fixture(accounts: [anna], evidence: Fixture.signed("app.example"))
        let message = "From: billing@app.example\r\nTo: annarelay2@relay.example\r\n\r\nx\r\n"
        #expect(Self.code(fixture.play(from: "b@app.example", to: [Self.own], message: message).decision) == "451 4.3.5")

        var proved = Fixture.signed("app.example")
        proved.spf = [SPFFinding(result: .pass, identity: .mailFrom, domain: "second.example", reason: "")]
        let decision = Fixture(evidence: proved).play(from: "bounces@second.example", to: [Self.own], message: message).decision
        let senders = decision.modifications.compactMap { if case .changeSender(let path) = $0 { path } else { nil } }
        #expect(senders.count == 1 && senders.allSatisfy { !$0.contains("bounces=") }, "nobody is told of a bounce who could not be written to")
    }
}
