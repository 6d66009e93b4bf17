// Names and rewriters for the tests of neutral text.

import InternetMessage
import MailAuth
import MailTesting

@testable import RelayCore

enum Neutral {
    static let engine = Fixture(evidence: .init()).engine

    /// The names of one of anna's replies to a team with this domain.
    static func names(
        team: String = "app.example", inbox: String = "jane.k77x@home.example"
    ) -> ReplyNames {
        let own = UserInbox(address: InboxAddress(AddrSpec(envelope: inbox)!), isVerified: true)
        return ReplyNames(
            engine: engine,
            account: RelayAccount(
                number: Fixture.anna.number, relayAddress: Fixture.anna.relayAddress,
                isForwardingOn: true, hasLiveGrant: true,
                inbox: own,
                inboxes: [own], sharedName: nil, sources: [RegisteredSource(scope: .domain(team))]),
            message: HeaderSection(), envelopeSender: "",
            stored: StoredAddresses(directory: engine.directory, tokens: engine.tokens))
    }

    static func reverse(
        _ account: RelayAccount = Fixture.anna, of address: String = "billing@app.example"
    ) -> String {
        engine.tokens.reverse(account: account.number, correspondent: AddrSpec(envelope: address)!)
            .localPart
    }

    /// The team's form of a text.
    static func text(
        _ text: String, syntax: TextSyntax = .plain, as standing: Standing = .quoted,
        team: String = "app.example"
    ) -> String {
        let octets = Array(text.utf8)
        let names = names(team: team)
        return String(
            decoding: Neutraliser(names: names).rewrite(octets, syntax: syntax, as: standing)
                ?? octets, as: UTF8.self)
    }
}
