// Every change of forwarding, consent and existence writes its event in the transaction of the
// change.

import Accounts
import Events
import Foundation
import InternetMessage
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct OutboxTests {
    private static let change = TestStore.change

    /// One way in which an account changes for a team.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let events: [String]
        let act: @Sendable (TestStore, AuthorizedGrant) throws -> Void

        init(
            _ description: String, _ events: [String],
            _ act: @escaping @Sendable (TestStore, AuthorizedGrant) throws -> Void
        ) {
            testDescription = description
            self.events = events
            self.act = act
        }
    }

    static let ways: [Way] = [
        Way("forwarding off", ["email-disabled com.juice"]) {
            try $0.store.addresses.setForwarding($1.relayAddress!.address, on: false, change)
        },
        Way("forwarding off and on", ["email-disabled com.juice", "email-enabled com.juice"]) {
            try $0.store.addresses.setForwarding($1.relayAddress!.address, on: false, change)
            try $0.store.addresses.setForwarding($1.relayAddress!.address, on: false, change)
            try $0.store.addresses.setForwarding($1.relayAddress!.address, on: true, change)
        },
        Way(
            "address retired and another issued",
            ["email-disabled com.juice", "email-enabled com.juice"]
        ) {
            try $0.store.addresses.retire($1.relayAddress!.address, change)
            _ = try $0.store.addresses.issue(team: "juice", user: "u1", change)
        },
        Way(
            "last verified inbox removed and another confirmed",
            ["email-disabled com.juice", "email-enabled com.juice"]
        ) {
            test, _ in
            try test.store.inboxes.remove(user: "u1", .number(1), change)
            let inbox = try test.store.inboxes.add(
                user: "u1", TestStore.inbox("new@home.example"), isVerified: false,
                isReplyOnly: false, change)
            _ = try test.store.inboxes.confirm(user: "u1", .number(inbox.number), change)
        },
        Way("one of two inboxes removed", []) { test, _ in
            _ = try test.store.inboxes.add(
                user: "u1", TestStore.inbox("new@home.example"), isVerified: true,
                isReplyOnly: false, change)
            try test.store.inboxes.remove(user: "u1", .number(1), change)
        },
        Way("grant revoked", ["consent-revoked com.juice"]) {
            try $0.store.grants.revoke(account: $1.account.number, group: $1.grant.group, change)
        },
        Way("forwarding switched after the grant was revoked", ["consent-revoked com.juice"]) {
            try $0.store.grants.revokeAll(account: $1.account.number, change)
            try $0.store.addresses.setForwarding($1.relayAddress!.address, on: false, change)
        },
        Way("account deleted", ["account-delete com.juice"]) {
            try $0.store.accounts.delete(account: $1.account.number, change)
        },
        Way(
            "account deleted after the grant was revoked",
            ["consent-revoked com.juice", "account-delete com.juice"]
        ) {
            try $0.store.grants.revokeAll(account: $1.account.number, change)
            try $0.store.accounts.delete(account: $1.account.number, change)
        },
        Way("user removed", ["account-delete com.juice"]) { test, _ in
            try test.store.users.remove("u1", change)
        },
        Way("team removed", ["account-delete com.juice"]) { test, _ in
            try test.store.teams.remove("juice", change)
        },
        Way("app removed, another of the group left", []) { test, _ in
            try test.store.apps.remove(team: "juice", clientID: "com.juice.web", change)
        },
        Way("last app of the group removed", ["consent-revoked com.juice"]) { test, _ in
            try test.store.apps.remove(team: "juice", clientID: "com.juice.web", change)
            try test.store.apps.remove(team: "juice", clientID: "com.juice", change)
        },
        Way("name shared, sign-in repeated", []) { test, _ in
            _ = try test.store.addresses.issue(team: "juice", user: "u1", sharesName: true, change)
            _ = try LifecycleTests.authorize(test, "com.juice.web")
        },
    ]

    @Test(arguments: Engine.all, ways) func outbox_eachChange_writesItsEvents(
        _ engine: Engine, _ way: Way
    ) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        try way.act(test, account)
        #expect(try LifecycleTests.told(test) == way.events)
        let events = try test.store.outbox.events()
        #expect(Set(events.map(\.jti)).count == events.count)
        #expect(events.allSatisfy { $0.accountNumber == account.account.number })
        // The test's clock does not move, so the order of the changes is added to the time.
        #expect(
            events.reversed().map(\.eventTime)
                == way.events.indices.map { TestStore.now * 1000 + Int64($0) })
        // The delivery finds all written events, even if their objects were removed since.
        let endpoints = try test.store.outbox.waitingEndpoints()
        #expect(endpoints.reduce(0) { $0 + $1.pending } == way.events.count)
    }

    /// If a host with a fast clock wrote first, an event of another host would look older, and the
    /// receiver would drop it permanently.
    @Test(arguments: Engine.all) func eventTime_clocksDiffer_keepsOrder(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        let other = try LifecycleTests.authorize(test, "com.press")
        #expect(other.account.number == account.account.number)
        let address = try #require(account.relayAddress).address
        let ahead = Change(actor: "uid:0", now: TestStore.now + 20)
        try test.store.addresses.setForwarding(address, on: false, ahead)
        try test.store.addresses.setForwarding(address, on: true, Self.change)
        try test.store.accounts.delete(account: account.account.number, Self.change)
        let times = Dictionary(grouping: try test.store.outbox.events().reversed(), by: \.audience)
            .mapValues {
                $0.map(\.eventTime)
            }
        let start = (TestStore.now + 20) * 1000
        // One change has one time for all endpoints.
        #expect(
            times == [
                "com.juice": [start, start + 1, start + 2],
                "com.press": [start, start + 1, start + 2],
            ])
    }

    @Test(arguments: Engine.all) func eventTime_changeMadeNow_hasMilliseconds(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let address = try #require(try LifecycleTests.authorize(test, "com.juice").relayAddress)
            .address
        let before = Int64(Date().timeIntervalSince1970 * 1000)
        try test.store.addresses.setForwarding(
            address, on: false, Change(actor: "uid:0", now: before / 1000))
        let after = Int64(Date().timeIntervalSince1970 * 1000)
        let time = try #require(try test.store.outbox.events().first).eventTime
        // A machine that was suspended for seconds in between writes the whole second.
        #expect((before...after).contains(time) || time == before / 1000 * 1000)
    }

    @Test(arguments: Engine.all) func outbox_consentEvent_namesNoAddress(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        let address = try #require(account.relayAddress).address
        try test.store.addresses.setForwarding(address, on: false, Self.change)
        try test.store.grants.revokeAll(account: account.account.number, Self.change)
        #expect(try test.store.outbox.events().reversed().map(\.email) == [address.wireForm, nil])
    }

    @Test(arguments: Engine.all) func outbox_changeRolledBack_writesNoEvent(_ engine: Engine) throws
    {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        let raised = Mutex(0)
        test.store.outboxSignal.onRaise { raised.withLock { $0 += 1 } }
        expectRefusal(.notFound) {
            try test.store.inboxes.remove(user: "u1", .number(99), Self.change)
        }
        expectRefusal(.unmet) {
            try test.store.apps.remove(team: "juice", clientID: "com.juice", Self.change)
        }
        #expect(try LifecycleTests.told(test).isEmpty)
        #expect(raised.withLock { $0 } == 0)
        try test.store.grants.revokeAll(account: account.account.number, Self.change)
        #expect(raised.withLock { $0 } == 1)
    }

    @Test(arguments: Engine.all) func outbox_groupWithoutEndpoint_getsNoEvent(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        try test.user("u1")
        _ = try test.store.apps.add(team: "juice", clientID: "com.juice", group: nil, Self.change)
        let address = try #require(LifecycleTests.authorize(test, "com.juice").relayAddress).address
        try test.store.addresses.setForwarding(address, on: false, Self.change)
        #expect(try test.store.outbox.events().isEmpty)
        _ = try test.store.endpoints.set(
            team: "juice", app: "com.juice", url: EndpointURL("https://hooks.example/"), Self.change
        )
        try test.store.addresses.setForwarding(address, on: true, Self.change)
        #expect(try LifecycleTests.told(test) == ["email-enabled com.juice"])
    }

    @Test(arguments: Engine.all) func outbox_eventsOfOneAccount_areDueInOrder(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        try test.user("u2")
        let other = try test.store.grants.authorize(
            AuthorizationRequest(clientID: "com.juice", userID: "u2"), Self.change)
        for isOn in [false, true, false] {
            try test.store.addresses.setForwarding(
                account.relayAddress!.address, on: isOn, Self.change)
        }
        try test.store.grants.revokeAll(account: other.account.number, Self.change)
        let outbox = test.store.outbox
        let endpoint = try #require(try outbox.waitingEndpoints().first).number
        let lease = try test.deliveryLease()
        func due(_ now: Int64, isProbe: Bool = false) throws -> [Int64] {
            try #require(
                try outbox.due(
                    endpoint: endpoint, now: now, isProbe: isProbe, limit: 10, under: lease)
            ).map(\.number)
        }
        let all = try outbox.events().reversed().map(\.number)
        #expect(try due(Self.change.now) == [all[0], all[3]])
        let first = try #require(
            try outbox.due(
                endpoint: endpoint, now: Self.change.now, isProbe: false, limit: 1, under: lease)?
                .first)
        let failure = DeliveryFailure(
            reason: "500", isEndpoints: true, endpointFailures: 1,
            retryEventAt: Self.change.now + 5,
            retryEndpointAt: Self.change.now + 5)
        #expect(
            try outbox.recordResults(
                [DeliveryResult(first, failure: failure)], under: lease, now: Self.change.now))
        // The first event holds back only later events of its account.
        #expect(try due(Self.change.now) == [all[3]])
        #expect(try due(Self.change.now + 5) == [all[3], all[0]])
        // A probe selects the events that were tried least recently.
        #expect(try due(Self.change.now, isProbe: true) == [all[3], all[0]])
        #expect(try outbox.waitingEndpoints().first?.failures == 1)
        #expect(
            try outbox.recordResults(
                [DeliveryResult(first)], under: lease, now: Self.change.now + 6))
        #expect(try due(Self.change.now + 6) == [all[1], all[3]])
        #expect(try !outbox.wake(endpoint: endpoint, under: lease, now: Self.change.now + 6))
        #expect(try outbox.waitingEndpoints().first?.failures == 0)
    }

    /// After an answer that refuses one event, the other events of the endpoint must become due at
    /// once.
    @Test(arguments: Engine.all, [nil, "400"]) func outbox_answerAfterFailure_makesWaitingEventsDue(
        _ engine: Engine, _ refusal: String?
    ) throws {
        let test = try LifecycleTests.world(engine)
        try OutboxStepTests.post(test, accounts: [1, 2, 3])
        let (outbox, lease, start) = (test.store.outbox, try test.deliveryLease(), Self.change.now)
        let events = try outbox.events().reversed().map { $0 }
        let endpoint = events[0].endpointNumber
        func failure(_ reason: String, isEndpoints: Bool, at time: Int64) -> DeliveryFailure {
            DeliveryFailure(
                reason: reason, isEndpoints: isEndpoints, endpointFailures: 1,
                retryEventAt: time + 900, retryEndpointAt: time + 5
            )
        }
        func record(_ event: OutboxEvent, _ failure: DeliveryFailure?, at time: Int64) throws {
            #expect(
                try outbox.recordResults(
                    [DeliveryResult(event, failure: failure)], under: lease, now: time))
        }
        func health() throws -> (failures: Int, error: String?) {
            let endpoint = try #require(try outbox.waitingEndpoints().first)
            return (endpoint.failures, endpoint.lastError)
        }
        for event in events.prefix(2) {
            try record(event, failure("503", isEndpoints: true, at: start), at: start)
        }
        // Sent before the failure, and answered after it.
        try record(events[2], failure("400", isEndpoints: false, at: start), at: start)
        #expect(try health() == (1, "503"))
        let later = start + 100
        try record(events[0], refusal.map { failure($0, isEndpoints: false, at: later) }, at: later)
        #expect(try health() == (0, refusal))
        let due = try #require(
            try outbox.due(endpoint: endpoint, now: later, isProbe: false, limit: 10, under: lease))
        #expect(due.map(\.accountNumber) == [2, 3])
    }

    @Test(arguments: Engine.all) func outbox_threeDaysUndelivered_isParkedAndRetryable(
        _ engine: Engine
    ) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        try test.store.grants.revokeAll(account: account.account.number, Self.change)
        let outbox = test.store.outbox
        let end = Self.change.now + 3 * 86_400
        #expect(try outbox.parkExpired(now: end - 1) == 0)
        #expect(try outbox.parkExpired(now: end) == 1)
        #expect(try outbox.waitingEndpoints().isEmpty)
        let parked = try #require(try outbox.events(team: "juice", state: .parked).first)
        #expect(try outbox.retry(jti: parked.jti, Change(actor: "uid:0", now: end + 5)) == 1)
        let again = try #require(try outbox.events(state: .pending).first)
        #expect(again.jti == parked.jti)
        #expect(again.parkAt == end + 5 + 3 * 86_400)
        #expect(try outbox.park(team: "juice", Change(actor: "uid:0", now: end + 6)) == 1)
        expectRefusal(.notFound) { _ = try outbox.retry(jti: "nothing", Self.change) }
        #expect(try outbox.deleteEnded(now: end + 29 * 86_400) == 0)
        #expect(try outbox.deleteEnded(now: end + 31 * 86_400) == 1)
    }

    /// A result from a former holder of the lease comes late, and is refused.
    @Test(arguments: Engine.all) func outbox_leaseLost_refusesResults(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        try test.store.addresses.setForwarding(
            account.relayAddress!.address, on: false, Self.change)
        let (outbox, leases) = (test.store.outbox, test.store.leases)
        let endpoint = try #require(try outbox.waitingEndpoints().first).number
        let former = try test.deliveryLease()
        let event = try #require(
            try outbox.due(
                endpoint: endpoint, now: Self.change.now, isProbe: false, limit: 1, under: former)?
                .first)
        let seen = try leases.state(OutboxRepository.lease)
        #expect(try leases.renew(former))
        // The holder works, so the state that was read has changed.
        #expect(try leases.take(OutboxRepository.lease, seen: seen, holder: "b") == nil)
        let successor = try #require(
            try leases.take(
                OutboxRepository.lease, seen: leases.state(OutboxRepository.lease), holder: "b"))
        #expect(successor.fence > former.fence)
        #expect(try !leases.renew(former))
        #expect(
            try outbox.due(
                endpoint: endpoint, now: Self.change.now, isProbe: false, limit: 1, under: former)
                == nil)
        let failure = DeliveryFailure(
            reason: "late", isEndpoints: true, endpointFailures: 1,
            retryEventAt: Self.change.now + 5,
            retryEndpointAt: Self.change.now + 5)
        for result in [DeliveryResult(event), DeliveryResult(event, failure: failure)] {
            #expect(try !outbox.recordResults([result], under: former, now: Self.change.now))
        }
        #expect(try outbox.waitingEndpoints().first?.failures == 0)
        #expect(try outbox.events().first?.state == .pending)
        // Nor can it release another holder's lease.
        try leases.release(former)
        #expect(try leases.renew(successor))
        try leases.release(successor)
        #expect(try leases.state(OutboxRepository.lease).isFree)
    }

    @Test(arguments: Engine.all) func outbox_manyResults_areAllRecorded(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let lease = try test.deliveryLease()
        let endpoint = try test.store.endpoints.endpoint(team: "juice", app: nil)
        for count in [1, 2, 8, 9, 64, 65, 150] {
            for _ in 0..<count { _ = try test.store.outbox.test(endpoint, Self.change) }
            let events = try test.store.outbox.events(state: .pending, limit: 1000)
            #expect(events.count == count)
            #expect(
                try test.store.outbox.recordResults(
                    events.map { DeliveryResult($0) }, under: lease, now: Self.change.now))
            #expect(try test.store.outbox.events(state: .pending).isEmpty)
        }
        #expect(
            try test.store.outbox.events(limit: 1000).allSatisfy {
                $0.attempts == 1 && $0.endedAt == Self.change.now
            })
    }

    /// An event from a host with a fast clock must be due at once, and not only when other clocks
    /// reach its time.
    @Test(arguments: Engine.all) func outbox_eventOfHostAhead_isDueAtOnce(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        let account = try LifecycleTests.authorize(test, "com.juice")
        let ahead = Change(actor: "uid:0", now: Self.change.now + 3600)
        try test.store.addresses.setForwarding(account.relayAddress!.address, on: false, ahead)
        let outbox = test.store.outbox
        let endpoint = try #require(try outbox.waitingEndpoints().first).number
        let lease = try test.deliveryLease()
        func due() throws -> Int {
            let events = try outbox.due(
                endpoint: endpoint, now: Self.change.now, isProbe: false, limit: 10, under: lease)
            return events?.count ?? -1
        }
        #expect(try due() == 1)
        // The same for an event that an administrator retries on that host, and for one that the
        // delivery there failed to deliver, after it is noticed.
        let event = try #require(try outbox.events().first)
        _ = try outbox.park(jti: event.jti, ahead)
        _ = try outbox.retry(jti: event.jti, ahead)
        #expect(try due() == 1)
        let failure = DeliveryFailure(
            reason: "500", isEndpoints: true, endpointFailures: 1, retryEventAt: ahead.now + 5,
            retryEndpointAt: ahead.now + 5)
        #expect(
            try outbox.recordResults(
                [DeliveryResult(event, failure: failure)], under: lease, now: ahead.now))
        #expect(try due() == 0)
        #expect(
            try outbox.endImpossibleWaits(event: 3605, endpoint: 3605, now: Self.change.now) == 0)
        #expect(try due() == 0)
        #expect(
            try outbox.endImpossibleWaits(event: 1080, endpoint: 3604, now: Self.change.now) == 1)
        #expect(try due() == 1)
        #expect(try outbox.waitingEndpoints().first?.retryAt == Self.change.now)
        // Endpoints may request a longer wait than any event has. The wait of this endpoint's event
        // shows that the endpoint did not request it.
        #expect(
            try outbox.recordResults(
                [DeliveryResult(event, failure: failure)], under: lease, now: ahead.now))
        #expect(
            try outbox.endImpossibleWaits(event: 1080, endpoint: 3605, now: Self.change.now) == 1)
        #expect(try outbox.waitingEndpoints().first?.retryAt == Self.change.now)
    }

    @Test(arguments: [
        ("https://Hooks.Example/events?a=b", "https://hooks.example/events?a=b", 443),
        ("https://hooks.example", "https://hooks.example/", 443),
        ("https://hooks.example?x", "https://hooks.example/?x", 443),
        ("HTTPS://hooks.example:8443/", "https://hooks.example:8443/", 8443),
        ("http://127.0.0.1:80/x", "http://127.0.0.1/x", 80),
        ("https://[2001:DB8::1]:443/", "https://[2001:db8::1]/", 443),
    ]) func endpointURL_valid_isNormalized(_ text: String, _ shown: String, _ port: Int) throws {
        let url = try EndpointURL(text)
        #expect(url.description == shown)
        #expect(url.port == port)
        #expect(try EndpointURL(url.description) == url)
    }

    @Test(arguments: [
        "", "hooks.example", "ftp://hooks.example/", "https:/hooks.example", "https://",
        "https:///x", "https://u@hooks.example/",
        "https://hooks.example/#x", "https://hooks.example:0/", "https://hooks.example:65536/",
        "https://hooks.example:+1/",
        "https://127.1/", "https://0177.0.0.1/", "https://2130706433/", "https://0x7f.0.0.1/",
        "https://127.0.0.256/",
        "https://[::1/", "https://[::1]x/", "https://[]/", "https://[127.0.0.1]/",
        "https://hooks example/",
        "https://hooks.example/\r\nX: y", "https://hooks.example\\@other.example/",
        "https://hooks.exämple/",
        "https://a..b/", "https://hooks.example:443:443/", "https://%31/",
    ]) func endpointURL_invalid_isRefused(_ text: String) {
        expectRefusal(.invalid) { _ = try EndpointURL(text) }
    }
}
