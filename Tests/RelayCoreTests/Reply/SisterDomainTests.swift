// Users of providers with several domains: the domains that prove a reply, and those that are
// hidden.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct SisterDomainTests {
    private static func reply(
        inbox: String, from author: String, _ text: String
    ) throws -> (code: String, text: String) {
        let account = Fixture.account(1, "annarelay2", team: "app.example", inboxes: [inbox])
        let domain = try #require(AddrSpec(envelope: author)).domain
        let fixture = Fixture(accounts: [account], evidence: AuthenticationEvidence.signed(domain))
        let reverse = fixture.engine.tokens.reverse(
            account: account.number,
            correspondent: AddrSpec(localPart: "eva", domain: "app.example")
        ).localPart
        let decision = fixture.play(
            from: author, to: ["\(reverse)@relay.example"],
            message: "From: <\(author)>\r\nSubject: x\r\n\r\n\(text)\r\n"
        ).decision
        if case .refuse(let refusal) = decision.outcome {
            return ("\(refusal.reply.code) \(refusal.reply.enhanced)", "")
        }
        for case .replaceBody(let pieces) in decision.modifications {
            return ("\(decision.outcome)", String(decoding: pieces.joined(), as: UTF8.self))
        }
        return ("\(decision.outcome)", text + "\r\n")
    }

    @Test(arguments: [
        ("martha77@proton.me", "martha77@pm.me"), ("martha77@protonmail.com", "martha77@proton.me"),
        ("maria.k@icloud.com", "maria.k@me.com"), ("maria.k@icloud.com", "maria.k@mac.com"),
    ])
    func reply_fromASisterDomain_isTheUsers(_ inbox: String, _ author: String) throws {
        let result = try Self.reply(
            inbox: inbox, from: author, "I am \(inbox), or \(author), not \(author).example.")
        #expect(result.code == "relay")
        #expect(
            result.text
                == "I am annarelay2@relay.example, or annarelay2@relay.example, not \(author).example.\r\n"
        )
    }

    /// The same name at two of Microsoft's domains can belong to two people.
    @Test func reply_fromAnotherDomainOfMicrosoft_isNotTheUsers() throws {
        #expect(
            try Self.reply(inbox: "jane.k@outlook.com", from: "jane.k@hotmail.com", "x").code
                == "550 5.7.26")
    }

    @Test(arguments: [
        "jane.k@hotmail.com", "jane.k@live.com", "Jane.K@MSN.com", "jane.k@outlook.de",
    ])
    func text_ofAnotherDomainOfMicrosoft_isHidden(_ other: String) throws {
        let result = try Self.reply(
            inbox: "jane.k@outlook.com", from: "jane.k@outlook.com", "Or write to \(other), please."
        )
        #expect(
            result.code == "relay"
                && result.text == "Or write to annarelay2@relay.example, please.\r\n")
    }

    @Test func text_ofOthersAtASisterDomain_stays() throws {
        let text = "Write to martin@pm.me or martha77@home.example."
        let result = try Self.reply(inbox: "martha77@proton.me", from: "martha77@proton.me", text)
        #expect(result.code == "relay" && result.text.contains("martin@pm.me"))
    }
}
