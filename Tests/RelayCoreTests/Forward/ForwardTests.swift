// Forwarding: the senders that are accepted, the replies that they get, and the messages that users
// receive.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ForwardTests {
    private static let message =
        "From: Billing <billing@app.example>\r\nTo: annarelay2@relay.example\r\nSubject: Hello\r\nMessage-ID: <1@app.example>\r\n\r\nHello\r\n"

    private func play(
        _ evidence: AuthenticationEvidence, from sender: String = "bounce@app.example",
        message: String = ForwardTests.message,
        accounts: [RelayAccount] = [Fixture.anna, Fixture.bob, Fixture.annaElsewhere]
    ) -> RelayDecision {
        Fixture(accounts: accounts, evidence: evidence).play(
            from: sender, to: ["annarelay2@relay.example"], message: message
        )
        .decision
    }

    private func code(_ decision: RelayDecision) -> String {
        if case .refuse(let refusal) = decision.outcome {
            return "\(refusal.reply.code) \(refusal.reply.enhanced)"
        }
        return "\(decision.outcome)"
    }

    private func signature(
        _ domain: String, _ result: DKIMResult, wholeBody: Bool = true
    ) -> DKIMFinding {
        DKIMFinding(
            result: result, domain: domain, selector: "s", algorithm: "rsa-sha256",
            coversWholeBody: wholeBody, reason: "test")
    }

    private func spf(
        _ domain: String, _ result: SPFResult, _ identity: SPFFinding.Identity = .mailFrom
    ) -> SPFFinding {
        SPFFinding(result: result, identity: identity, domain: domain, reason: "test")
    }

    private func account(
        isForwardingOn: Bool = true, isActive: Bool = true, sources: [RegisteredSource]? = nil,
        isVerified: Bool = true,
        hasBlocks: Bool = false
    ) -> RelayAccount {
        let anna = Fixture.anna
        return RelayAccount(
            number: anna.number, relayAddress: anna.relayAddress, isForwardingOn: isForwardingOn,
            hasLiveGrant: isActive,
            inbox: anna.inbox.map { UserInbox(address: $0.address, isVerified: isVerified) },
            inboxes: anna.inboxes,
            sharedName: nil,
            sources: sources ?? anna.sources, hasBlocks: hasBlocks)
    }

    /// Only a proved sender learns that the user has blocked them.
    @Test func sender_blockedAndProved_isRefused() throws {
        let anna = Fixture.anna
        let account = RelayAccount(
            number: anna.number, relayAddress: anna.relayAddress, isForwardingOn: true,
            hasLiveGrant: true, inbox: anna.inbox,
            inboxes: anna.inboxes, sharedName: nil, sources: anna.sources, hasBlocks: true)
        func code(_ evidence: AuthenticationEvidence, _ blocked: RegisteredSource.Scope) -> String {
            let fixture = Fixture(accounts: [account], evidence: evidence)
            fixture.directory.block(RegisteredSource(scope: blocked))
            return self.code(
                fixture.play(
                    from: "bounce@app.example", to: ["annarelay2@relay.example"],
                    message: Self.message
                ).decision)
        }
        let billing = try #require(AddrSpec(envelope: "billing@app.example"))
        let other = try #require(AddrSpec(envelope: "ads@app.example"))
        #expect(code(.signed("app.example"), .address(billing)) == "550 5.7.1")
        #expect(code(.signed("app.example"), .domain("app.example")) == "550 5.7.1")
        #expect(code(.signed("app.example"), .address(other)) == "relay")
        #expect(code(.signed("evil.example"), .domain("app.example")) == "550 5.7.26")
    }

    // MARK: Proof

    @Test func signature_aligned_proves() {
        #expect(code(play(AuthenticationEvidence.signed("app.example"))) == "relay")
        #expect(code(play(AuthenticationEvidence.signed("mail.app.example"))) == "relay")
    }

    @Test func spf_aligned_proves() {
        #expect(
            code(play(AuthenticationEvidence(spf: [spf("bounce.app.example", .pass)]))) == "relay")
    }

    @Test func signature_ofAnotherDomain_provesNothing() {
        #expect(code(play(AuthenticationEvidence.signed("evil.example"))) == "550 5.7.26")
        #expect(code(play(AuthenticationEvidence.signed("notapp.example"))) == "550 5.7.26")
    }

    @Test func signature_ofParentDomain_provesNothing() {
        #expect(code(play(AuthenticationEvidence.signed("example"))) == "550 5.7.26")
    }

    @Test func signature_overPartOfTheBody_provesNothing() {
        let decision = play(
            AuthenticationEvidence(dkim: [signature("app.example", .pass, wholeBody: false)]),
            from: "x@evil.example")
        #expect(code(decision) == "550 5.7.20")
    }

    @Test func refusal_failedProof_namesWhatCoversAuthor() {
        #expect(
            code(
                play(
                    AuthenticationEvidence(
                        spf: [spf("evil.example", .pass)], dkim: [signature("app.example", .fail)]))
            )
                == "550 5.7.20")
        #expect(
            code(play(AuthenticationEvidence(spf: [spf("app.example", .softfail)]))) == "550 5.7.23"
        )
        #expect(
            code(
                play(
                    AuthenticationEvidence(
                        spf: [spf("app.example", .fail)], dkim: [signature("app.example", .fail)])))
                == "550 5.7.26")
        #expect(code(play(AuthenticationEvidence())) == "550 5.7.26")
    }

    @Test func temporaryError_couldStillProve_isDeferred() {
        #expect(
            code(play(AuthenticationEvidence(dkim: [signature("app.example", .temperror)])))
                == "451 4.4.3")
        #expect(
            code(play(AuthenticationEvidence(dkim: [signature("evil.example", .temperror)])))
                == "550 5.7.26")
        #expect(
            code(
                play(
                    AuthenticationEvidence(
                        spf: [spf("app.example", .pass)],
                        dkim: [signature("app.example", .temperror)])))
                == "relay")
    }

    @Test func spf_ofHELO_provesNullSenderOnly() {
        let evidence = AuthenticationEvidence(spf: [spf("app.example", .pass, .helo)])
        #expect(code(play(evidence)) == "550 5.7.26")
        #expect(code(play(evidence, from: "")) == "relay")
    }

    @Test func source_pairedEnvelopeDomain_provesBySPFOnly() {
        let paired = account(sources: [
            RegisteredSource(
                scope: .domain("app.example"), pairedEnvelopeDomain: "bounce.esp.example")
        ])
        #expect(
            code(
                play(
                    AuthenticationEvidence(spf: [spf("bounce.esp.example", .pass)]),
                    accounts: [paired])) == "relay")
        #expect(
            code(
                play(
                    AuthenticationEvidence(spf: [spf("other.esp.example", .pass)]),
                    accounts: [paired])) == "550 5.7.26")
        #expect(
            code(play(AuthenticationEvidence.signed("bounce.esp.example"), accounts: [paired]))
                == "550 5.7.26")
    }

    @Test func source_singleAddress_needsItsExactDomain() {
        let single = account(sources: [
            RegisteredSource(scope: .address(AddrSpec(localPart: "billing", domain: "app.example")))
        ])
        #expect(
            code(play(AuthenticationEvidence.signed("app.example"), accounts: [single])) == "relay")
        #expect(
            code(play(AuthenticationEvidence.signed("mail.app.example"), accounts: [single]))
                == "550 5.7.26")
        let other = Self.message.replacingOccurrence(of: "billing@", with: "sales@")
        #expect(
            code(
                play(
                    AuthenticationEvidence.signed("app.example"), message: other, accounts: [single]
                )) == "550 5.7.1")
    }

    @Test func source_authorDomainWithSameEnding_isRefused() {
        let message = Self.message.replacingOccurrence(of: "@app.example", with: "@evilapp.example")
        #expect(
            code(play(AuthenticationEvidence.signed("app.example"), message: message))
                == "550 5.7.1")
        #expect(
            code(play(AuthenticationEvidence.signed("evilapp.example"), message: message))
                == "550 5.7.1")
        #expect(
            code(
                play(AuthenticationEvidence(spf: [spf("evilapp.example", .pass)]), message: message)
            ) == "550 5.7.1")
    }

    // MARK: Replies and their recipients

    @Test func author_unregistered_isToldWhatToRegister() {
        let message = Self.message.replacingOccurrence(
            of: "@app.example", with: "@stranger.example")
        let decision = play(
            AuthenticationEvidence.signed("stranger.example"), from: "x@stranger.example",
            message: message)
        guard case .refuse(let refusal) = decision.outcome else {
            Issue.record("let through")
            return
        }
        #expect(refusal.reply.code == 550 && refusal.reply.enhanced == "5.7.1")
        #expect(refusal.reply.text.hasPrefix("<x@stranger.example>: unauthorized sender"))
        #expect(refusal.reply.text.contains("stranger.example"))
    }

    @Test func sender_provedForAnotherTeam_getsUnknownAddress() {
        let message = Self.message.replacingOccurrence(
            of: "billing@app.example", with: "billing@shop.example")
        #expect(
            code(play(AuthenticationEvidence.signed("shop.example"), message: message))
                == "550 5.1.1")
        #expect(code(play(AuthenticationEvidence(), message: message)) == "550 5.7.26")
    }

    @Test func accountState_unprovedSender_isNotTold() {
        for (sender, hasBlocks) in [
            ("bounce@app.example", false), ("", false), ("bounce@app.example", true), ("", true),
        ] {
            let states = [
                account(isForwardingOn: false, hasBlocks: hasBlocks),
                account(isActive: false, hasBlocks: hasBlocks),
                account(isVerified: false, hasBlocks: hasBlocks), account(hasBlocks: hasBlocks),
            ]
            let proved = states.map {
                code(
                    play(AuthenticationEvidence.signed("app.example"), from: sender, accounts: [$0])
                )
            }
            #expect(
                proved == ["550 5.2.1", "550 5.1.6", "451 4.2.1", "relay"],
                "sender <\(sender)>, blocks: \(hasBlocks)")
            let unproved = states.map {
                play(AuthenticationEvidence(), from: sender, accounts: [$0])
            }
            #expect(Set(unproved).count == 1, "sender <\(sender)>, blocks: \(hasBlocks)")
        }
    }

    @Test func dailyLimit_provedMail_isCounted() {
        var settings = RelaySettings(relayDomains: ["relay.example"], authservID: "mx")
        settings.limits.messagesPerDay = 2
        let fixture = Fixture(
            evidence: AuthenticationEvidence.signed("app.example"), settings: settings)
        let codes = (0..<3).map { _ in
            code(
                fixture.play(
                    from: "b@app.example", to: ["annarelay2@relay.example"], message: Self.message
                ).decision)
        }
        #expect(codes == ["relay", "relay", "452 4.7.1"])
        let tomorrow = fixture.play(
            from: "b@app.example", to: ["annarelay2@relay.example"], message: Self.message,
            now: Fixture.now + 86_400)
        #expect(code(tomorrow.decision) == "relay")
    }

    @Test(arguments: [
        "From: a@app.example\r\nFrom: b@app.example\r\n", "From: a@app.example, b@app.example\r\n",
        "From: <a@app.example><b@evil.example>\r\n",
        "From: a@app.example <b@evil.example>\r\n", "From: =?utf-8?q?a=40app.example?=\r\n",
        "Subject: no author\r\n",
        "From: team: a@app.example;\r\n",
    ])
    func author_unclear_provesNothing(_ header: String) {
        #expect(
            code(play(AuthenticationEvidence.signed("app.example"), message: header + "\r\nx\r\n"))
                == "550 5.7.26")
    }

    @Test(arguments: [
        "Subject: a\u{0}b\r\n", "Subject: a\rb\r\n", "X-Postern-\u{e9}: a\r\n", "X Y: a\r\n",
        " X: a\r\n",
    ])
    func from_ambiguous_provesNothing(_ field: String) {
        #expect(
            code(play(AuthenticationEvidence.signed("app.example"), message: field + Self.message))
                == "550 5.7.26")
    }

    @Test func header_beyondTheLimits_isRefused() {
        #expect(
            code(
                play(
                    AuthenticationEvidence.signed("app.example"),
                    message: "X: \(String(repeating: "a", count: 60_000))\r\n" + Self.message))
                == "550 5.6.0")
        #expect(
            code(
                play(
                    AuthenticationEvidence.signed("app.example"),
                    message: String(repeating: "X: a\r\n", count: 10_000) + Self.message))
                == "550 5.6.0")
    }

    @Test func ownMark_onArrival_isALoop() {
        let mark = Fixture(evidence: AuthenticationEvidence()).engine.mark.field(hops: 3)
        let marked = String(decoding: mark.bytes, as: UTF8.self) + "\r\n" + Self.message
        #expect(
            code(play(AuthenticationEvidence.signed("app.example"), message: marked)) == "554 5.4.6"
        )
        let foreign =
            "X-Postern-Mark: 30 zzzzzzzzzzzzzzzzz\r\n"
            + String(repeating: "Received: by x\r\n", count: 21) + Self.message
        #expect(
            code(play(AuthenticationEvidence.signed("app.example"), message: foreign))
                == "554 5.4.6")
    }
}
