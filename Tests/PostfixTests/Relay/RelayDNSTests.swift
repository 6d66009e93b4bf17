// A name server that fails: the relay answers 4xx, never lets mail pass, and never takes silence
// for an answer.

import DNSTesting
import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayDNSTests {
    @Test(arguments: [
        TestDNSServer.Quirk.responseCode(2), .responseCode(5), .silence, .raw([1, 2, 3]),
        .corruptAnswer([0xC0, 0x0C, 0xFF]),
        .wrongID,
        .truncatesUDPAndClosesTCP,
    ])
    func dns_noUsableAnswer_defersTheForward(_ quirk: TestDNSServer.Quirk) throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options {
                $0.settings.merge([
                    "dns.timeout_ms": "200", "dns.tries": "1", "dns.budget_ms": "2000",
                ]) { $1 }
            })
        defer { fixture.stop() }
        fixture.dns.program("juice.example", quirk)
        let result = try fixture.send(
            from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address))
        #expect(result.data.map { "\($0)" }?.hasPrefix("451 4.4.3") == true, "\(result)")
        #expect(fixture.sink.messages.isEmpty)
    }

    @Test func dns_truncatedAnswer_isAskedForOverTCP() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        fixture.dns.program("juice.example", .truncatesUDP)
        #expect(
            try fixture.send(
                from: "bounce@juice.example", to: [address], RelayFixtures.message(to: address)
            ).data?.code == 250)
    }
}
