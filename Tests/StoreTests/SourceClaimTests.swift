// Domains that teams add themselves, on both engines. A domain serves only after its proof; one
// whose checks fail stops only after its team was warned.

import Accounts
import Database
import Events
import InternetMessage
import TestSupport
import Testing

@Suite(.blocking) struct SourceClaimTests {
    private static let day: Int64 = 86_400

    private static func at(_ now: Int64) -> Change { Change(actor: "serve", now: now) }

    /// Whether the relay finds a team for mail from an address of the domain.
    private static func serves(_ test: TestStore, _ domain: String) throws -> Bool {
        let from = try AddrSpec.typed("news@\(domain)")
        let sources = try test.store.sources.sources(team: "juice").map(\.value)
        #expect(
            try test.store.sources.teams(registering: from).isEmpty == !sources.contains(domain))
        #expect(try test.store.sources.sources(covering: from).isEmpty == !sources.contains(domain))
        return sources.contains(domain)
    }

    private static func told(_ test: TestStore) throws -> [String] {
        try test.store.outbox.events(team: "juice").map { "\($0.type.rawValue) \($0.sub)" }
            .reversed()
    }

    @Test(arguments: Engine.all) func sourceClaim_provedThenRecordGone_stopsAfterSevenDays(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        _ = try test.store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://juice.example/e"), TestStore.change)
        let claim = try claims.claim(team: "juice", "News.Juice.Example", TestStore.change)
        #expect(
            claim.state == .pending && claim.recordName == "_postern-challenge.news.juice.example")
        #expect(claim.token.count == 32)
        #expect(try claims.claim(team: "juice", "news.juice.example", TestStore.change) == claim)
        #expect(try !Self.serves(test, "news.juice.example"))
        for proof in [SourceClaim.Proof.absent, .unanswered] {
            #expect(try claims.record(proof, of: claim, TestStore.change)?.state == .pending)
            #expect(try !Self.serves(test, "news.juice.example"))
        }
        var now = TestStore.now + 60
        #expect(try claims.due(now: now, limit: 10).map(\.value) == ["news.juice.example"])
        let proved = try #require(try claims.record(.seen, of: claim, Self.at(now)))
        #expect(proved.state == .proved && proved.nextCheckAt == now + 30 * Self.day)
        #expect(try Self.serves(test, "news.juice.example"))
        #expect(try claims.due(now: proved.nextCheckAt - 1, limit: 10).isEmpty)

        // A month later the record is missing: the team is warned at once, and the domain serves
        // for seven more days.
        now = proved.nextCheckAt
        let warned = try #require(try claims.record(.absent, of: proved, Self.at(now)))
        #expect(warned.state == .proved && warned.warnedAt == now)
        #expect(try Self.told(test) == ["source-unproved news.juice.example"])
        let later = try #require(
            try claims.record(.absent, of: warned, Self.at(now + 7 * Self.day - 1)))
        #expect(later.state == .proved)
        #expect(try Self.serves(test, "news.juice.example"))
        let stopped = try #require(
            try claims.record(.absent, of: later, Self.at(now + 7 * Self.day)))
        #expect(stopped.state == .stopped)
        #expect(try !Self.serves(test, "news.juice.example"))
        #expect(
            try Self.told(test) == [
                "source-unproved news.juice.example", "source-stopped news.juice.example",
            ])
        // When the record is back, the source is back too.
        let again = try #require(try claims.record(.seen, of: stopped, Self.at(now + 8 * Self.day)))
        #expect(again.state == .proved && again.warnedAt == nil)
        #expect(try Self.serves(test, "news.juice.example"))
        #expect(
            try test.store.audit.entries(limit: 3).map(\.action) == [
                "source.prove", "source.stop", "source.prove",
            ])
    }

    /// A DNS that does not answer is not a missing record, but the domain does not serve for ever
    /// either.
    @Test(arguments: Engine.all) func sourceClaim_dnsUnanswered_stopsAfterAMonth(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        _ = try test.store.endpoints.set(
            team: "juice", app: nil, url: EndpointURL("https://juice.example/e"), TestStore.change)
        var claim = try claims.claim(team: "juice", "juice.example", TestStore.change)
        claim = try #require(try claims.record(.seen, of: claim, TestStore.change))
        let start = claim.nextCheckAt
        claim = try #require(try claims.record(.unanswered, of: claim, Self.at(start)))
        #expect(claim.failingSince == start && claim.warnedAt == nil)
        #expect(try Self.told(test).isEmpty)
        claim = try #require(try claims.record(.unanswered, of: claim, Self.at(start + Self.day)))
        #expect(try Self.told(test) == ["source-unproved juice.example"])
        claim = try #require(
            try claims.record(.unanswered, of: claim, Self.at(start + 20 * Self.day)))
        #expect(claim.state == .proved)
        claim = try #require(
            try claims.record(.unanswered, of: claim, Self.at(start + 31 * Self.day)))
        #expect(claim.state == .stopped)
        #expect(try !Self.serves(test, "juice.example"))
    }

    @Test(arguments: Engine.all) func sourceClaim_neverProved_isDeleted(_ engine: Engine) throws {
        let test = try TestStore(engine)
        let claim = try test.store.sourceClaims.claim(
            team: "juice", "juice.example", TestStore.change)
        #expect(
            try test.store.sourceClaims.record(
                .absent, of: claim, Self.at(claim.createdAt + 14 * Self.day)) == nil)
        #expect(try test.store.sourceClaims.claims(team: "juice").isEmpty)
    }

    /// Given up during the DNS query, or given up and claimed again: the answer is not used.
    @Test(arguments: Engine.all) func sourceClaim_answerToEarlierClaim_provesNothing(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let claims = test.store.sourceClaims
        let first = try claims.claim(team: "juice", "juice.example", TestStore.change)
        try claims.remove(team: "juice", "juice.example", TestStore.change)
        #expect(try claims.record(.seen, of: first, TestStore.change) == nil)
        let second = try claims.claim(team: "juice", "juice.example", TestStore.change)
        #expect(second.token != first.token)
        #expect(try claims.record(.seen, of: first, TestStore.change) == nil)
        #expect(try !Self.serves(test, "juice.example"))
        // The claim is removed with its team.
        try test.store.teams.remove("juice", TestStore.change)
        #expect(try claims.record(.seen, of: second, TestStore.change) == nil)
        #expect(try claims.due(now: .max, limit: 10).isEmpty)
    }

    /// Each claim has its own token: one team's record does not prove another team's claim.
    @Test(arguments: Engine.all) func sourceClaim_twoTeamsOneDomain_areProvedSeparately(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        _ = try test.store.teams.add(id: "soda", name: "Soda", TestStore.change)
        let claims = test.store.sourceClaims
        let own = try claims.claim(team: "juice", "shared.example", TestStore.change)
        let other = try claims.claim(team: "soda", "shared.example", TestStore.change)
        #expect(own.token != other.token)
        _ = try claims.record(.seen, of: own, TestStore.change)
        #expect(try test.store.sources.sources(team: "soda").isEmpty)
        _ = try claims.record(.seen, of: other, TestStore.change)
        #expect(
            try test.store.sources.teams(registering: AddrSpec.typed("a@shared.example")).count == 2
        )
        try claims.remove(team: "soda", "shared.example", TestStore.change)
        #expect(try Self.serves(test, "shared.example"))
    }

    @Test(arguments: Engine.all) func source_addedByAdministrator_needsNoRecord(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (store, claims) = (test.store, test.store.sourceClaims)
        _ = try claims.claim(team: "juice", "juice.example", TestStore.change)
        try store.sources.add(
            team: "juice",
            store.sources.checked("juice.example", envelopeDomain: nil, now: TestStore.now),
            TestStore.change)
        #expect(try Self.serves(test, "juice.example"))
        // No claim is left that could stop the source.
        #expect(
            try claims.claims(team: "juice").isEmpty && claims.due(now: .max, limit: 10).isEmpty)
        expectRefusal(.exists) {
            _ = try claims.claim(team: "juice", "juice.example", TestStore.change)
        }
        // A source that an administrator removed is not proved again.
        let other = try claims.claim(team: "juice", "other.example", TestStore.change)
        _ = try claims.record(.seen, of: other, TestStore.change)
        try store.sources.remove(
            team: "juice", "other.example", envelopeDomain: nil, TestStore.change)
        #expect(try claims.record(.seen, of: other, TestStore.change) == nil)
        #expect(try !Self.serves(test, "other.example"))
    }

    /// If an administrator adds a domain that the team had proved, it must be registered, and not
    /// stop with the team's record.
    @Test(arguments: Engine.all) func source_provedThenAddedByAdministrator_isKept(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (store, claims) = (test.store, test.store.sourceClaims)
        let claim = try claims.claim(team: "juice", "juice.example", TestStore.change)
        _ = try claims.record(.seen, of: claim, TestStore.change)
        let source = try store.sources.checked(
            "juice.example", envelopeDomain: nil, now: TestStore.now)
        try store.sources.add(team: "juice", source, TestStore.change)
        #expect(try claims.claims(team: "juice").isEmpty)
        #expect(try claims.record(.absent, of: claim, TestStore.change) == nil)
        #expect(try Self.serves(test, "juice.example"))
        expectRefusal(.exists) { try store.sources.add(team: "juice", source, TestStore.change) }
    }

    @Test(arguments: Engine.all) func sourceClaim_overHundredSources_isRefused(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let (store, claims) = (test.store, test.store.sourceClaims)
        for number in 0..<99 {
            _ = try claims.claim(team: "juice", "d\(number).example", TestStore.change)
        }
        try store.sources.add(
            team: "juice",
            store.sources.checked("juice.example", envelopeDomain: nil, now: TestStore.now),
            TestStore.change)
        expectRefusal(.limit) {
            _ = try claims.claim(team: "juice", "more.example", TestStore.change)
        }
        expectRefusal(.limit) {
            try store.sources.add(
                team: "juice",
                store.sources.checked("more.example", envelopeDomain: nil, now: TestStore.now),
                TestStore.change)
        }
        for text in [
            "gmail.com", "co.uk", "relay.example", "a.relay.example", "a@relay.example", "a@b",
            "no domain",
        ] {
            expectRefusal(.invalid) { _ = try claims.claim(team: "juice", text, TestStore.change) }
        }
    }

    @Test(arguments: Engine.all) func apiKey_issuedByOtherKey_isLesserAndEndsWithIt(
        _ engine: Engine
    ) throws {
        let test = try TestStore(engine)
        let keys = test.store.apiKeys
        let end = TestStore.now + 1_000
        let parent = try keys.issue(
            team: "juice", scopes: [.keysWrite, .sourcesRead, .eventsRead, .streamsManage],
            expiresAt: end, note: "",
            TestStore.change
        ).key
        func lesser(_ scopes: Set<Scope>, expiresAt: Int64? = nil) throws -> APIKey {
            try keys.issueLesser(
                by: parent.id, scopes: scopes, expiresAt: expiresAt, note: "n", TestStore.change
            ).key
        }
        let child = try lesser([.sourcesRead])
        #expect(
            child.scopes == [.sourcesRead] && child.team?.id == "juice"
                && child.issuedBy == parent.id)
        #expect(child.expiresAt == end)
        #expect(try lesser([.sourcesRead], expiresAt: end + 1).expiresAt == end)
        #expect(try lesser([.streamsRead]).scopes == [.streamsRead], "to manage is to read as well")
        expectRefusal(.invalid) { _ = try lesser([.sourcesWrite]) }
        expectRefusal(.invalid) { _ = try lesser([.keysWrite]) }
        expectRefusal(.invalid) { _ = try lesser([.usersWrite]) }
        expectRefusal(.invalid) { _ = try lesser([]) }
        // Another key's keys look as if they did not exist.
        let other = try keys.issue(
            team: "juice", scopes: [.keysWrite], expiresAt: nil, note: "", TestStore.change
        ).key
        expectRefusal(.notFound) { try keys.revokeLesser(child.id, by: other.id, TestStore.change) }
        expectRefusal(.notFound) {
            try keys.revokeLesser(other.id, by: parent.id, TestStore.change)
        }
        // The keys that a key issued end with it, also at a rotation, because a thief may have
        // issued some. A revoked key issues no more.
        let short = try lesser([.sourcesRead], expiresAt: TestStore.now + 30)
        let next = try keys.rotate(parent.id, overlap: 60, expiresAt: nil, TestStore.change).key
        #expect(try keys.key(child.id).issuedBy == parent.id)
        #expect(try keys.key(child.id).expiresAt == TestStore.now + 60)
        #expect(try keys.key(short.id).expiresAt == TestStore.now + 30)
        let late = try keys.issueLesser(
            by: next.id, scopes: [.sourcesRead], expiresAt: nil, note: "", TestStore.change
        ).key
        _ = try keys.revoke(next.id, TestStore.change)
        #expect(try keys.key(late.id).revokedAt == TestStore.now)
        expectRefusal(.unmet) {
            _ = try keys.issueLesser(
                by: next.id, scopes: [.sourcesRead], expiresAt: nil, note: "", TestStore.change)
        }
    }
}
