// A reply to all: the user's own relay address and other users of the relay are among its
// recipients.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ReplyAllTests {
    private static let own = "annarelay2@relay.example"
    private static let users = AuthenticationEvidence(
        spf: [SPFFinding(result: .pass, identity: .mailFrom, domain: "inbox.example", reason: "")])

    private static func reverse(
        _ account: RelayAccount, _ correspondent: String, _ fixture: Fixture
    ) -> String {
        fixture.engine.tokens.reverse(
            account: account.number, correspondent: AddrSpec(envelope: correspondent)!
        ).localPart
            + "@relay.example"
    }

    private static func message(from author: String, to: [String]) -> String {
        "From: \(author)\r\nTo: \(to.joined(separator: ",\r\n "))\r\nMessage-ID: <1@inbox.example>\r\n\r\nHello\r\n"
    }

    private static func code(_ decision: RelayDecision) -> String {
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        }
        return "\(decision.outcome)"
    }

    private static func recipients(_ decision: RelayDecision) -> [String] {
        decision.modifications.compactMap {
            if case .addRecipient(let path) = $0 { path } else { nil }
        }
    }

    // MARK: The user's own relay address

    /// The own address must be accepted next to others: `452 … another account`, and then `550
    /// unauthorized sender`, would cause a bounce.
    @Test(arguments: [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    func ownAddress_besideReverseAddresses_isAccepted(order: [Int]) {
        let fixture = Fixture(evidence: Self.users)
        let all = [
            Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture),
            Self.reverse(Fixture.anna, "help@app.example", fixture),
        ]
        let recipients = order.map { all[$0] }
        let answer = fixture.play(
            from: "anna@inbox.example", to: recipients,
            message: Self.message(from: "anna@inbox.example", to: recipients))
        #expect(answer.refusals.isEmpty && Self.code(answer.decision) == "relay")
        #expect(
            Set(Self.recipients(answer.decision)) == [
                "<billing@app.example>", "<help@app.example>",
            ])
        for recipient in all {
            #expect(answer.decision.modifications.contains(.deleteRecipient("<\(recipient)>")))
        }
        #expect(
            fixture.directory.reserved(.reply, Fixture.anna.number) == 1
                && fixture.directory.reserved(.forward, Fixture.anna.number) == 0)
    }

    /// Some servers give each recipient its own transaction.
    @Test func ownAddress_aloneOfAReplyAll_isDiscarded() {
        let fixture = Fixture(evidence: Self.users)
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let answer = fixture.play(
            from: "anna@inbox.example", to: [Self.own],
            message: Self.message(from: "anna@inbox.example", to: both))
        #expect(
            Self.code(answer.decision) == "discard"
                && answer.decision.reasons.map(\.code) == [.ownAddress])
        // There is no other recipient, so the message would be lost.
        #expect(
            Self.code(
                fixture.play(
                    from: "anna@inbox.example", to: [Self.own],
                    message: Self.message(from: "anna@inbox.example", to: [Self.own])
                ).decision)
                == "550 5.7.1")
        let bobs = [Self.own, Self.reverse(Fixture.bob, "billing@app.example", fixture)]
        #expect(
            Self.code(
                fixture.play(
                    from: "anna@inbox.example", to: [Self.own],
                    message: Self.message(from: "anna@inbox.example", to: bobs)
                ).decision)
                == "550 5.7.1")
        #expect(fixture.directory.counted(.forwarded) == 0)
    }

    /// Anyone who guesses the inbox gets the same reply as every other sender.
    @Test func ownAddress_authorNotProved_isRefused() {
        var answers: Set<RelayDecision> = []
        for (author, evidence) in [
            ("anna@inbox.example", AuthenticationEvidence()),
            ("eve@inbox.example", AuthenticationEvidence()),
            ("eve@inbox.example", Self.users),
        ] {
            let fixture = Fixture(evidence: evidence)
            let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
            answers.insert(
                fixture.play(
                    from: "x@inbox.example", to: [Self.own],
                    message: Self.message(from: author, to: both)
                ).decision)
            #expect(
                Self.code(
                    fixture.play(
                        from: author, to: both, message: Self.message(from: author, to: both)
                    ).decision)
                    == "550 5.7.26")
        }
        #expect(answers.count == 1 && answers.map(Self.code) == ["550 5.7.1"])
        // A temporary DNS result is not a failure.
        let undecided = AuthenticationEvidence(spf: [
            SPFFinding(result: .temperror, identity: .mailFrom, domain: "inbox.example", reason: "")
        ])
        let fixture = Fixture(evidence: undecided)
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let answer = fixture.play(
            from: "anna@inbox.example", to: [Self.own],
            message: Self.message(from: "anna@inbox.example", to: both))
        #expect(Self.code(answer.decision) == "451 4.4.3")
    }

    /// The inbox of a person who works for a team of this relay.
    @Test func ownAddress_userAtASourceDomain_isAccepted() {
        let accounts = [
            Fixture.account(1, "annarelay2", team: "app.example", inboxes: ["anna@shop.example"]),
            Fixture.annaElsewhere,
        ]
        let fixture = Fixture(
            accounts: accounts, evidence: AuthenticationEvidence.signed("shop.example"))
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let alone = fixture.play(
            from: "anna@shop.example", to: [Self.own],
            message: Self.message(from: "anna@shop.example", to: both))
        #expect(Self.code(alone.decision) == "discard")
        let together = fixture.play(
            from: "anna@shop.example", to: both,
            message: Self.message(from: "anna@shop.example", to: both))
        #expect(Self.recipients(together.decision) == ["<billing@app.example>"])
    }

    /// An inbox that the user has not confirmed may belong to another person.
    @Test func reply_fromUnverifiedInbox_isRefused() {
        let anna = Fixture.anna
        let accounts = [
            RelayAccount(
                number: anna.number, relayAddress: anna.relayAddress, isForwardingOn: true,
                hasLiveGrant: true, inbox: anna.inbox,
                inboxes: anna.inboxes.map {
                    UserInbox(
                        address: $0.address,
                        isVerified: $0.address.revealed.domain != "home.example")
                }, sharedName: nil, sources: anna.sources)
        ]
        let fixture = Fixture(
            accounts: accounts, evidence: AuthenticationEvidence.signed("home.example"))
        let author = "anna.second@home.example"
        let reverse = Self.reverse(anna, "billing@app.example", fixture)
        for recipients in [[reverse], [Self.own, reverse], [reverse, Self.own]] {
            let answer = fixture.play(
                from: author, to: recipients, message: Self.message(from: author, to: recipients))
            #expect(Self.code(answer.decision) == "550 5.7.26")
        }
        // Alone at the own address, it is the mail of a stranger.
        let alone = fixture.play(
            from: author, to: [Self.own],
            message: Self.message(from: author, to: [Self.own, reverse]))
        #expect(Self.code(alone.decision) == "550 5.7.1")
        let verified = Fixture(evidence: AuthenticationEvidence.signed("home.example"))
        #expect(
            Self.code(
                verified.play(
                    from: author, to: [reverse], message: Self.message(from: author, to: [reverse])
                ).decision)
                == "relay")
    }

    @Test func teamMail_toUserAndReverseAddress_isSplit() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
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

    @Test func recipients_withoutProof_stayTogether() {
        let fixture = Fixture(evidence: AuthenticationEvidence())
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        for author in ["billing@app.example", "eve@evil.example"] {
            for _ in 0..<2 {
                let answer = fixture.play(
                    from: author, to: both, message: Self.message(from: author, to: both))
                #expect(answer.refusals.isEmpty && Self.code(answer.decision) == "550 5.7.26")
            }
        }
    }

    /// RCPT must not reveal to the holder of a reverse address which relay address belongs to it.
    @Test func rcpt_unprovedSender_doesNotTellAccounts() {
        for evidence in [AuthenticationEvidence(), AuthenticationEvidence.signed("evil.example")] {
            var answers: Set<String> = []
            for account in [Fixture.anna, Fixture.bob, Fixture.annaElsewhere] {
                let fixture = Fixture(evidence: evidence)
                let reverse = Self.reverse(account, "billing@app.example", fixture)
                for recipients in [
                    [Self.own, reverse], [reverse, Self.own],
                    [reverse, Self.own, "bobrelay22@relay.example"],
                ] {
                    for author in ["eve@evil.example", "billing@app.example", "anna@inbox.example"]
                    {
                        let answer = fixture.play(
                            from: "eve@evil.example", to: recipients,
                            message: Self.message(from: author, to: recipients))
                        answers.insert(
                            "\(recipients.count) \(author) \(answer.refusals.values.map(\.reply.code)) \(Self.code(answer.decision))"
                        )
                    }
                }
            }
            #expect(answers.count == 6, "\(answers.sorted())")
        }
    }

    /// The same if a server gives each recipient its own transaction, and the proof must wait.
    @Test func temporaryFailure_otherAccount_isAnsweredAlike() {
        let undecided = AuthenticationEvidence(spf: [
            SPFFinding(result: .temperror, identity: .mailFrom, domain: "evil.example", reason: "")
        ])
        var answers: Set<RelayDecision> = []
        for account in [Fixture.anna, Fixture.bob, Fixture.annaElsewhere] {
            let fixture = Fixture(evidence: undecided)
            let both = [Self.own, Self.reverse(account, "billing@app.example", fixture)]
            answers.insert(
                fixture.play(
                    from: "eve@evil.example", to: [Self.own],
                    message: Self.message(from: "eve@evil.example", to: both)
                )
                .decision)
        }
        #expect(answers.count == 1 && answers.map(Self.code) == ["451 4.4.3"])
    }

    /// The user's reply is not accepted together with another person's relay address, as that copy
    /// would be lost.
    @Test func reply_besideAnotherAccount_isSplit() {
        let fixture = Fixture(evidence: Self.users)
        let both = [
            Self.reverse(Fixture.anna, "billing@app.example", fixture), "bobrelay22@relay.example",
        ]
        let message = Self.message(from: "anna@inbox.example", to: both)
        let first = fixture.play(from: "anna@inbox.example", to: both, message: message)
        #expect(first.refusals.isEmpty && Self.code(first.decision) == "451 4.3.0")
        #expect(fixture.directory.reserved(.reply, Fixture.anna.number) == 0)
        let second = fixture.play(from: "anna@inbox.example", to: both, message: message)
        #expect(second.refusals.mapValues(\.reply.code) == [both[1]: 452])
        #expect(Self.recipients(second.decision) == ["<billing@app.example>"])
        #expect(
            Self.code(
                fixture.play(from: "anna@inbox.example", to: [both[1]], message: message).decision)
                == "550 5.7.1")
    }

    /// A large sender repeats a message from another address each time, and must not be deferred
    /// each time.
    @Test func teamMail_repeatedByOtherClient_isSplit() {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let both = [Self.own, Self.reverse(Fixture.anna, "billing@app.example", fixture)]
        let message = Self.message(from: "billing@app.example", to: both)
        let first = fixture.play(
            from: "billing@app.example", to: both, message: message, client: "192.0.2.1")
        #expect(first.refusals.isEmpty && Self.code(first.decision) == "451 4.3.0")
        for order in [both, both.reversed()] {
            let second = fixture.play(
                from: "billing@app.example", to: order, message: message, client: "198.51.100.7")
            #expect(second.refusals.mapValues(\.reply.code) == [order[1]: 452])
        }
        // Another sender is not affected, and neither are other recipients.
        #expect(fixture.play(from: "news@app.example", to: both, message: message).refusals.isEmpty)
        let others = [Self.own, Self.reverse(Fixture.anna, "help@app.example", fixture)]
        let third = fixture.play(
            from: "billing@app.example", to: others.reversed(), message: message)
        #expect(third.refusals.mapValues(\.reply.code) == [Self.own: 452])
        #expect(
            fixture.play(from: "billing@app.example", to: [others[1]], message: message).refusals
                .isEmpty)
    }

    // MARK: Other users

    /// Users are counted, not their addresses.
    @Test func note_otherRecipients_countsUsers() throws {
        let successor = Fixture.account(
            2, "bobrelay22", team: "app.example", inboxes: ["bob@inbox.example"])
        var old = Fixture.account(
            4, "bobbefore2", team: "shop.example", inboxes: ["bob@inbox.example"])
        old = RelayAccount(
            number: old.number, relayAddress: old.relayAddress, isForwardingOn: true,
            hasLiveGrant: false, inbox: nil,
            inboxes: [],
            sharedName: nil,
            sources: [], successors: [Fixture.anna])
        let fixture = Fixture(
            accounts: [Fixture.anna, successor, Fixture.annaElsewhere, old],
            evidence: AuthenticationEvidence.signed("app.example"))
        let others = [
            "bobrelay22@relay.example", "BOBRELAY22@relay.example",
            Self.reverse(successor, "x@app.example", fixture),
            Self.reverse(Fixture.anna, "billing@app.example", fixture), "bobbefore2@relay.example",
        ]
        func note(_ to: [String]) -> String? {
            let message =
                "From: billing@app.example\r\nTo: \(([Self.own] + to).joined(separator: ",\r\n "))\r\n\r\nx\r\n"
            let parsed = Message.parse(Array(message.utf8))
            var forward = ModifiedMessage(
                header: parsed.header, body: parsed.body, sender: "", recipients: [Self.own])
            forward.apply(
                fixture.play(from: "billing@app.example", to: [Self.own], message: message).decision
                    .modifications)
            let value =
                HeaderSection(forward.header).first("To").map {
                    String(decoding: $0.rawValue, as: UTF8.self)
                } ?? ""
            return value.split(separator: "(").dropFirst().first.map {
                String($0.prefix { $0 != ")" })
            }
        }
        #expect(note(others) == "you and 1 other user of this relay")
        #expect(note(Array(others[3...])) == nil)
        #expect(
            note(others + ["annaother2@relay.example"]) == "you and 2 other users of this relay")
    }

    /// A reverse address for the relay's own domain would be useless: mail to it would wait in
    /// Postfix for five days.
    @Test(arguments: ["To", "Cc", "Reply-To"]) func replyAll_everyAddressOfAForward_isAccepted(
        field: String
    ) throws {
        let fixture = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let message =
            "From: Billing <billing@app.example>\r\nSubject: x\r\n"
            + (field == "To" ? "" : "To: Anna <annarelay2@relay.example>\r\n")
            + "\(field): Bob <bobrelay22@relay.example>, Help <help@app.example>, Us: annaother2@relay.example, postmaster@relay.example;\r\n\r\nx\r\n"
        let decision = fixture.play(from: "billing@app.example", to: [Self.own], message: message)
            .decision
        let parsed = Message.parse(Array(message.utf8))
        var forward = ModifiedMessage(
            header: parsed.header, body: parsed.body, sender: "", recipients: [Self.own])
        forward.apply(decision.modifications)
        let fields = ["From", "Reply-To", "To", "Cc"].flatMap {
            HeaderSection(forward.header).all($0)
        }
        let answered = fields.flatMap { AddressList.parse($0.rawValue).mailboxes }.map {
            $0.addrSpec.wireForm
        }
        let text = String(decoding: forward.header.flatMap { $0.bytes + [0x0A] }, as: UTF8.self)
        #expect(
            answered.count == (field == "To" ? 3 : 4) && !text.contains("bobrelay22")
                && !text.contains("annaother2"))
        #expect(text.contains("(you and 2 other users of this relay)") == (field != "Reply-To"))
        let user = Fixture(
            directory: fixture.directory,
            engine: fixture.engine.authenticating(by: TestAuthenticator(evidence: Self.users)))
        let reply = user.play(
            from: "anna@inbox.example", to: answered,
            message: Self.message(from: "anna@inbox.example", to: answered))
        #expect(reply.refusals.isEmpty && Self.code(reply.decision) == "relay")
        // Nothing at a relay domain is delivered. The operator's mailboxes lead to the operator.
        #expect(
            Set(Self.recipients(reply.decision)) == [
                "<billing@app.example>", "<help@app.example>", "<ops@operator.example>",
            ])
    }

    @Test(arguments: [
        "bobrelay22@relay.example", "carlarelay@second.example",
        "whatever-it-is-that-is-so-long-that-it-has-to-be-stored@relay.example",
    ])
    func reverseAddress_forAnotherUser_isRefused(correspondent: String) throws {
        let fixture = Fixture(evidence: Self.users)
        let address = AddrSpec(envelope: correspondent)!
        let token = fixture.engine.tokens.reverse(
            account: Fixture.anna.number, correspondent: address)
        if let stored = StoredAddress(token) {
            #expect(
                try fixture.directory.store(
                    [stored], account: Fixture.anna.number, day: 1, newPerDay: 1))
        }
        let bob = token.localPart + "@relay.example"
        let team = Self.reverse(Fixture.anna, "billing@app.example", fixture)
        let answer = fixture.play(
            from: "anna@inbox.example", to: [bob, team],
            message: Self.message(from: "anna@inbox.example", to: [bob, team]))
        #expect(
            answer.refusals.mapValues { "\($0.reply.code) \($0.reply.enhanced)" } == [
                bob: "550 5.1.1"
            ])
        #expect(Self.recipients(answer.decision) == ["<billing@app.example>"])
    }

    @Test func operatorMailbox_noAddressSet_isDeferred() {
        let fixture = Fixture(
            evidence: Self.users,
            settings: RelaySettings(relayDomains: ["relay.example"], authservID: "mx"))
        let operators = Self.reverse(Fixture.anna, "abuse@relay.example", fixture)
        let answer = fixture.play(
            from: "anna@inbox.example", to: [operators],
            message: Self.message(from: "anna@inbox.example", to: [operators]))
        #expect(answer.refusals.mapValues(\.reply.code) == [operators: 451])
    }

    /// A domain may become a relay domain after a user has an inbox there, or a team a sender.
    @Test func forward_toARelayDomain_isNotSent() {
        let anna = Fixture.account(
            1, "annarelay2", team: "app.example", inboxes: ["anna@second.example"])
        let fixture = Fixture(
            accounts: [anna], evidence: AuthenticationEvidence.signed("app.example"))
        let message = "From: billing@app.example\r\nTo: annarelay2@relay.example\r\n\r\nx\r\n"
        #expect(
            Self.code(
                fixture.play(from: "b@app.example", to: [Self.own], message: message).decision)
                == "451 4.3.5")

        var proved = AuthenticationEvidence.signed("app.example")
        proved.spf = [
            SPFFinding(result: .pass, identity: .mailFrom, domain: "second.example", reason: "")
        ]
        let decision = Fixture(evidence: proved).play(
            from: "bounces@second.example", to: [Self.own], message: message
        ).decision
        let senders = decision.modifications.compactMap {
            if case .changeSender(let path) = $0 { path } else { nil }
        }
        #expect(
            senders.count == 1 && senders.allSatisfy { !$0.contains("bounces=") },
            "no bounce can be sent to this sender, so the path must not name it")
    }
}
