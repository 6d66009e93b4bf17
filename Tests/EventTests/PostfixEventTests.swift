// Through a real Postfix: the reply to mail after each change of an account, and the team's events.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(
    .blocking,
    .enabled(if: PrivatePostfix.obstacle == nil, "skipped: needs root and an installed Postfix"))
struct PostfixEventTests {
    /// A relay with team juice, user anna, a working endpoint, and a message that arrived.
    private static func world() async throws -> (
        fixture: RelayFixture, receiver: TestReceiver, address: String
    ) {
        let receiver = try await TestReceiver()
        var options = RelayFixture.Options()
        options.zone = """
            {"juice.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}, "home.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]},
             "milk.example": {"TXT": ["v=spf1 ip4:127.0.0.0/8 -all"]}, "hooks.example": {"A": ["127.0.0.1"]}}
            """
        options.settings = [
            "http.public_url": "https://relay.example",
            "events.trusted_certificates": TestReceiver.certificate("authority.pem"),
        ]
        let fixture = try RelayFixture(options)
        try fixture.addTeam("juice", name: "The Juice Company", source: "juice.example")
        try fixture.run(["app", "add", "juice", "com.juice"])
        try fixture.run([
            "endpoint", "set", "juice", "https://hooks.example:\(receiver.port)/events",
            "--allow-private",
        ])
        try fixture.addUser("anna", inboxes: ["anna@home.example"])
        let address = try fixture.address("juice", "anna")
        #expect(try send(fixture, to: address) == "250")
        _ = try fixture.arrival(for: "anna@home.example")
        return (fixture, receiver, address)
    }

    /// Code and enhanced code of the reply to a message, at any point of the transaction.
    private static func send(
        _ fixture: RelayFixture, from domain: String = "juice.example", to address: String
    ) throws -> String {
        let text =
            "From: news@\(domain)\nTo: \(address)\nSubject: Test\nMessage-ID: <\(UUID().uuidString)@\(domain)>\n\nHello\n"
        let result = try fixture.send(from: "bounce@\(domain)", to: [address], text)
        let reply = result.data ?? result.recipients.first
        let words = "\(reply.map { "\($0)" } ?? "")".split(separator: " ")
        return words.first == "250" ? "250" : words.prefix(2).joined(separator: " ")
    }

    /// Waits until this number of events arrived; returns their types.
    private static func told(_ receiver: TestReceiver, _ count: Int) async throws -> [String] {
        let start = ContinuousClock.now
        while receiver.taken.count < count, ContinuousClock.now - start < .seconds(180) {
            try await Task.sleep(for: .milliseconds(5))
        }
        return receiver.taken.map(\.type)
    }

    @Test(.timeLimit(.minutes(15))) func forwarding_switchedOff_refusesMailAndNotifiesTeam()
        async throws
    {
        let (fixture, receiver, address) = try await Self.world()
        let start = ContinuousClock.now
        try fixture.run(["address", "off", address])
        let committed = ContinuousClock.now
        #expect(try Self.send(fixture, to: address) == "550 5.2.1")
        #expect(try await Self.told(receiver, 1) == ["email-disabled"])
        print(
            "from the command's start \(start.duration(to: .now)), from its end \(committed.duration(to: .now)) until event and refusal"
        )
        #expect(receiver.taken.first?.email == address)
        // A sender that is not proved to be the team learns nothing.
        #expect(try Self.send(fixture, from: "milk.example", to: address).hasPrefix("550 5.7"))
        try fixture.run(["address", "on", address])
        #expect(try Self.send(fixture, to: address) == "250")
        #expect(try await Self.told(receiver, 2) == ["email-disabled", "email-enabled"])
        fixture.stop()
        await receiver.stop()
    }

    @Test(.timeLimit(.minutes(15))) func account_revokedOrDeleted_refusesMailAndNotifiesTeam()
        async throws
    {
        let (fixture, receiver, address) = try await Self.world()
        try fixture.run(["account", "revoke", "juice", "anna"])
        #expect(try Self.send(fixture, to: address) == "550 5.1.6")
        // After a return the address is the same.
        #expect(try fixture.address("juice", "anna") == address)
        #expect(try Self.send(fixture, to: address) == "250")
        try fixture.run(["account", "delete", "juice", "anna", "--yes"])
        #expect(try Self.send(fixture, to: address) == "550 5.1.1")
        #expect(try fixture.address("juice", "anna") != address)
        #expect(try Self.send(fixture, to: address) == "550 5.1.1")
        #expect(try await Self.told(receiver, 2) == ["consent-revoked", "account-delete"])
        fixture.stop()
        await receiver.stop()
    }

    @Test(.timeLimit(.minutes(15))) func transfer_finished_oldAddressTakesNewTeamsMail()
        async throws
    {
        let (fixture, receiver, address) = try await Self.world()
        try fixture.addTeam("milk", name: "Milk", source: "milk.example")
        #expect(try Self.send(fixture, from: "milk.example", to: address) == "550 5.1.1")
        try fixture.run(["transfer", "start", "juice", "com.juice", "milk"])
        #expect(try Self.send(fixture, to: address) == "250")
        try fixture.run(["transfer", "finish", "com.juice", "--yes"])
        #expect(try Self.send(fixture, from: "milk.example", to: address) == "250")
        #expect(try Self.send(fixture, to: address) == "550 5.1.6")
        let new = try fixture.address("milk", "anna")
        #expect(new != address)
        #expect(try Self.send(fixture, from: "milk.example", to: new) == "250")
        // The user's reply has an address of the new team.
        let arrived = try fixture.arrival(for: "anna@home.example", number: 3)
        let from = arrived.fields.first { $0.lowercased().hasPrefix("from:") } ?? ""
        let reverse = String(from.split(separator: "<").last?.split(separator: ">").first ?? "")
        let reply =
            "From: anna@home.example\nTo: \(reverse)\nSubject: Re: Test\nMessage-ID: <r@home.example>\n\nHello\n"
        let result = try fixture.send(from: "anna@home.example", to: [reverse], reply)
        #expect(result.data?.code == 250, "\(result)")
        let answer = try fixture.arrival(for: "news@milk.example")
        #expect(answer.fields.contains { $0.lowercased().hasPrefix("from:") && $0.contains(new) })
        #expect(!answer.text.contains(address), "the old address is none of the new account's")
        fixture.stop()
        await receiver.stop()
    }
}
