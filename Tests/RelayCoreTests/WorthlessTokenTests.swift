// A reverse address or return path of one account is worthless to anyone else, and reveals nothing
// about anyone.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct WorthlessTokenTests {
    /// A user account that the team itself controls, to get reverse addresses of its own.
    private static let mallory = Fixture.account(
        9, "malloryre2", team: "app.example", inboxes: ["mallory@app.example"])
    private static let billing = AddrSpec(localPart: "billing", domain: "app.example")
    private static let annasMail =
        "From: Anna <anna@inbox.example>\r\nTo: somebody@app.example\r\nSubject: Hello\r\nMessage-ID: <u@inbox.example>\r\n\r\nHello\r\n"

    private func installation(
        _ evidence: AuthenticationEvidence, mallory: RelayAccount = Self.mallory
    ) -> Fixture {
        Fixture(
            accounts: [Fixture.anna, Fixture.bob, Fixture.annaElsewhere, mallory],
            evidence: evidence)
    }

    private func reverse(_ account: RelayAccount, _ fixture: Fixture) -> String {
        fixture.engine.tokens.reverse(account: account.number, correspondent: Self.billing)
            .localPart + "@relay.example"
    }

    /// The answer as sent, at any stage of the transaction.
    private func wire(_ answer: Fixture.Response) -> String {
        let refusal: Refusal? =
            answer.refusals.values.first
            ?? { if case .refuse(let refusal) = answer.decision.outcome { refusal } else { nil } }()
        return refusal.map { "\($0.reply.code) \($0.reply.enhanced) \($0.reply.text)" }
            ?? "\(answer.decision.outcome)"
    }

    @Test func reverseAddress_ofAnotherAccount_isAnsweredAlike() {
        let proved = AuthenticationEvidence.signed("inbox.example")
        func play(
            _ evidence: AuthenticationEvidence, _ message: String,
            to recipient: ((Fixture) -> String)? = nil
        ) -> String {
            let fixture = installation(evidence)
            return wire(
                fixture.play(
                    from: "replay@app.example",
                    to: [recipient?(fixture) ?? reverse(Self.mallory, fixture)], message: message))
        }
        let stranger = Self.annasMail.replacingOccurrence(of: "anna@inbox", with: "nobody@inbox")
        let answers = [
            "a user's proved mail": play(proved, Self.annasMail),
            "a stranger's proved mail": play(proved, stranger),
            "a user's mail, not proved": play(.init(), Self.annasMail),
            "a stranger's mail, not proved": play(.init(), stranger),
            "no author": play(proved, "Subject: x\r\n\r\n"),
            "two authors": play(
                proved,
                Self.annasMail.replacingOccurrence(
                    of: "<anna@inbox.example>", with: "<anna@inbox.example>, b@c.example")),
            "another user of the team": play(proved, Self.annasMail) { reverse(Fixture.bob, $0) },
            "a deleted account": play(proved, Self.annasMail) {
                $0.engine.tokens.reverse(account: AccountNumber(77)!, correspondent: Self.billing)
                    .localPart + "@relay.example"
            },
            "a forged token": play(proved, Self.annasMail) {
                reverse(Self.mallory, $0).replacingOccurrence(of: "billing", with: "payment")
            },
            "a token that is not stored": play(proved, Self.annasMail) {
                $0.engine.tokens.reverse(
                    account: Self.mallory.number,
                    correspondent: AddrSpec(localPart: "Upper", domain: "app.example")
                ).localPart
                    + "@relay.example"
            },
        ]
        for (what, answer) in answers {
            #expect(answer.hasPrefix("550 5.7.26 "), "\(what): \(answer)")
            #expect(answer == answers["a stranger's mail, not proved"], "\(what)")
            #expect(!answer.contains("anna") && !answer.contains("inbox.example"))
        }
        // The same mail is accepted for the right account.
        #expect(play(proved, Self.annasMail) { reverse(Fixture.anna, $0) } == "relay")
    }

    @Test func accountState_anotherUser_isNotTold() {
        let states = [
            Self.mallory,
            Fixture.account(
                9, "malloryre2", team: "app.example", inboxes: ["mallory@app.example"],
                isActive: false),
            Fixture.account(
                9, "malloryre2", team: "app.example", inboxes: ["mallory@app.example"],
                isForwardingOn: false),
        ]
        let answers = states.map { state in
            let fixture = installation(
                AuthenticationEvidence.signed("inbox.example"), mallory: state)
            return wire(
                fixture.play(
                    from: "a@inbox.example", to: [reverse(state, fixture)], message: Self.annasMail)
            )
        }
        #expect(Set(answers).count == 1 && answers[0].hasPrefix("550 5.7.26"))
    }

    /// A note counts as a reply only from the account's own user. From anyone else it is accepted
    /// and dropped, proved or not.
    @Test func returnPath_replayedNote_isAnsweredAlike() {
        let note = Self.annasMail.replacingOccurrence(
            of: "Subject:", with: "Auto-Submitted: auto-replied\r\nSubject:")
        func play(
            _ account: RelayAccount, _ evidence: AuthenticationEvidence, _ message: String,
            from sender: String
        ) -> String {
            let fixture = installation(evidence)
            let token = fixture.engine.tokens.forwardReturnPath(
                account: account.number, sender: Self.billing, nonce: 7,
                expiryDay: UInt64(Fixture.now / 86_400) + 2)
            return wire(
                fixture.play(
                    from: sender, to: ["\(token.localPart)@relay.example"], message: message))
        }
        let proved = AuthenticationEvidence.signed("inbox.example")
        for sender in ["", "replay@app.example"] {
            #expect(play(Self.mallory, proved, note, from: sender) == "discard")
            #expect(play(Self.mallory, .init(), note, from: sender) == "discard")
            #expect(play(Fixture.bob, proved, note, from: sender) == "discard")
            #expect(play(Fixture.anna, .init(), note, from: sender) == "discard")
        }
        #expect(play(Fixture.anna, proved, note, from: "") == "relay")
        // Ordinary mail from any sender gets the answer of a forged return path.
        let ordinary = [(Self.mallory, proved), (Fixture.anna, proved), (Fixture.anna, .init())].map
        {
            play($0, $1, Self.annasMail, from: "replay@app.example")
        }
        let fixture = installation(proved)
        let token = fixture.engine.tokens.forwardReturnPath(
            account: Fixture.anna.number, sender: Self.billing, nonce: 7,
            expiryDay: UInt64(Fixture.now / 86_400) + 2
        ).localPart
        // The last octet of its code differs.
        let path =
            token.dropLast() + (token.utf8.last == UInt8(ascii: "b") ? "c" : "b") + "@relay.example"
        let forged = wire(
            fixture.play(from: "replay@app.example", to: [String(path)], message: Self.annasMail))
        #expect(Set(ordinary + [forged]).count == 1 && forged.hasPrefix("550 5.7.1 "))
    }

    // MARK: Limits

    private func settings(_ messagesPerDay: Int) -> RelaySettings {
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx")
        settings.limits.messagesPerDay = messagesPerDay
        return settings
    }

    @Test func accountState_unprovedForward_isNotTold() {
        let message = "From: billing@app.example\r\nTo: annarelay2@relay.example\r\n\r\nx\r\n"
        let anna = Fixture.anna
        let unverified = RelayAccount(
            number: anna.number, relayAddress: anna.relayAddress, isForwardingOn: true,
            hasLiveGrant: true,
            inbox: anna.inbox.map { UserInbox(address: $0.address, isVerified: false) },
            inboxes: anna.inboxes, sharedName: nil,
            sources: anna.sources)
        let states: [(RelayAccount, Int, String)] = [
            (anna, 100, "relay"), (anna, 0, "452 4.7.1"), (unverified, 100, "451 4.2.1"),
            (
                Fixture.account(
                    1, "annarelay2", team: "app.example", inboxes: ["anna@inbox.example"],
                    isForwardingOn: false),
                100, "550 5.2.1"
            ),
            (
                Fixture.account(
                    1, "annarelay2", team: "app.example", inboxes: ["anna@inbox.example"],
                    isActive: false), 100,
                "550 5.1.6"
            ),
        ]
        for evidence in [AuthenticationEvidence(), AuthenticationEvidence.signed("evil.example")] {
            let answers = states.map { account, limit, _ in
                wire(
                    Fixture(accounts: [account], evidence: evidence, settings: settings(limit))
                        .play(
                            from: "x@app.example", to: ["annarelay2@relay.example"],
                            message: message))
            }
            #expect(Set(answers).count == 1 && answers[0].hasPrefix("550 5.7.26 "))
        }
        // A proved sender gets a separate answer for each of the five states.
        for (account, limit, told) in states {
            let fixture = Fixture(
                accounts: [account], evidence: AuthenticationEvidence.signed("app.example"),
                settings: settings(limit))
            #expect(
                wire(
                    fixture.play(
                        from: "x@app.example", to: ["annarelay2@relay.example"], message: message)
                ).hasPrefix(told))
        }
    }

    @Test func dailyLimit_eachDirection_isSeparate() {
        // One fixture proves both: it represents two senders at one store.
        var evidence = AuthenticationEvidence.signed("app.example")
        evidence.dkim += AuthenticationEvidence.signed("inbox.example").dkim
        let fixture = Fixture(evidence: evidence, settings: settings(2))
        let forward = "From: billing@app.example\r\n\r\nx\r\n"
        func forwards(_ now: Int64) -> String {
            wire(
                fixture.play(
                    from: "x@app.example", to: ["annarelay2@relay.example"], message: forward,
                    now: now))
        }
        func replies(_ now: Int64) -> String {
            wire(
                fixture.play(
                    from: "anna@inbox.example", to: [reverse(Fixture.anna, fixture)],
                    message: Self.annasMail, now: now))
        }
        let today = (0..<3).map { _ in
            [forwards(Fixture.now), replies(Fixture.now)].map { String($0.prefix(9)) }
        }
        #expect(today == [["relay", "relay"], ["relay", "relay"], ["452 4.7.1", "452 4.7.1"]])
        #expect(
            forwards(Fixture.now + 86_400) == "relay" && replies(Fixture.now + 86_400) == "relay")
        // Another user has another limit.
        let bobs = wire(
            fixture.play(from: "x@app.example", to: ["bobrelay22@relay.example"], message: forward))
        #expect(bobs == "relay")
    }

    @Test func automaticReply_repeated_isSentOnceADay() {
        let fixture = Fixture(
            evidence: AuthenticationEvidence.signed("inbox.example"), settings: settings(2))
        let note = Self.annasMail.replacingOccurrence(
            of: "Subject:", with: "Auto-Submitted: auto-replied\r\nSubject:")
        func play(_ correspondent: String, _ now: Int64 = Fixture.now) -> RelayDecision {
            let token = fixture.engine.tokens.reverse(
                account: Fixture.anna.number, correspondent: AddrSpec(envelope: correspondent)!)
            return fixture.play(
                from: "anna@inbox.example", to: ["\(token.localPart)@relay.example"], message: note,
                now: now
            )
            .decision
        }
        let first = play("a@app.example")
        #expect(first.outcome == .relay && first.modifications.contains(.changeSender("<>")))
        #expect(
            (0..<3).map { _ in play("a@app.example").outcome } == [.discard, .discard, .discard])
        #expect(fixture.directory.counted(.automaticDropped) == 3)
        #expect(play("b@app.example").outcome == .relay)
        #expect(play("a@app.example", Fixture.now + 86_400).outcome == .relay)
        // Notes use no place of the daily limit: two replies still fit.
        let replies = (0..<3).map { _ in
            wire(
                fixture.play(
                    from: "anna@inbox.example", to: [reverse(Fixture.anna, fixture)],
                    message: Self.annasMail))
        }
        #expect(replies.map { String($0.prefix(5)) } == ["relay", "relay", "452 4"])
    }
}
