// Servers without SMTPUTF8 and 8BITMIME: mail that came with both arrives there.

import Foundation
import PostfixHarness
import RelayHarness
import Testing

@Suite(.blocking, needsPostfix) struct RelayPlainServerTests {
    private func message(from sender: String, to address: String) -> [UInt8] {
        let text = """
            From: Café <\(sender)>
            To: Zoë <\(address)>
            Subject: Ihre Bestellung für Jürgen
            Content-Type: text/plain; charset=utf-8
            Content-Transfer-Encoding: 8bit

            Grüße

            """
        return Array(text.replacingOccurrences(of: "\n", with: "\r\n").utf8)
    }

    private func send(_ fixture: RelayFixture, from sender: String, to address: String) throws {
        let result = try SMTPClient.send(
            port: fixture.postfix.port, from: "<\(sender)>", to: ["<\(address)>"],
            mailArguments: "SMTPUTF8 BODY=8BITMIME",
            message: message(from: sender, to: address))
        #expect(result.data?.code == 250, "\(result)")
    }

    @Test func mailWithSMTPUTF8_nextServerHasNone_arrivesInASCII() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        var behaviour = SinkBehaviour()
        behaviour.offers8BITMIME = false
        fixture.sink.set(behaviour)
        try send(fixture, from: "news@juice.example", to: address)
        let forward = try fixture.arrival(for: "anna@home.example")
        try send(fixture, from: "anna@home.example", to: forward.address("From"))
        let reply = try fixture.arrival(for: "news@juice.example")
        for arrived in [forward, reply] {
            #expect(
                arrived.mailArguments.allSatisfy { !$0.uppercased().contains("UTF8") },
                "\(arrived.mailArguments)")
            #expect(arrived.header.allSatisfy { $0 < 0x80 }, "\(arrived.text)")
            #expect(arrived.value("Subject")?.contains("=?utf-8?") == true)
            #expect(arrived.text.contains("Grüße"))
            for name in ["Date", "Message-ID"] { #expect(arrived.value(name) != nil, "\(name)") }
        }
    }
}
