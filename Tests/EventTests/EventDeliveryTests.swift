// Every event arrives: in order for each account, at least once, with every kind of endpoint.

import Accounts
import Database
import Events
import Foundation
import InternetMessage
import SignIn
import Support
import Synchronization
import TestSupport
import Testing

@Suite(.blocking) struct EventDeliveryTests {
    @Test func event_delivered_isVerifiable() async throws {
        try await withFixture { fixture, receiver in
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            let taken = try #require(receiver.taken.first)
            let account = try #require(try fixture.store.accounts.accounts().first)
            #expect(taken.type == "email-disabled")
            #expect(taken.sub == account.sub)
            #expect(taken.audience == "com.juice")
            #expect(
                taken.email
                    == (try fixture.store.addresses.current(account: account.number)?.address
                        .wireForm))
            #expect(taken.eventTime == fixture.clock.now * 1000)
            // Checked as a receiver does, with only the published keys.
            let keys = try JWKSet.parse(await fixture.signer.publishedKeys())
            let issuer = IssuerConfiguration(
                name: "postern", issuer: EventFixture.issuer, source: .inline(""),
                algorithms: [.es256], nonceForm: .raw,
                leeway: 60)
            let event = try IncomingEvent.verify(
                try CompactJWS(try #require(receiver.payloads.first)), issuer: issuer, keys: keys,
                now: fixture.clock.now
            ) { $0 == "com.juice" }
            #expect(event.kind == .emailDisabled)
            #expect(event.subject == account.sub)
            #expect(event.isPrivateEmail == true)
        }
    }

    @Test func checkObjected_delivered_namesDecisionNotAddress() async throws {
        try await withFixture { fixture, receiver in
            let account = try #require(try fixture.store.accounts.accounts().first)
            try fixture.toggle("u0", on: false)
            try fixture.store.events.write(at: fixture.clock.now) {
                connection, tracker throws(StoreFailure) in
                let group: Int64? = try connection.value(
                    "SELECT group_id FROM grants WHERE account_id = \(account.number)")
                let team: Int64? = try connection.value(
                    "SELECT team_id FROM accounts WHERE id = \(account.number)")
                // One of another team, to which the apps belonged before.
                try tracker.note(
                    objectionOf: account.number, group: group ?? 0, team: (team ?? 0) + 1,
                    decision: "rd_0")
                try tracker.note(
                    objectionOf: account.number, group: group ?? 0, team: team ?? 0,
                    decision: "rd_1")
            }
            await fixture.delivery.deliverDue()
            let taken = receiver.taken
            #expect(taken.map(\.type) == ["email-disabled", "check-objected"])
            #expect(
                taken[1].decision == "rd_1" && taken[1].sub == account.sub && taken[1].email == nil)
            #expect(taken[1].eventTime > taken[0].eventTime)
        }
    }

    @Test func addressUsedByOthers_delivered_hasCountsAndNoSender() async throws {
        try await withFixture { fixture, receiver in
            let account = try #require(try fixture.store.accounts.accounts().first)
            let address = try #require(
                try fixture.store.addresses.current(account: account.number)?.address)
            try fixture.store.events.write(at: fixture.clock.now) {
                _, tracker throws(StoreFailure) in
                try tracker.note(
                    .addressUsedByOthers, of: .account(account.number), email: address.wireForm,
                    detail: #"{"day":"2026-11-28","proved":3,"unproved":1}"#)
            }
            await fixture.delivery.deliverDue()
            let event = try #require(receiver.taken.first)
            #expect(event.sub == account.sub)
            var content = event.content
            #expect(content["event_time"] != nil)
            content["event_time"] = nil
            let expected: JSONObject = [
                "type": .string("address-used-by-others"), "sub": .string(account.sub),
                "email": .string(address.wireForm), "day": .string("2026-11-28"),
                "proved": .integer(3), "unproved": .integer(1),
            ]
            #expect(content == expected)
        }
    }

    @Test func event_ofOneAccount_arrivesInOrder() async throws {
        try await withFixture(users: 4) { fixture, receiver in
            for round in 0..<10 {
                for user in 0..<4 { try fixture.toggle("u\(user)", on: round % 2 == 1) }
            }
            try await fixture.deliver(within: 0)
            let events = try fixture.store.outbox.events(limit: 1000).reversed()
            #expect(receiver.taken.count == 40)
            for account in Set(events.map(\.sub)) {
                #expect(
                    receiver.taken.filter { $0.sub == account }.map(\.jti)
                        == events.filter { $0.sub == account }.map(\.jti))
            }
            #expect(
                events.allSatisfy { $0.state == .delivered && $0.attempts == 1 && $0.email == nil })
        }
    }

    @Test func event_deliveryFailed_isRetriedWithSameJTI() async throws {
        try await withFixture { fixture, receiver in
            try fixture.toggle("u0", on: false)
            try fixture.toggle("u0", on: true)
            receiver.rule { _, count in count < 3 ? .status(500) : .status(204) }
            let seconds = try await fixture.deliver(within: 3600)
            // 5, 10 and 20 seconds.
            #expect(seconds == 35)
            #expect(receiver.requests.count == 5)
            #expect(Set(receiver.requests.prefix(4).map(\.jti)).count == 1)
            #expect(receiver.taken.map(\.type) == ["email-disabled", "email-enabled"])
        }
    }

    @Test(arguments: [301, 302, 307, 308]) func delivery_redirect_isNotFollowed(
        _ status: Int
    ) async throws {
        try await withFixture { fixture, receiver in
            let other = try await TestReceiver()
            try fixture.toggle("u0", on: false)
            receiver.rule { [port = other.port] _, _ in
                .status(status, ["Location": "https://hooks.example:\(port)/events"])
            }
            await fixture.delivery.deliverDue()
            #expect(receiver.requests.count == 1)
            #expect(other.requests.isEmpty)
            let event = try #require(try fixture.store.outbox.events().first)
            #expect(event.state == .pending)
            #expect(
                event.lastError == "the response is a redirect (\(status)), which is not followed")
            await other.stop()
        }
    }

    /// Slow lookups must not occupy all threads. Otherwise no result is recorded, the lease
    /// expires, and everything is delivered again and again.
    @Test func delivery_unresolvableNames_doesNotDelayOthers() async throws {
        try await withFixture { fixture, receiver in
            let dead = 20
            for number in 0..<dead {
                let team = "dead\(number)"
                _ = try fixture.store.teams.add(id: team, name: team, fixture.change)
                _ = try fixture.store.apps.add(
                    team: team, clientID: "com.\(team)", group: nil, fixture.change)
                _ = try fixture.store.endpoints.set(
                    team: team, app: nil, url: EndpointURL("https://\(team).example/"),
                    fixture.change)
                let account = try fixture.store.grants.authorize(
                    AuthorizationRequest(clientID: "com.\(team)", userID: "u0"), fixture.change
                ).account
                try fixture.store.grants.revokeAll(account: account.number, fixture.change)
            }
            try fixture.toggle("u0", on: false)
            let isOver = DispatchSemaphore(value: 0)
            fixture.resolver.before { name in
                guard name.hasPrefix("dead") else { return }
                isOver.wait()
                isOver.signal()
            }
            async let delivering: Void = fixture.delivery.deliverDue()
            // The result is recorded, and the lease renewed, while those lookups wait.
            var isDelivered = false
            for _ in 0..<1200 where !isDelivered {
                isDelivered = try fixture.store.outbox.events(state: .delivered).count == 1
                if !isDelivered { try await Task.sleep(for: .milliseconds(50)) }
            }
            #expect(isDelivered)
            #expect(receiver.requests.count == 1)
            let lease = await fixture.delivery.lead()
            #expect(lease != nil)
            isOver.signal()
            await delivering
            #expect(try fixture.store.outbox.events(state: .pending).count == dead)
        }
    }

    @Test func delivery_endpointHangs_doesNotDelayOthers() async throws {
        try await withFixture(timeout: 4) { fixture, hanging in
            let working = try await TestReceiver()
            _ = try fixture.store.teams.add(id: "milk", name: "Milk", fixture.change)
            _ = try fixture.store.apps.add(
                team: "milk", clientID: "com.milk", group: nil, fixture.change)
            _ = try fixture.store.endpoints.set(
                team: "milk", app: nil, url: EndpointURL("https://hooks.example:\(working.port)/"),
                allowsPrivate: true,
                fixture.change)
            let milk = try fixture.store.grants.authorize(
                AuthorizationRequest(clientID: "com.milk", userID: "u0"), fixture.change)
            hanging.rule { _, _ in .hang }
            try fixture.toggle("u0", on: false)
            try fixture.store.grants.revokeAll(account: milk.account.number, fixture.change)
            await fixture.delivery.deliverDue()
            #expect(working.taken.map(\.type) == ["consent-revoked"])
            #expect(hanging.requests.count == 1)
            let waiting = try #require(try fixture.store.outbox.events(state: .pending).first)
            #expect(waiting.lastError == "no complete response in time")
            hanging.rule { _, _ in .status(200) }
            try await fixture.deliver(within: 60)
            #expect(hanging.taken.map(\.jti) == [waiting.jti])
            await working.stop()
        }
    }

    @Test func delivery_endpointBackAfterAnHour_isCompleteAndInOrder() async throws {
        try await withFixture(users: 20) { fixture, receiver in
            let port = receiver.port
            await receiver.stop()
            for round in 0..<6 {
                for user in 0..<20 { try fixture.toggle("u\(user)", on: round % 2 == 1) }
            }
            let start = fixture.clock.now
            while fixture.clock.now < start + 3600 {
                await fixture.delivery.deliverDue()
                let endpoint = try #require(try fixture.store.outbox.waitingEndpoints().first)
                #expect(endpoint.retryAt - fixture.clock.now <= 900)
                fixture.clock.advance(endpoint.retryAt - fixture.clock.now)
            }
            let attempts = try fixture.store.outbox.events(limit: 1000).map(\.attempts).reduce(0, +)
            #expect(
                attempts <= 20,
                "120 events at an endpoint that is away are \(attempts) attempts in an hour")
            let back = try await TestReceiver(port: port)
            let seconds = try await fixture.deliver(within: 900)
            #expect(seconds <= 900)
            let events = try fixture.store.outbox.events(limit: 1000).reversed()
            #expect(back.taken.count == 120)
            for sub in Set(events.map(\.sub)) {
                #expect(
                    back.taken.filter { $0.sub == sub }.map(\.jti)
                        == events.filter { $0.sub == sub }.map(\.jti))
            }
            await back.stop()
        }
    }

    @Test func event_neverTaken_delaysItsAccountOnly() async throws {
        for status in [422, 500] {
            try await withFixture(users: 3) { fixture, receiver in
                for user in 0..<3 { try fixture.toggle("u\(user)", on: false) }
                fixture.clock.advance(600)
                for user in 0..<3 { try fixture.toggle("u\(user)", on: true) }
                let stubborn = try #require(try fixture.store.outbox.events().last)
                receiver.rule { event, _ in
                    event.jti == stubborn.jti ? .status(status) : .status(200)
                }
                try await fixture.deliver(within: 86_400)
                #expect(receiver.taken.count == 4, "\(status)")
                #expect(!receiver.taken.contains { $0.sub == stubborn.sub })
                // Its account continues when the event is given up, after three days.
                fixture.clock.advance(max(0, stubborn.parkAt - fixture.clock.now))
                await fixture.delivery.tidy()
                try await fixture.deliver(within: 3600)
                let states = try fixture.store.outbox.events().map {
                    "\($0.number) \($0.state) \($0.attempts) \($0.parkAt) \($0.nextAttemptAt)"
                }
                #expect(
                    try fixture.store.outbox.events(state: .parked).map(\.jti) == [stubborn.jti],
                    "\(states) at \(fixture.clock.now)")
                #expect(
                    receiver.taken.filter { $0.sub == stubborn.sub }.map(\.type) == [
                        "email-enabled"
                    ])
                let attempts = receiver.requests.count { $0.jti == stubborn.jti }
                #expect(attempts < 400, "\(attempts) attempts in three days")
            }
        }
    }

    /// An endpoint that refuses each event must not count as failing, because then one event after
    /// the other would be sent as a probe, without a pause.
    @Test func delivery_endpointRefusesAllEvents_isPaced() async throws {
        try await withFixture(users: 3) { fixture, receiver in
            for user in 0..<3 { try fixture.toggle("u\(user)", on: false) }
            receiver.rule { _, _ in .status(503) }
            await fixture.delivery.deliverDue()
            #expect(try fixture.store.outbox.waitingEndpoints().first?.failures == 1)
            receiver.rule { _, _ in .status(400) }
            let before = receiver.requests.count
            for _ in 0..<50 {
                fixture.clock.advance(2)
                await fixture.delivery.deliverDue()
            }
            #expect(try fixture.store.outbox.waitingEndpoints().first?.failures == 0)
            // Each after 5, 10, 20, 40 seconds.
            let attempts = receiver.requests.count - before
            #expect((3...18).contains(attempts), "\(attempts)")
            #expect(try fixture.store.endpoints.endpoints().first?.lastSuccessAt == nil)
            receiver.rule { _, _ in .status(200) }
            try await fixture.deliver(within: 3_600)
            #expect(try fixture.store.outbox.events(state: .delivered).count == 3)
        }
    }

    @Test func delivery_endlessResponse_isDelivered() async throws {
        try await withFixture(timeout: 2) { fixture, receiver in
            receiver.rule { _, _ in .flood }
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            #expect(try fixture.store.outbox.events(state: .delivered).count == 1)
        }
    }

    @Test func delivery_connectionClosed_isRetried() async throws {
        try await withFixture { fixture, receiver in
            receiver.rule { _, count in count == 0 ? .close : .status(200) }
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            #expect(try fixture.store.outbox.events(state: .pending).count == 1)
            try await fixture.deliver(within: 60)
            #expect(receiver.taken.count == 1)
        }
    }

    @Test func delivery_retryAfter_isRespected() async throws {
        try await withFixture { fixture, receiver in
            receiver.rule { _, count in
                count == 0 ? .status(429, ["Retry-After": "120"]) : .status(200)
            }
            try fixture.toggle("u0", on: false)
            await fixture.delivery.deliverDue()
            let endpoint = try #require(try fixture.store.outbox.waitingEndpoints().first)
            #expect(endpoint.retryAt == fixture.clock.now + 120)
            #expect(try await fixture.deliver(within: 300) == 120)
        }
    }

    @Test func testEvent_sent_hasFormOfOthers() async throws {
        try await withFixture { fixture, receiver in
            let endpoint = try fixture.store.endpoints.endpoint(team: "juice", app: nil)
            #expect(try await fixture.delivery.test(endpoint) == .delivered)
            let jti = try fixture.store.outbox.test(endpoint, fixture.change)
            await fixture.delivery.deliverDue()
            #expect(receiver.taken.map(\.type) == ["test", "test"])
            #expect(receiver.taken.last?.jti == jti)
            #expect(try fixture.store.outbox.events().count == 1)
        }
    }

    @Test func testDelivery_noted_saysWhatHappenedAndChangesNothingElse() throws {
        let fixture = try EventFixture(users: 1, timeout: 10)
        try fixture.endpoint("https://hooks.example/")
        func endpoint() throws -> EventEndpoint {
            try fixture.store.endpoints.endpoint(team: "juice", app: nil)
        }
        #expect(try endpoint().lastSuccessAt == nil)
        try fixture.store.endpoints.noteTest(
            endpoint(), failure: "the response has status 501", now: 7)
        let failed = try endpoint()
        #expect(failed.lastError == "the response has status 501" && failed.failures == 0)
        try fixture.store.endpoints.noteTest(endpoint(), failure: nil, now: 8)
        let accepted = try endpoint()
        #expect(accepted.lastSuccessAt == 8 && accepted.lastError == nil)
    }

    @Test func retrySchedule_failures_isAsDocumented() {
        let middle = (1...12).map { RetrySchedule.delay(failures: $0, random: 0.5) }
        #expect(middle == [5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900])
        #expect(RetrySchedule.delay(failures: 1, random: 0) == 4)
        #expect(RetrySchedule.delay(failures: 1, random: 0.999999) == 6)
        #expect(RetrySchedule.delay(failures: Int.max, random: 0) == 720)
        #expect(RetrySchedule.delay(failures: 0, random: 0.5) == 5)
    }
}
