// One installation with two teams and two users, as most tests need it.

import InternetMessage
import MailAuth
import RelayCore

package struct Fixture {
    package static let now: Int64 = 1_763_700_000
    package static let keys = TokenKeys(
        keys: [UInt8(ascii: "a"): Array(repeating: 7, count: 32)], active: UInt8(ascii: "a"))!

    /// anna's account with the team of app.example.
    package static let anna = account(
        1, "annarelay2", team: "app.example",
        inboxes: ["anna@inbox.example", "anna.second@home.example"])
    /// bob's account with the same team.
    package static let bob = account(
        2, "bobrelay22", team: "app.example", inboxes: ["bob@inbox.example"])
    /// anna's account with another team.
    package static let annaElsewhere = account(
        3, "annaother2", team: "shop.example",
        inboxes: ["anna@inbox.example", "anna.second@home.example"])

    package static func account(
        _ number: UInt64, _ local: String, team: String, inboxes: [String],
        isForwardingOn: Bool = true, isActive: Bool = true,
        sharedName: String? = nil
    ) -> RelayAccount {
        let inboxes = inboxes.compactMap { AddrSpec(envelope: $0) }.map {
            UserInbox(address: InboxAddress($0), isVerified: true)
        }
        return RelayAccount(
            number: AccountNumber(number)!,
            relayAddress: AddrSpec(localPart: local, domain: "relay.example"),
            isForwardingOn: isForwardingOn,
            hasLiveGrant: isActive, inbox: inboxes.first, inboxes: inboxes, sharedName: sharedName,
            sources: [RegisteredSource(scope: .domain(team))], team: team)
    }

    package let directory: MemoryDirectory
    package let engine: RelayEngine

    package init(
        accounts: [RelayAccount] = [Fixture.anna, Fixture.bob, Fixture.annaElsewhere],
        evidence: AuthenticationEvidence,
        settings: RelaySettings = RelaySettings(
            relayDomains: ["relay.example", "second.example"], authservID: "mx.relay.example",
            operatorAddress: AddrSpec(localPart: "ops", domain: "operator.example")),
        replyMemory: Int = 1 << 28
    ) {
        directory = MemoryDirectory(accounts)
        engine = RelayEngine(
            settings: settings, keys: Self.keys, directory: directory,
            authenticator: TestAuthenticator(evidence: evidence),
            replyMemory: ReplyMemory(limit: replyMemory),
            randomness: { Array(repeating: 5, count: $0) })!
    }

    /// The same directory with another engine.
    package init(directory: MemoryDirectory, engine: RelayEngine) {
        self.directory = directory
        self.engine = engine
    }

    package struct Response {
        package var refusals: [String: Refusal] = [:]
        package var decision: RelayDecision
    }

    /// Plays a whole transaction.
    package func play(
        from sender: String, to recipients: [String], message: String, now: Int64 = Fixture.now,
        client: String = "192.0.2.1"
    ) -> Response {
        play(from: sender, to: recipients, octets: Array(message.utf8), now: now, client: client)
    }

    /// The same for a message of any octets.
    package func play(
        from sender: String, to recipients: [String], octets: [UInt8], now: Int64 = Fixture.now,
        client: String = "192.0.2.1"
    ) -> Response {
        let transaction = RelayTransaction(
            engine: engine,
            client: SMTPClientIdentity(address: client, helo: "client.example", mailFrom: sender),
            now: now)
        var refusals: [String: Refusal] = [:]
        for recipient in recipients {
            do { try transaction.addRecipient("<\(recipient)>") } catch {
                refusals[recipient] = error
            }
        }
        let parsed = Message.parse(octets)
        for field in parsed.header.fields { transaction.addHeader(field) }
        do throws(Refusal) {
            try transaction.endHeader()
            try transaction.addBody(parsed.body)
        } catch {
            return Response(refusals: refusals, decision: .refuse(error))
        }
        return Response(refusals: refusals, decision: transaction.finish())
    }
}

extension TokenMint {
    /// A return path as the relay makes it for mail of app.example to anna.
    package func forwardReturnPath(
        account: AccountNumber, sender: AddrSpec?, nonce: UInt64, expiryDay: UInt64,
        outgoing: OutgoingClass? = nil
    ) -> MintedToken {
        forwardReturnPath(
            account: account, sender: sender, context: Fixture.anna.senderContext, nonce: nonce,
            expiryDay: expiryDay, outgoing: outgoing)
    }
}
