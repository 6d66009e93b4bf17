// Data that users keep for themselves on /me is in no answer to a team or a program, and not in
// events, metrics and logs.

import Accounts
import Events
import Foundation
import InternetMessage
import PersonalData
import PosternMetrics
import RelayCore
import SignIn
import TestSupport
import Testing

@testable import API
@testable import HTTP

@Suite(.blocking) struct UsersOwnDataTests {
    /// Each is in one place only, and nowhere else in the fixture.
    private static let planted = ["zzname", "zznote", "zzblocked", "zzspam", "zzsettings"]

    private func fixture() throws -> APIFixture {
        try APIFixture { fixture in
            let parts = fixture.parts
            return [
                AccountRoutes(parts, listings: parts.store.listings),
                AddressRoutes(parts, messagesPerDay: 100), EventRoutes(parts),
                RejectionRoutes(parts, listings: parts.store.listings),
                UserRoutes(parts) { _, _, _ in },
                SourceRoutes(
                    parts, examine: { _ in [] }, look: { _ in .absent }, mail: { _, _ in }),
                AttestationRoutes(parts),
                MetricsRoutes(ServiceMetrics(version: "0"), fixture.pool),
            ]
        }
    }

    private func plant(_ fixture: APIFixture, _ address: RelayAddress) throws {
        let (store, account) = (fixture.store, address.account.number)
        try store.persons.setNotes(
            user: "jane", account: account, AccountNotes(name: "zzname", note: "zznote"))
        try store.persons.block(
            user: "jane", account: account, "zzblocked@juice.example", now: fixture.now)
        let refused = try [
            ("zzspam.example", false, RefusalReply.unauthorizedSender),
            ("juice.example", true, .senderBlocked),
        ]
        .map {
            RefusedForward(
                at: fixture.now,
                attribution: ForwardAttribution(
                    author: try #require(AddrSpec(envelope: "x@\($0)")),
                    account: try #require(AccountNumber(UInt64(account))),
                    isRegistered: $1),
                reply: $2, reference: "abcdefgh")
        }
        try store.add(refusals: refused)
        try store.users.setLanguage(of: "jane", "zzsettings")
        try store.persons.setWantsRefusals(user: "jane", false, APIFixture.change)
        try store.addresses.switchForwarding(
            account: account, at: fixture.now + 86_400, after: 5, APIFixture.change)
        // A change of which teams are notified.
        try store.addresses.setForwarding(address.address, on: false, APIFixture.change)
    }

    @Test func usersOwnData_planted_isInNoAnswerEventOrLog() async throws {
        let fixture = try fixture()
        _ = try fixture.store.apps.add(
            team: "juice", clientID: "com.juice", group: nil, APIFixture.change)
        _ = try fixture.store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL("https://hooks.juice.example/events"),
            APIFixture.change)
        try fixture.store.sources.add(
            team: "juice",
            fixture.store.sources.checked(
                "juice.example", envelopeDomain: nil, now: APIFixture.start),
            APIFixture.change)
        let address = try fixture.address(user: "jane", team: "juice", app: "com.juice")
        try plant(fixture, address)
        // jane's own data contains them.
        let own = try fixture.store.persons.records(user: "jane", now: fixture.now)
        let text = String(describing: own)
        for word in Self.planted { #expect(text.contains(word), "\(word) was not planted") }

        var answered = 0
        for key in [try fixture.key("juice"), try fixture.key("soda"), try fixture.key(nil)] {
            for path in fixture.routes.filter({ $0.method == .get }).map(\.path) {
                let filled = path.replacing("{user}", with: "jane").replacing(
                    "{account}", with: address.account.sub
                )
                .replacing("{sub}", with: address.account.sub).replacing("{inbox}", with: "1")
                .replacing("{source}", with: "juice.example")
                for query in [
                    "", "?limit=100", "?user=jane", "?address=\(address.address.wireForm)",
                ] {
                    let answer = try await fixture.ask(.get, filled + query, key: key)
                    answered += answer.status == 200 ? 1 : 0
                    for word in Self.planted {
                        #expect(!answer.text.contains(word), "\(path) tells \(word)")
                    }
                    #expect(
                        !answer.text.contains("switches_at")
                            && !answer.text.contains("messages_left"))
                }
            }
        }
        #expect(answered >= 10, "\(answered) answers")
        let events = try fixture.store.outbox.events(limit: 100)
        #expect(!events.isEmpty)
        for word in Self.planted {
            #expect(!events.contains { String(describing: $0).contains(word) })
            #expect(!fixture.log.lines.contains { $0.contains(word) })
        }
        let audit = try fixture.store.audit.entries(limit: 1000)
        for word in Self.planted {
            #expect(!audit.contains { String(describing: $0).contains(word) }, "\(word)")
        }
    }
}
