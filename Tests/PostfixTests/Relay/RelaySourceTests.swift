// Domains and addresses that a team added: no mail from them passes before they are proved, or
// after they were removed.

import Foundation
import MailAuth
import PostfixHarness
import PostgresHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelaySourceTests {
    @Test func source_domain_isAcceptedOnceProved() throws {
        let (fixture, address) = try RelayFixtures.anna()
        defer { fixture.stop() }
        let key = try fixture.sourceKey()
        func ask(_ path: String) throws -> (status: Int, body: String) {
            try HTTPClient.post(
                port: fixture.httpPort(), path: path, bearer: key,
                body: #"{"source":"shop.example"}"#, timeout: 60)
        }
        func send() throws -> String {
            let result = try fixture.send(
                from: "news@shop.example", to: [address],
                RelayFixtures.message(from: "news@shop.example", to: address))
            return result.data.map { "\($0)" } ?? "\(result)"
        }
        #expect(try send().hasPrefix("550 5.7.1"))
        let made = try ask("/v1/sources")
        #expect(made.status == 201, "\(made.body)")
        let object = try JSONSerialization.jsonObject(with: Data(made.body.utf8)) as? [String: Any]
        let challenge = try #require(object?["challenge"] as? [String: String])
        #expect(try ask("/v1/sources/verify").body.contains(#""state":"pending""#))
        // SPF proves the domain, and it is the team's own claim, but it is still refused.
        #expect(try send().hasPrefix("550 5.7.1"))
        let (name, token) = (try #require(challenge["name"]), try #require(challenge["value"]))
        fixture.dns.set(name, ZoneResolver.Node(records: [.txt: [.txt(Array(token.utf8))]]))
        let verified = try ask("/v1/sources/verify")
        #expect(verified.body.contains(#""state":"active""#), "\(verified.body)")
        #expect(try send().hasPrefix("250"))
        _ = try fixture.arrival(for: "anna@home.example")
        #expect(try ask("/v1/sources/remove").status == 204)
        #expect(try send().hasPrefix("550 5.7.1"))
    }

    /// The address gets its code in real mail, and is valid after the team has entered it.
    @Test func source_address_isAcceptedOnceCodeIsGiven() throws {
        let (fixture, address) = try RelayFixtures.anna(
            RelayFixtures.options { $0.trustsLoopback = true })
        defer { fixture.stop() }
        let key = try fixture.sourceKey()
        func send(_ author: String = "team@shop.example") throws -> String {
            let result = try fixture.send(
                from: author, to: [address], RelayFixtures.message(from: author, to: address))
            return result.data.map { "\($0)" } ?? "\(result)"
        }
        #expect(try send().hasPrefix("550 5.7.1"))
        let made = try fixture.source(key, "", #"{"source":"team@shop.example"}"#)
        #expect(made.status == 201 && made.body.contains(#""state":"pending""#), "\(made.body)")
        let code = try fixture.mailedCode(to: "team@shop.example")
        #expect(
            try fixture.run(["source", "list", "juice"]).contains(
                "the code that was mailed to it; tries left: 5"))
        #expect(try send().hasPrefix("550 5.7.1"))
        let wrong = code == "000000" ? "111111" : "000000"
        for left in [4, 3, 2, 1] {
            let answer = try fixture.source(
                key, "/verify", #"{"source":"team@shop.example","code":"\#(wrong)"}"#)
            #expect(
                answer.status == 422 && answer.body.contains("tries left: \(left)"),
                "\(answer.body)")
        }
        #expect(
            try fixture.source(
                key, "/verify", #"{"source":"team@shop.example","code":"\#(wrong)"}"#
            ).status == 422)
        // After six wrong codes the right one is refused, and another one is mailed.
        #expect(
            try fixture.source(
                key, "/verify", #"{"source":"team@shop.example","code":"\#(wrong)"}"#
            ).status == 409)
        #expect(
            try fixture.source(key, "/verify", #"{"source":"team@shop.example","code":"\#(code)"}"#)
                .status == 409)
        #expect(try send().hasPrefix("550 5.7.1"))
        #expect(try fixture.source(key, "/code", #"{"source":"team@shop.example"}"#).status == 202)
        let next = try fixture.mailedCode(to: "team@shop.example", number: 2)
        let proved = try fixture.source(
            key, "/verify", #"{"source":"team@shop.example","code":"\#(next)"}"#)
        #expect(proved.body.contains(#""state":"active""#), "\(proved.body)")
        #expect(try send().hasPrefix("250"))
        #expect(try fixture.arrival(for: "anna@home.example").value("Subject") == "Test")
        // Only this address, and no other of its domain.
        #expect(try send("other@shop.example").hasPrefix("550 5.7.1"))
        #expect(
            try fixture.source(key, "/remove", #"{"source":"team@shop.example"}"#).status == 204)
        #expect(try send().hasPrefix("550 5.7.1"))
        #expect(
            try !fixture.process.output.contains("team@shop.example"), "an address is in the log")
    }

    /// A source added on one host is proved on the other. Only one of two hosts looks for records,
    /// as the audit shows.
    @Test(.enabled(if: PostgresServer.installed != nil, "PostgreSQL is not installed"))
    func source_addedOnOneHost_isProvedOnTheOther() throws {
        let server = try #require(PostgresServer.shared)
        let url = try server.url(schema: "s\(UUID().uuidString.prefix(8).lowercased())")
        var options = RelayFixtures.options { options in
            options.database = url
            options.trustsLoopback = true
            options.settings = ["hostname": "mx1.relay.example"]
        }
        let (first, address) = try RelayFixtures.anna(options)
        defer { first.stop() }
        options.joins = first
        options.settings["hostname"] = "mx2.relay.example"
        // Each host finds the same records.
        options.settings["dns.servers"] = "\(first.dns.address)"
        let second = try RelayFixture(options)
        defer { second.stop() }
        let key = try first.sourceKey()
        func send(_ fixture: RelayFixture, _ author: String) throws -> String {
            let result = try fixture.send(
                from: author, to: [address], RelayFixtures.message(from: author, to: address))
            return result.data.map { "\($0)" } ?? "\(result)"
        }
        #expect(try first.source(key, "", #"{"source":"team@shop.example"}"#).status == 201)
        let code = try first.mailedCode(to: "team@shop.example")
        for fixture in [first, second] {
            #expect(try send(fixture, "team@shop.example").hasPrefix("550 5.7.1"))
        }
        let proved = try second.source(
            key, "/verify", #"{"source":"team@shop.example","code":"\#(code)"}"#)
        #expect(proved.body.contains(#""state":"active""#), "\(proved.body)")
        for fixture in [first, second] {
            #expect(try send(fixture, "team@shop.example").hasPrefix("250"))
        }

        // A domain, for which the services look up records by themselves.
        let made = try second.source(key, "", #"{"source":"app.example"}"#)
        let object = try JSONSerialization.jsonObject(with: Data(made.body.utf8)) as? [String: Any]
        let challenge = try #require(object?["challenge"] as? [String: String])
        #expect(try send(first, "news@app.example").hasPrefix("550 5.7.1"))
        first.dns.set(
            try #require(challenge["name"]),
            ZoneResolver.Node(records: [.txt: [.txt(Array(try #require(challenge["value"]).utf8))]])
        )
        try wait("one of the hosts sees the record", atMost: 2 * standardTimeout) {
            try first.run(["source", "list", "juice"]).contains(/app\.example\t.*\tactive/)
        }
        for fixture in [first, second] {
            #expect(try send(fixture, "news@app.example").hasPrefix("250"))
        }
        let audit = try first.run(["audit", "--json"])
        #expect(audit.matches(of: /"source\.prove"/).count == 2, "\(audit)")
        let saw = try [first, second].filter {
            try $0.process.output.contains("the state of a source changed")
        }
        #expect(saw.count == 1)
    }
}

extension RelayFixture {
    /// A key that adds sources of team juice.
    fileprivate func sourceKey() throws -> String {
        let issued = try run(["api-key", "issue", "juice", "--scope", "sources:read,sources:write"])
        return String(try #require(issued.firstMatch(of: /pk_[a-z0-9_]+/)).output)
    }

    fileprivate func source(
        _ key: String, _ path: String, _ body: String
    ) throws -> (status: Int, body: String) {
        try HTTPClient.post(
            port: httpPort(), path: "/v1/sources" + path, bearer: key, body: body, timeout: 60)
    }

    /// The code in the `number`th message to an address.
    fileprivate func mailedCode(to address: String, number: Int = 1) throws -> String {
        let mail = try arrival(for: address, number: number)
        #expect(mail.mailFrom == "<>" && mail.value("DKIM-Signature") != nil)
        let found = try #require(
            mail.value("Subject")?.firstMatch(
                of: /^([0-9]{3}) ([0-9]{3}) is the code for The Juice Company at/))
        return String(found.output.1 + found.output.2)
    }
}
