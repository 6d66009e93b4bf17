// A team that may send from one address at a provider: the domain is not the team's, as users have
// their inboxes there.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct OutwardIDsTests {
    private static let author = AddrSpec(localPart: "team.shop", domain: "inbox.example")

    /// anna's account with a team whose only source is an address at the provider of anna's inbox.
    private static let account = RelayAccount(
        number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress, isForwardingOn: true,
        hasLiveGrant: true,
        inbox: Fixture.anna.inbox, inboxes: Fixture.anna.inboxes, sharedName: nil,
        sources: [RegisteredSource(scope: .address(author))])

    private static func fixture() -> Fixture {
        let settings = RelaySettings(
            relayDomains: ["relay.example"], authservID: "mx.relay.example")
        return Fixture(
            accounts: [account], evidence: AuthenticationEvidence.signed("inbox.example"),
            settings: settings)
    }

    /// An id that the user's program makes with the inbox's domain is hidden. An id of the team's
    /// own at that domain returns unchanged, by its witness.
    @Test func messageID_ofUserAtProvider_isHidden() throws {
        let fixture = Self.fixture()
        let teams = "t1@inbox.example"
        let message =
            "From: \(Self.author.wireForm)\r\nTo: annarelay2@relay.example\r\nSubject: Hello\r\nMessage-ID: <\(teams)>\r\n\r\nText\r\n"
        let forward = fixture.play(
            from: Self.author.wireForm, to: ["annarelay2@relay.example"], message: message)
        try #require(forward.decision.outcome == .relay, "\(forward)")
        func applied(_ decision: RelayDecision, _ text: String) -> HeaderSection {
            let parsed = Message.parse(Array(text.utf8))
            var after = ModifiedMessage(
                header: parsed.header, body: parsed.body, sender: "", recipients: [])
            after.apply(decision.modifications)
            return HeaderSection(after.header)
        }
        let received = applied(forward.decision, message)
        let references = received.all("References").flatMap { MessageIDs.ids(in: $0.rawValue) }
            .map { "<\(String(decoding: $0, as: UTF8.self))>" }
        #expect(!references.isEmpty)
        let from = try #require(received.first("From"))
        let reverse = try #require(AddressList.parse(from.rawValue).mailboxes.first).addrSpec
            .wireForm
        let text =
            "From: anna@inbox.example\r\nTo: \(reverse)\r\nSubject: Re: Hello\r\nMessage-ID: <u7@inbox.example>\r\n"
            + "In-Reply-To: <\(teams)>\r\nReferences: \((references + ["<\(teams)>"]).joined(separator: "\r\n "))\r\n\r\nText\r\n"
        let answer = fixture.play(from: "anna@inbox.example", to: [reverse], message: text)
        try #require(answer.decision.outcome == .relay, "\(answer)")
        let sent = applied(answer.decision, text)
        let id = try #require(sent.first("Message-ID"))
        #expect(!String(decoding: id.rawValue, as: UTF8.self).contains("inbox.example"))
        let thread = sent.all("In-Reply-To").map { String(decoding: $0.rawValue, as: UTF8.self) }
            .joined()
        #expect(thread.contains("<\(teams)>"), "\(thread)")
    }
}
