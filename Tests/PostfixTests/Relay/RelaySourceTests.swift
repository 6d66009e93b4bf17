// A domain that its team added: no mail from it passes before the DNS proves it, nor once it was given up.

import Foundation
import MailAuth
import PostfixHarness
import RelayHarness
import Testing

@Suite(needsPostfix) struct RelaySourceTests {
    @Test func mailFromADomainPassesOnceItIsProved() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let issued = try fixture.run(["key", "issue", "juice", "--scope", "sources:read,sources:write"])
        let key = String(try #require(issued.firstMatch(of: /pk_[a-z0-9_]+/)).output)
        func ask(_ path: String) throws -> (status: Int, body: String) {
            try HTTPClient.post(
                port: fixture.httpPort(), path: path, bearer: key, body: #"{"source":"shop.example"}"#, timeout: 60)
        }
        func send() throws -> String {
            let result = try fixture.send(
                from: "news@shop.example", to: [address], RelayFixtures.message(from: "news@shop.example", to: address))
            return result.data.map { "\($0)" } ?? "\(result)"
        }
        #expect(try send().hasPrefix("550 5.7.1"))
        let made = try ask("/v1/sources")
        #expect(made.status == 201, "\(made.body)")
        let object = try JSONSerialization.jsonObject(with: Data(made.body.utf8)) as? [String: Any]
        let challenge = try #require(object?["challenge"] as? [String: String])
        #expect(try ask("/v1/sources/verify").body.contains(#""state":"pending""#))
        // SPF proves the domain, and it is the team's own claim: it is refused all the same.
        #expect(try send().hasPrefix("550 5.7.1"))
        let (name, token) = (try #require(challenge["name"]), try #require(challenge["value"]))
        fixture.dns.set(name, ZoneResolver.Node(records: [.txt: [.txt(Array(token.utf8))]]))
        // Without what it remembers of the DNS.
        try fixture.end()
        try fixture.serve()
        let verified = try ask("/v1/sources/verify")
        #expect(verified.body.contains(#""state":"active""#), "\(verified.body)")
        #expect(try send().hasPrefix("250"))
        _ = try fixture.arrival(for: "anna@home.example")
        #expect(try ask("/v1/sources/remove").status == 204)
        #expect(try send().hasPrefix("550 5.7.1"))
    }
}

extension RelayFixture {
    fileprivate func httpPort() throws -> UInt16 {
        let line = try process.waitForLine(containing: "listening for HTTP")
        return try #require(line.firstMatch(of: /address=[^ ]*:([0-9]+)/).flatMap { UInt16($0.output.1) })
    }
}
