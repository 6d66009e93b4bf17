// A conversation in both directions: each side finds in every message the ids that it knows, and no
// secrets of the other side.

import InternetMessage
import MailAuth
import MailTesting
import TestSupport
import Testing

@testable import RelayCore

@Suite(.blocking) struct ThreadTests {
    /// One side's copy of a message in its mailbox.
    private struct Seen {
        let id: String
        let inReplyTo: [String]
        let references: [String]
        let sender: String
        let text: String

        init(_ decision: RelayDecision, _ message: String) throws {
            let parsed = Message.parse(Array(message.utf8))
            try #require(decision.outcome == .relay, "\(decision.outcome)")
            var after = ModifiedMessage(
                header: parsed.header, body: parsed.body, sender: "", recipients: [])
            after.apply(decision.modifications)
            let header = HeaderSection(after.header)
            func ids(_ name: String) -> [String] {
                header.all(name).flatMap { MessageIDs.ids(in: $0.rawValue) }.map {
                    String(decoding: $0, as: UTF8.self)
                }
            }
            id = ids("Message-ID").first ?? ""
            inReplyTo = ids("In-Reply-To")
            references = ids("References")
            let from = try #require(header.first("From"))
            sender = try #require(AddressList.parse(from.rawValue).mailboxes.first).addrSpec
                .wireForm
            text = String(decoding: after.bytes, as: UTF8.self)
        }
    }

    private static func write(id: String, from: String, to: String, answering last: Seen?) -> String
    {
        var text = "From: \(from)\r\nTo: \(to)\r\nSubject: Thread\r\nMessage-ID: <\(id)>\r\n"
        if let last {
            text += "In-Reply-To: <\(last.id)>\r\n"
            text +=
                "References: \((last.references + [last.id]).map { "<\($0)>" }.joined(separator: "\r\n "))\r\n"
        }
        return text + "\r\nText\r\n"
    }

    /// Ids of the team's own server, of a mail service with its own ids, and ids that are too long
    /// to be hidden reversibly.
    @Test(arguments: ["app.example", "esp.example"], [10, 160])
    func thread_tenMessages_keepsItsReferences(teamsIDs: String, length: Int) throws {
        let forward = Fixture(evidence: AuthenticationEvidence.signed("app.example"))
        let reply = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        var teamKnows: Set<String> = []
        var userKnows: Set<String> = []
        var atTeam: Seen?
        for number in 0..<5 {
            // The team writes, or answers.
            let teamID = "t\(number)@\(teamsIDs)"
            let outgoing = Self.write(
                id: teamID, from: "billing@app.example", to: "annarelay2@relay.example",
                answering: atTeam)
            teamKnows.insert(teamID)
            let atUser = try Seen(
                forward.play(
                    from: "b@app.example", to: ["annarelay2@relay.example"], message: outgoing
                ).decision, outgoing)
            #expect(atUser.id == teamID)
            userKnows.insert(atUser.id)
            if length <= MessageIDs.maximumReversibleLength {
                #expect(userKnows.isSuperset(of: atUser.inReplyTo))
                let isWitness = { (id: String) in
                    forward.engine.ids.isWitness(
                        Array(id.utf8), isRelayDomain: { $0 == "relay.example" })
                }
                let known = atUser.references.filter { !isWitness($0) }
                #expect(
                    known.count == number * 2 && userKnows.isSuperset(of: known),
                    "message \(number)")
            }

            // The user answers.
            let userID = String(repeating: "u", count: length) + "\(number)@mail.inbox.example"
            userKnows.insert(userID)
            let answer = Self.write(
                id: userID, from: "anna@inbox.example", to: atUser.sender, answering: atUser)
            let seen = try Seen(
                reply.play(from: "anna@inbox.example", to: [atUser.sender], message: answer)
                    .decision, answer)
            #expect(!seen.text.contains("inbox.example"))
            teamKnows.insert(seen.id)
            #expect(seen.inReplyTo == [teamID])
            #expect(seen.references.count == number * 2 + 1)
            #expect(
                teamKnows.isSuperset(of: seen.references),
                "answer \(number): \(Set(seen.references).subtracting(teamKnows))")
            atTeam = seen
        }
    }

    @Test func thread_hiddenIDOfAnotherUser_isNotRevealed() throws {
        let reply = Fixture(evidence: AuthenticationEvidence.signed("inbox.example"))
        let secret = "bobs-secret@mail.inbox.example"
        func reverse(_ account: RelayAccount) -> String {
            reply.engine.tokens.reverse(
                account: account.number,
                correspondent: AddrSpec(localPart: "billing", domain: "app.example")
            ).localPart
                + "@relay.example"
        }
        let mail = Self.write(
            id: secret, from: "bob@inbox.example", to: reverse(Fixture.bob), answering: nil)
        let hidden = try Seen(
            reply.play(from: "bob@inbox.example", to: [reverse(Fixture.bob)], message: mail)
                .decision, mail
        ).id
        // To anna, of the same team and of another: her provider and program see bob's id only as
        // the team does.
        for (account, team) in [
            (Fixture.anna, "app.example"), (Fixture.annaElsewhere, "shop.example"),
        ] {
            let forward = Fixture(evidence: AuthenticationEvidence.signed(team))
            let text =
                "From: x@\(team)\r\nTo: \(account.relayAddress.wireForm)\r\nMessage-ID: <t@\(team)>\r\nIn-Reply-To: <\(hidden)>\r\nReferences: <\(hidden)>\r\n\r\nx\r\n"
            let seen = try Seen(
                forward.play(from: "x@\(team)", to: [account.relayAddress.wireForm], message: text)
                    .decision, text)
            #expect(seen.inReplyTo == [hidden] && seen.references == [hidden])
            #expect(!seen.text.contains("bobs-secret"))
            // Her answer does not show the team whose id it was: it returns under an id of hers.
            let answer = Self.write(
                id: "a@mail.inbox.example", from: "anna@inbox.example", to: seen.sender,
                answering: seen)
            let back = try Seen(
                reply.play(from: "anna@inbox.example", to: [seen.sender], message: answer).decision,
                answer)
            #expect(!back.text.contains("bobs-secret") && !back.references.contains(secret))
        }
    }
}
