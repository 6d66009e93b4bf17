// Postfix's log gives the results of forwards, and nothing else.

import Foundation
import InternetMessage
import MailTesting
import Testing

@testable import RelayCore

@Suite struct DeliveryLogTests {
    private static let file =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Vectors/delivery/postfix.log")

    private let fixture = Fixture(evidence: .init())

    private func lines() throws -> [ArraySlice<UInt8>] {
        let (mint, account) = (fixture.engine.tokens, Fixture.anna.number)
        let day = UInt64(Fixture.now / 86_400) + 1
        let sender = AddrSpec(localPart: "bounces", domain: "juice.example")
        let paths = [
            "{{forward}}": mint.forwardReturnPath(
                account: account, sender: sender, nonce: 1, expiryDay: day),
            "{{silent}}": mint.forwardReturnPath(
                account: account, sender: nil, nonce: 2, expiryDay: day),
            "{{reply}}": mint.replyReturnPath(
                account: account, recipients: [sender], nonce: 3, expiryDay: day),
        ]
        var text = try String(contentsOf: Self.file, encoding: .utf8)
        for (name, token) in paths {
            text = text.replacing(name, with: "\(token.localPart)@relay.example")
        }
        return Array(text.utf8).split(separator: 0x0A)
    }

    private var reader: DeliveryLogReader {
        DeliveryLogReader(tokens: fixture.engine.tokens, relayDomains: ["relay.example"])
    }

    @Test func log_ofARelay_givesResultsOfForwards() throws {
        var reader = reader
        let found = try lines().compactMap { reader.read($0) }
        #expect(
            found.map { "\($0.provider) \($0.outcome)" } == [
                "google delivered", "yahoo reputation", "yahoo delivered", "other delivered",
                "google reputation",
            ])
        #expect(found.allSatisfy { $0.account == Fixture.anna.number })
    }

    @Test func log_readAgainFromTheMiddle_countsOnlyTheRest() throws {
        var reader = reader
        let all = try lines()
        // The second reading begins before the last attempt of the second message.
        let place = try #require(
            all.firstIndex { $0.firstRange(of: Array("dirdel".utf8)) != nil })
        for line in all[..<place] { #expect(reader.read(line, isCounted: false) == nil) }
        let found = all[place...].compactMap { reader.read($0) }
        #expect(
            found.map { "\($0.provider) \($0.outcome)" } == [
                "yahoo delivered", "other delivered", "google reputation",
            ])
    }

    @Test func log_brokenLines_giveNothing() throws {
        var reader = reader
        for line in try lines() {
            for end in stride(from: 0, to: line.count, by: 3) {
                _ = reader.read(line.prefix(end))
                _ = reader.read(line.dropFirst(end))
            }
        }
        for text in [
            "", "]: ", "/[]: ", "a/smtp[1]: 4XAAAA1: to=<", "a/smtp[1]: 4XAAAA1: to=<\"\\",
        ] {
            #expect(reader.read(Array(text.utf8)[...]) == nil)
        }
    }

    @Test func log_moreMessagesThanFollowed_forgetsTheOldest() {
        var reader = reader
        let token = fixture.engine.tokens.forwardReturnPath(
            account: Fixture.anna.number, sender: nil, nonce: 1, expiryDay: 30_000)
        func active(_ number: Int) -> String {
            "m/qmgr[1]: A\(100_000_000 + number): from=<\(token.localPart)@relay.example>, size=1, nrcpt=1 (queue active)"
        }
        func sent(_ number: Int) -> String {
            "m/smtp[1]: A\(100_000_000 + number): to=<a@gmail.com>, relay=mx.google.com[192.0.2.1]:25, dsn=2.0.0, status=sent (250 ok)"
        }
        let count = DeliveryLogReader.capacity + 2
        for number in 0..<count { _ = reader.read(Array(active(number).utf8)[...]) }
        #expect(reader.read(Array(sent(0).utf8)[...]) == nil)
        #expect(reader.read(Array(sent(count - 1).utf8)[...])?.outcome == .delivered)
    }
}
