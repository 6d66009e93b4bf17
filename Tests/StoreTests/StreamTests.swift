// Streams: the event of each change, events that are held back, and access by others.

import Accounts
import Administration
import Database
import Events
import InternetMessage
import PasskeyTesting
import RelayCore
import SharedSignals
import SignIn
import Support
import TestSupport
import Testing

@Suite(.blocking) struct StreamTests {
    private static let change = TestStore.change
    private static let issuer = "https://id.relay.example"
    private static let rules = StreamRepository.Rules(issuer: issuer, allowsPrivate: false)
    private static let juice = StreamRepository.Owner(team: "juice", group: nil)

    private static func request(_ text: String, isNew: Bool = true) throws -> StreamRequest {
        try StreamRequest(StrictJSON.parseObject(Array(text.utf8), limit: 65_536), isNew: isNew)
    }

    /// A stream of an app of `LifecycleTests.world`, empty.
    static func polledStream(_ test: TestStore) throws -> EventStream {
        try test.store.streams.add(juice, app: "com.juice", request("{}"), rules, change)
    }

    /// A team with an app, its user u1, and a polled stream beside its earlier endpoint.
    private struct Fixture {
        let test: TestStore
        let account: AuthorizedGrant
        let stream: EventStream
        var store: Store { test.store }
        var address: AddrSpec { get throws { try #require(account.relayAddress).address } }

        init(_ engine: Engine, _ text: String = "{}") throws {
            test = try LifecycleTests.world(engine)
            account = try LifecycleTests.authorize(test, "com.juice")
            stream = try test.store.streams.add(
                juice, app: "com.juice", request(text), rules, change)
        }

        /// The events of the stream, the oldest first.
        func got() throws -> [OutboxEvent] {
            try store.outbox.events(limit: 1_000).reversed().filter {
                $0.endpointNumber == stream.number
            }
        }

        func tokens() throws -> [SecurityEventToken] {
            try got().map { StreamEvents.token($0, stream: stream.id, issuer: issuer) }
        }

        func poll(_ text: String = "{}", limit: Int = 100) throws -> PollResult {
            let request = try PollRequest(StrictJSON.parseObject(Array(text.utf8), limit: 65_536))
            let found = try store.streams.stream(juice, stream.id)
            try store.outbox.note(request, stream: found, now: change.now)
            return try store.outbox.poll(found, limit: limit)
        }

        func toggle(_ isOn: Bool) throws {
            try store.addresses.setForwarding(address, on: isOn, change)
        }
    }

    @Test(arguments: Engine.all) func stream_addressChanged_namesOldAndNew(_ engine: Engine) throws
    {
        let world = try Fixture(engine)
        try world.store.addresses.retire(world.address, Self.change)
        let new = try world.store.addresses.issue(team: "juice", user: "u1", Self.change).address
            .address
        let tokens = try world.tokens()
        #expect(
            tokens.map(\.event.uri) == [
                EventType.emailDisabled.facts.uri, SecurityEventURI.identifierChanged,
                EventType.emailEnabled.facts.uri,
            ])
        #expect(try tokens[1].event.subject == .email(world.address.wireForm))
        #expect(tokens[1].event.payload["new-value"]?.string == new.wireForm)
        #expect(
            tokens[2].event.subject
                == .issuerSubject(issuer: Self.issuer, subject: world.account.account.sub))
        // All events of one change have one name; another change has another.
        #expect(
            tokens[1].transaction == tokens[2].transaction
                && tokens[0].transaction != tokens[1].transaction)
        // The endpoint beside it gets the same events as before.
        let others = try world.store.outbox.events().filter {
            $0.endpointNumber != world.stream.number
        }
        #expect(others.reversed().map(\.type) == [.emailDisabled, .emailEnabled])
    }

    @Test(arguments: Engine.all) func stream_consentOrAccountEnded_getsRevokedOrPurged(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        try world.store.grants.revokeAll(account: world.account.account.number, Self.change)
        try world.store.accounts.delete(account: world.account.account.number, Self.change)
        let events = try world.tokens().map(\.event)
        #expect(
            events.map(\.uri) == [SecurityEventURI.sessionRevoked, SecurityEventURI.accountPurged])
        #expect(events[0].payload["initiating_entity"] == "user")
        #expect(events[0].payload["event_timestamp"] == .integer(Self.change.now))
        #expect(events[0].payload["reason_admin"]?.object?["en"]?.string?.isEmpty == false)
        #expect(
            events.allSatisfy {
                $0.subject
                    == .issuerSubject(issuer: Self.issuer, subject: world.account.account.sub)
            })
    }

    @Test(arguments: Engine.all) func stream_passkeyAddedOrRemoved_getsCredentialChange(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let store = world.store
        var made = try TestAuthenticator(.create)
        let challenge = try store.passkeys.challenge(.create, browser: "b", now: Self.change.now)
        made.clientData = TestAuthenticator.clientData(.create, challenge: challenge)
        try store.passkeys.add(
            user: "u1", made.relyingParty, clientData: Array(made.clientData.utf8),
            attestationObject: made.attestationObject(),
            challenge: challenge, browser: "b", name: "Phone", Self.change)
        try store.passkeys.remove(
            user: "u1", number: #require(try store.passkeys.passkeys(user: "u1").first).number,
            Self.change)
        let events = try world.tokens().map(\.event)
        #expect(
            events.map(\.uri) == [
                SecurityEventURI.credentialChange, SecurityEventURI.assuranceLevelChange,
                SecurityEventURI.credentialChange,
                SecurityEventURI.assuranceLevelChange,
            ])
        #expect(
            events.map { $0.payload["change_type"] ?? $0.payload["change_direction"] } == [
                "create", "increase", "delete", "decrease",
            ])
        #expect(
            events[1].payload["current_level"] == "phr"
                && events[3].payload["current_level"] == "mail")
        #expect(try store.outbox.events().allSatisfy { $0.endpointNumber == world.stream.number })
    }

    @Test(arguments: Engine.all) func stream_inboxSuspendedOrConfirmed_getsEvent(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let record = try world.store.bounces.record(
            TestStore.failure(1), of: TestStore.number(world.account.account.number),
            rate: TestStore.anyRate,
            now: Self.change.now)
        #expect(record == .suspended)
        #expect(try world.tokens().map(\.event.uri) == [EventType.inboxSuspended.facts.uri])
        // After its confirmation the inbox accepts mail again.
        _ = try world.store.inboxes.confirm(user: "u1", .number(1), Self.change)
        #expect(
            try world.tokens().map(\.event.uri) == [
                EventType.inboxSuspended.facts.uri, EventType.inboxResumed.facts.uri,
            ])
        #expect(try world.tokens().last?.event.payload["event_timestamp"] != nil)
        // The earlier endpoint gets nothing about it, because its form has no such event.
        #expect(
            try world.store.outbox.events().allSatisfy { $0.endpointNumber == world.stream.number })
    }

    /// After the event that mail waits, the team must also get the event that it continues: after a
    /// change of the inbox, or after forwarding was off and on again.
    @Test(arguments: Engine.all) func stream_suspendedMailRedirected_getsInboxResumed(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        _ = try world.store.inboxes.add(
            user: "u1", InboxAddress(AddrSpec.typed("second@home.example")), isVerified: true,
            isReplyOnly: false, Self.change)
        let record = try world.store.bounces.record(
            TestStore.failure(1), of: TestStore.number(world.account.account.number),
            rate: TestStore.anyRate,
            now: Self.change.now)
        #expect(record == .suspended)
        try world.toggle(false)
        try world.toggle(true)
        try world.store.inboxes.makeDefault(user: "u1", .number(2), Self.change)
        #expect(
            try world.got().map(\.type) == [
                .inboxSuspended, .emailDisabled, .emailEnabled, .inboxSuspended, .inboxResumed,
            ])
    }

    @Test(arguments: Engine.all) func stream_eventsRequested_getsOnlyThose(_ engine: Engine) throws
    {
        let world = try Fixture(
            engine, #"{"events_requested":["\#(SecurityEventURI.accountPurged)","urn:unknown"]}"#)
        #expect(world.stream.delivered == [SecurityEventURI.accountPurged])
        try world.toggle(false)
        try world.store.accounts.delete(account: world.account.account.number, Self.change)
        #expect(try world.got().map(\.type) == [.accountDelete])
    }

    @Test(arguments: Engine.all) func poll_eventsOfOneAccount_comeOneByOne(_ engine: Engine) throws
    {
        let world = try Fixture(engine)
        for isOn in [false, true, false] { try world.toggle(isOn) }
        let all = try world.got().map(\.jti)
        let first = try world.poll()
        #expect(first.events.map(\.jti) == [all[0]] && first.hasMore)
        // An event is sent again until it is acknowledged, and then not again.
        #expect(try world.poll().events.map(\.jti) == [all[0]])
        #expect(try world.poll(limit: 0).events.isEmpty && world.poll(limit: 0).hasMore)
        #expect(
            try world.poll(#"{"ack":["\#(all[0])","\#(all[0])","unknown"]}"#).events.map(\.jti) == [
                all[1]
            ])
        let refused = try world.poll(
            #"{"setErrs":{"\#(all[1])":{"err":"invalid_key","description":"u1@home.example"}}}"#)
        #expect(refused.events.map(\.jti) == [all[2]] && !refused.hasMore)
        let parked = try #require(try world.store.outbox.events(state: .parked).first)
        #expect(parked.jti == all[1] && parked.lastError == "the receiver refused it (invalid_key)")
        #expect(try world.poll(#"{"ack":["\#(all[2])"]}"#).events.isEmpty)
        // An event that the operator retries is sent again.
        #expect(try world.store.outbox.retry(jti: all[1], Self.change) == 1)
        #expect(try world.poll().events.map(\.jti) == [all[1]])
        // Only the receiver fetches them.
        #expect(
            try world.store.outbox.waitingEndpoints().allSatisfy {
                $0.number != world.stream.number
            })
    }

    @Test(arguments: Engine.all) func poll_eventOfOtherStream_isNotAcknowledged(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        _ = try LifecycleTests.authorize(world.test, "com.press")
        let press = try world.store.streams.add(
            Self.juice, app: "com.press", Self.request("{}"), Self.rules, Self.change)
        try world.toggle(false)
        let foreign = try #require(
            try world.store.outbox.events().first { $0.endpointNumber == press.number })
        _ = try world.poll(
            #"{"ack":["\#(foreign.jti)"],"setErrs":{"\#(foreign.jti)":{"err":"invalid_key"}}}"#)
        #expect(try world.store.outbox.events(jti: foreign.jti).first?.state == .pending)
    }

    @Test(arguments: Engine.all) func stream_pausedOrDisabled_holdsOrDropsEvents(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let store = world.store
        func set(_ status: StreamStatus) throws {
            _ = try store.streams.set(
                Self.juice, StatusRequest(streamID: world.stream.id, status: status, reason: "why"),
                Self.change)
        }
        try set(.paused)
        try world.toggle(false)
        let request = VerificationRequest(streamID: world.stream.id, state: "s")
        #expect(try store.streams.verify(Self.juice, request, Self.change))
        // Events about the stream itself are still sent.
        #expect(try world.poll().events.map(\.type) == [.verification])
        try set(.enabled)
        #expect(Set(try world.poll().events.map(\.type)) == [.verification, .emailDisabled])
        try set(.disabled)
        #expect(try world.got().isEmpty)
        try world.toggle(true)
        #expect(try world.got().isEmpty)
        expectRefusal(.invalid) { _ = try store.streams.verify(Self.juice, request, Self.change) }
        try set(.enabled)
        try world.toggle(false)
        #expect(try world.poll().events.map(\.type) == [.emailDisabled])
    }

    @Test(arguments: Engine.all) func stream_disabledByOperator_getsStreamUpdatedLast(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        try world.toggle(false)
        _ = try world.store.streams.set(
            StatusRequest(streamID: world.stream.id, status: .disabled, reason: "Maintenance"),
            Self.change)
        let said = try world.poll().events
        #expect(said.map(\.type) == [.streamUpdated])
        let token = StreamEvents.token(
            try #require(said.first), stream: world.stream.id, issuer: Self.issuer)
        #expect(token.event.subject == .opaque(world.stream.id))
        #expect(token.event.payload == ["status": "disabled", "reason": "Maintenance"])
    }

    @Test(arguments: Engine.all) func stream_manyVerifications_areLimited(_ engine: Engine) throws {
        let world = try Fixture(engine)
        let request = VerificationRequest(streamID: world.stream.id, state: nil)
        let written = try (0..<30).filter { _ in
            try world.store.streams.verify(Self.juice, request, Self.change)
        }
        #expect(written.count == 10)
        // They are sent one after the other, as events of one subject.
        #expect(try world.poll().events.count == 1)
    }

    @Test(arguments: Engine.all) func stream_subjectRemoved_getsNoEvents(_ engine: Engine) throws {
        let world = try Fixture(engine)
        let subjects = [
            SubjectIdentifier.issuerSubject(
                issuer: Self.issuer, subject: world.account.account.sub),
            .email(try world.address.wireForm),
            try SubjectIdentifier([
                "format": "complex",
                "user": .object(SubjectIdentifier.email(try world.address.wireForm).json),
                "tenant": .object(SubjectIdentifier.opaque("x").json),
            ]),
        ]
        for subject in subjects {
            let request = SubjectRequest(streamID: world.stream.id, subject: subject)
            try world.store.streams.set(
                Self.juice, request, isIn: false, issuer: Self.issuer, Self.change)
            let before = try world.got().count
            try world.toggle(false)
            #expect(try world.got().count == before, "\(subject)")
            try world.store.streams.set(
                Self.juice, request, isIn: true, issuer: Self.issuer, Self.change)
            try world.toggle(true)
            #expect(try world.got().count == before + 1, "\(subject)")
        }
        // An unknown subject is ignored.
        let unknown = SubjectRequest(
            streamID: world.stream.id, subject: .email("nobody@relay.example"))
        try world.store.streams.set(
            Self.juice, unknown, isIn: false, issuer: Self.issuer, Self.change)
    }

    @Test(arguments: Engine.all) func stream_refusals_areReportedOncePerHour(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let store = world.store
        _ = try store.sources.add(
            team: "juice",
            try store.sources.checked("juice.example", envelopeDomain: nil, now: Self.change.now),
            Self.change)
        let hour = Self.change.now / 3_600 * 3_600
        func refuse(_ reply: RefusalReply, at time: Int64) throws {
            try store.rejections.add([
                RefusedForward(
                    at: time,
                    attribution: ForwardAttribution(
                        author: AddrSpec.typed("a@juice.example"),
                        account: try #require(AccountNumber(UInt64(world.account.account.number))),
                        isRegistered: true),
                    reply: reply, reference: "abcdefgh")
            ])
        }
        for number in 0..<3 { try refuse(.proofFailed, at: hour + Int64(number)) }
        try refuse(.messageTooLarge, at: hour + 10)
        try refuse(.proofFailed, at: hour + 3_600)
        #expect(try store.streams.reportRefusals(now: hour + 3_700) == 0)
        #expect(try store.streams.reportRefusals(now: hour + 3_900) == 1)
        #expect(try store.streams.reportRefusals(now: hour + 3_901) == 0)
        let event = try #require(try world.tokens().first).event
        #expect(
            event.uri == EventType.refusals.facts.uri && event.subject == .opaque(world.stream.id))
        #expect(
            event.payload["total"] == .integer(4) && event.payload["to"] == .integer(hour + 3_600))
        let first = event.payload["refusals"]?.array?.first?.object
        #expect(first?["reason"] == "proof-failed" && first?["count"] == .integer(3))
        #expect(try store.streams.reportRefusals(now: hour + 7_500) == 1)
        #expect(try world.tokens().last?.event.payload["total"] == .integer(1))
        #expect(try store.streams.reportRefusals(now: hour + 30 * 3_600) == 0)
    }

    @Test(arguments: Engine.all) func stream_otherTeamOrApp_isNotFound(_ engine: Engine) throws {
        let world = try Fixture(engine)
        let store = world.store
        _ = try store.teams.add(id: "soda", name: "Soda", Self.change)
        let soda = StreamRepository.Owner(team: "soda", group: nil)
        #expect(try store.streams.streams(soda).isEmpty)
        expectRefusal(.notFound) { _ = try store.streams.stream(soda, world.stream.id) }
        expectRefusal(.notFound) { try store.streams.remove(soda, world.stream.id, Self.change) }
        let press = try #require(try store.clients.client("com.press")).groupNumber
        let owner = StreamRepository.Owner(team: "juice", group: press)
        expectRefusal(.notFound) { _ = try store.streams.stream(owner, world.stream.id) }
        expectRefusal(.notFound) {
            _ = try store.streams.add(
                owner, app: "com.juice", Self.request("{}"), Self.rules, Self.change)
        }
        expectRefusal(.exists) {
            _ = try store.streams.add(
                Self.juice, app: "com.juice", Self.request("{}"), Self.rules, Self.change)
        }
        #expect(
            try store.streams.add(owner, app: nil, Self.request("{}"), Self.rules, Self.change)
                .audience == "com.press")
    }

    @Test(arguments: Engine.all) func stream_appTransferred_keepsOldTeamsEvents(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        let store = world.store
        try world.toggle(false)
        _ = try store.teams.add(id: "milk", name: "Milk", Self.change)
        _ = try store.transfers.start(team: "juice", app: "com.juice", to: "milk", Self.change)
        _ = try store.transfers.finish(app: "com.juice", Self.change)
        let milk = StreamRepository.Owner(team: "milk", group: nil)
        #expect(try store.streams.streams(milk).isEmpty)
        #expect(try world.poll().events.map(\.type) == [.emailDisabled])
        let new = try store.streams.add(
            milk, app: "com.juice", Self.request("{}"), Self.rules, Self.change)
        let moved = try #require(
            try store.addresses.addresses(team: "milk", user: "u1").first { $0.retiredAt == nil })
        try store.addresses.setForwarding(moved.address, on: !moved.isForwardingOn, Self.change)
        #expect(try store.outbox.events().contains { $0.endpointNumber == new.number })
        #expect(try world.got().count == 1)
    }

    @Test(arguments: Engine.all) func stream_teamRemoved_isDeletedWithItsEvents(
        _ engine: Engine
    ) throws {
        let world = try Fixture(engine)
        try world.toggle(false)
        try world.store.teams.remove("juice", Self.change)
        while try world.store.removals.step(now: Self.change.now) {}
        // The deletion is sent to streams that are still enabled; everything else is deleted with
        // time.
        #expect(try world.got().map(\.type) == [.emailDisabled, .accountDelete])
        _ = try world.store.outbox.parkExpired(now: Self.change.now + 4 * 86_400)
        while try world.store.outbox.deleteEnded(now: Self.change.now + 40 * 86_400) > 0 {}
        while try world.store.removals.step(now: Self.change.now + 40 * 86_400) {}
        let left: Int? = try world.test.database.value("SELECT COUNT(*) FROM event_streams")
        #expect(left == 0)
    }

    @Test(arguments: Engine.all) func stream_removed_getsNoEvents(_ engine: Engine) throws {
        let world = try Fixture(engine)
        try world.toggle(false)
        try world.store.streams.remove(Self.juice, world.stream.id, Self.change)
        expectRefusal(.notFound) { _ = try world.store.streams.stream(Self.juice, world.stream.id) }
        try world.toggle(true)
        while try world.store.removals.step(now: Self.change.now) {}
        #expect(try world.got().isEmpty)
        _ = try world.store.streams.add(
            Self.juice, app: "com.juice", Self.request("{}"), Self.rules, Self.change)
    }

    @Test(arguments: Engine.all) func stream_authorizationHeader_isSealedAndNotShown(
        _ engine: Engine
    ) throws {
        let secret = "Bearer s3cr3t"
        let world = try Fixture(
            engine,
            #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"https://r.example/","authorization_header":"\#(secret)"}}"#
        )
        #expect(try world.store.streams.authorization(of: world.stream.id) == secret)
        #expect(
            !JSONValue.object(world.stream.configuration(issuer: Self.issuer)).text.contains(
                "s3cr3t"))
        let ring = try #require(
            world.store.keys.current.adding(.seal, secret: (0..<32).map { UInt8(200 &+ $0) })
        ).activating(
            .seal)
        world.store.keys.exchange(ring)
        var position: KeyRotationRepository.Position? = .start
        while let here = position { position = try world.store.keyRotation.step(here).next }
        #expect(try world.store.streams.authorization(of: world.stream.id) == secret)
        #expect(
            try world.store.keyRotation.usage().filter { $0.purpose == .seal }.map(\.key) == [
                ring.seal.active.idText
            ])
        let other = try Self.request(
            #"{"stream_id":"\#(world.stream.id)","delivery":{"method":"urn:ietf:rfc:8936"}}"#,
            isNew: false)
        #expect(
            try world.store.streams.update(
                Self.juice, other, isReplacement: false, Self.rules, Self.change
            ).isPolled)
        #expect(try world.store.streams.authorization(of: world.stream.id) == nil)
    }

    @Test(arguments: Engine.all) func issuerPoll_token_isSealedAndGoesWithIssuer(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let store = test.store
        let poll = IssuerPoll(issuer: "idp", url: "https://idp.example/poll", allowsHTTP: false)
        expectRefusal(.notFound) { try store.issuerPolls.set(poll, token: "s3cr3t", Self.change) }
        _ = try store.issuers.add(
            Issuer(
                name: "idp", iss: "https://idp.example", source: .uri,
                location: "https://idp.example/keys", allowsHTTP: false,
                algorithms: ["RS256"], nonceForm: "raw", leeway: 60), Self.change)
        try store.issuerPolls.set(poll, token: "s3cr3t", Self.change)
        let ring = try #require(
            store.keys.current.adding(.seal, secret: (0..<32).map { UInt8(200 &+ $0) })
        ).activating(.seal)
        store.keys.exchange(ring)
        var position: KeyRotationRepository.Position? = .start
        while let here = position { position = try store.keyRotation.step(here).next }
        #expect(
            try store.keyRotation.usage().filter { $0.purpose == .seal }.map(\.key) == [
                ring.seal.active.idText
            ])
        let all = try store.issuerPolls.all()
        #expect(all.map(\.poll) == [poll] && all.first?.token == "s3cr3t")
        try store.issuers.remove("idp", Self.change)
        #expect(
            try store.issuerPolls.all().isEmpty && !store.issuerPolls.remove("idp", Self.change))
    }

    @Test(arguments: Engine.all) func stream_insecureURL_isRefused(_ engine: Engine) throws {
        let test = try LifecycleTests.world(engine)
        for url in ["http://r.example/", "ftp://r.example/", "https://u:p@r.example/", "r.example"]
        {
            expectRefusal(.invalid) {
                let request = try Self.request(
                    #"{"delivery":{"method":"urn:ietf:rfc:8935","endpoint_url":"\#(url)"}}"#)
                _ = try test.store.streams.add(
                    Self.juice, app: nil, request, Self.rules, Self.change)
            }
        }
        expectRefusal(.invalid) {
            _ = try test.store.endpoints.set(
                team: "juice", app: nil, url: EndpointURL("https://r.example/"),
                dialect: .sharedSignals, Self.change)
        }
    }
}
