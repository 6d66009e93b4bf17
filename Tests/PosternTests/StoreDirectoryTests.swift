// The relay's directory on the store.

import Accounts
import Foundation
import InternetMessage
import PosternConfiguration
import Relay
import RelayCore
import TestSupport
import Testing

@Suite(.blocking) struct StoreDirectoryTests {
    private static let day: Int64 = 86_400

    /// An installation with account 1.
    private static func withAnAccount() throws -> (CommandRunner, Installation) {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("user", "add", "u1", "--inbox", "u1@home.example", "--verified")
        try runner.succeed("address", "issue", "juice", "u1")
        return (runner, try Installation.open(flag: runner.configuration, environment: [:], now: 0))
    }

    /// A stored address is kept for a year after the last mail that used it: a reply counts, a
    /// read-only lookup does not.
    @Test func storedAddress_repliedTo_isKeptAnotherYear() throws {
        let (runner, installation) = try Self.withAnAccount()
        defer { withExtendedLifetime(runner) { try? installation.close() } }
        let store = installation.store
        let account = try #require(AccountNumber(1))
        let mint = TokenMint(keys: try #require(TokenKeys(installation.keys.token)))
        let address = AddrSpec(localPart: "Upper.Case", domain: "app.example")
        let minted = mint.reverse(account: account, correspondent: address)
        #expect(minted.addressToStore == address)
        guard case .token(let token) = mint.read(minted.localPart) else {
            return #expect(Bool(false), "its own token")
        }
        #expect(
            try store.tokens.store(
                [#require(StoredAddress(minted))], account: account,
                day: 0, newPerDay: 10, now: 0))
        func expiry() throws -> Int64? {
            try store.tokens.find(token.localPart, purpose: .reverse, now: 1)?.expiresAt
        }
        #expect(try expiry() == 366 * Self.day)

        let looking = StoreDirectory(store: store, counters: nil) { 300 * Self.day }
        #expect(try looking.storedAddress(token) == address)
        #expect(try expiry() == 366 * Self.day)
        let relaying = StoreDirectory(store: store, counters: CounterBuffer(store.counters)) {
            300 * Self.day
        }
        #expect(try relaying.storedAddress(token) == address)
        #expect(try expiry() == 666 * Self.day)
        // An expired address is not found, and does not come back.
        let late = StoreDirectory(store: store, counters: CounterBuffer(store.counters)) {
            667 * Self.day
        }
        #expect(try late.storedAddress(token) == nil)
        #expect(try expiry() == 666 * Self.day)
    }

    /// A sender is found under the token that all its return paths share. A read-only directory
    /// writes nothing, and finds its own tokens.
    @Test func storedSender_anyReturnPathForIt_isFound() throws {
        let (runner, installation) = try Self.withAnAccount()
        defer { try? installation.close() }
        let store = installation.store
        let account = try #require(AccountNumber(1))
        let mint = TokenMint(keys: try #require(TokenKeys(installation.keys.token)))
        let sender = AddrSpec(localPart: "bounce+of-the-list-of-customers", domain: "app.example")
        func path(_ nonce: UInt64) -> MintedToken {
            mint.forwardReturnPath(
                account: account, sender: sender,
                context: SenderContext(domains: [], relayAddresses: []), nonce: nonce, expiryDay: 20
            )
        }
        func token(_ nonce: UInt64) throws -> AddressToken {
            guard case .token(let token) = mint.read(path(nonce).localPart) else {
                throw DirectoryFailure("its own token")
            }
            return token
        }
        let looking = StoreDirectory(store: store, counters: nil) { 6 * Self.day }
        let relaying = StoreDirectory(store: store, counters: CounterBuffer(store.counters)) {
            6 * Self.day
        }
        let new = try #require(StoredAddress(path(1), expiryDay: 20))
        #expect(try looking.store([new], account: account, day: 6, newPerDay: 0))
        #expect(
            try looking.storedAddress(token(2)) == sender && relaying.storedAddress(token(2)) == nil
        )
        #expect(
            try relaying.store([new], account: account, day: 6, newPerDay: 0),
            "it does not count as an address of the day")
        #expect(try relaying.storedAddress(token(3)) == sender)
        #expect(
            try store.tokens.find(new.token, purpose: .returnPath, now: 1)?.expiresAt == 22
                * Self.day)
        // It is deleted with the user.
        try runner.succeed("user", "remove", "u1", "--yes")
        #expect(try relaying.storedAddress(token(3)) == nil)
    }

    /// `status --dmarc` shows the reports of receivers; a read-only run, as in `postern explain`,
    /// writes nothing.
    @Test func aggregateReport_received_isStoredAndShown() throws {
        let runner = try CommandRunner.initialised()
        #expect(try runner.succeed("status", "--dmarc").contains("No report came"))
        let installation = try Installation.open(
            flag: runner.configuration, environment: [:], now: 0)
        defer { try? installation.close() }
        let now = Int64(Date().timeIntervalSince1970)
        func record(_ address: String, _ count: Int, _ result: String) -> String {
            """
            <record><row><source_ip>\(address)</source_ip><count>\(count)</count><policy_evaluated>\
            <disposition>reject</disposition><dkim>\(result)</dkim><spf>fail</spf></policy_evaluated></row></record>
            """
        }
        let xml = """
            <feedback><report_metadata><report_id>7</report_id><date_range><begin>\(now - 86_400)</begin><end>\(now)</end>\
            </date_range></report_metadata><policy_published><domain>relay.example</domain></policy_published>\
            \(record("192.0.2.1", 40, "pass"))\(record("198.51.100.9", 7, "fail"))</feedback>
            """
        let report = try #require(AggregateReport(xml: Array(xml.utf8), now: now))
        let looking = StoreDirectory(store: installation.store, counters: nil) { now }
        #expect(try looking.record(report, reporter: "big.example", now: now))
        let relaying = StoreDirectory(
            store: installation.store, counters: CounterBuffer(installation.store.counters)
        ) { now }
        #expect(try relaying.record(report, reporter: "big.example", now: now))
        #expect(try !relaying.record(report, reporter: "big.example", now: now))
        let lines = try runner.succeed("status", "--dmarc").split(separator: "\n").map {
            $0.split(separator: " ").joined(separator: " ")
        }
        #expect(lines.contains("relay.example big.example 1 40 7"), "\(lines)")
        #expect(lines.contains("198.51.100.9 1 7 reject"), "\(lines)")
        let json = try #require(try runner.json("status", "--dmarc") as? [String: Any])
        #expect((json["receivers"] as? [[String: Any]])?.first?["failed"] as? Int == 7)
        #expect((json["failing"] as? [[String: Any]])?.count == 1)
    }
}
