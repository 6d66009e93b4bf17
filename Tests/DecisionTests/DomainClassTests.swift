// The class of an inbox's domain: by the program's lists, by the installation's own, and never by a
// name that leaves.

import Accounts
import CEL
import Decisions
import PolicyRules
import RiskPolicy
import TestSupport
import Testing

@Suite(.blocking) struct DomainClassTests {
    private static let text = """
        policy: p
        version: "1"
        challenges: [{kind: human_check}]
        defaults: {challenge: human_check}
        signals: {event: string, inbox.domain_class: string?}
        rules:
        - {id: farm, effect: require, events: [sign_up, sign_in], challenge: human_check, reason: FARM,
           condition: inbox.domain_class == 'disposable'}
        """

    @Test(arguments: [
        ("gmail.com", DomainClass.provider), ("GMail.com", .provider), ("icloud.com", .provider),
        ("duck.com", .relay),
        ("privaterelay.appleid.com", .relay), ("opayq.com", .relay), ("0-mail.com", .disposable),
        ("mx.0-mail.com", .disposable),
        ("x0-mail.com", .own), ("home.example", .own), ("com", .own), ("", .own),
        ("münchen.example", .own),
    ])
    func domainClass_ofDomain_isThatOfTheLists(_ domain: String, _ expected: DomainClass) {
        #expect(DomainClass.of(domain) == expected)
    }

    /// Each line of the files can be looked up, and a domain is in two classes only if the order
    /// decides.
    @Test func domainLists_builtIn_areNormalAndDisjoint() {
        #expect(DomainLists.disposable.count == 8_335)
        for domain in DomainLists.disposable + DomainLists.relay + DomainLists.providers {
            #expect(LiveListEntries.normal(domain, .domain) == domain)
        }
        #expect(
            Set(DomainLists.providers).isDisjoint(with: DomainLists.disposable + DomainLists.relay))
        #expect(Set(DomainLists.relay).intersection(DomainLists.disposable) == ["opayq.com"])
    }

    @Test func domainClass_installationList_replacesBuiltIn() async throws {
        let stored = StoredPolicy(
            name: "p", version: "1",
            document: PolicyDocument(files: ["policy.yaml": Self.text]).octets)
        let bench = try await DecisionFixture(policy: LoadedPolicy(stored))
        let farm = try bench.user("farm", inbox: "a.b@0-mail.com")
        let person = try bench.user("person", inbox: "a.b@gmail.com")
        let asked = try await bench.ask(.signIn, sub: farm)
        #expect(asked.decision == "require_verification")
        #expect(asked.reasons == ["ACCOUNT_HISTORY"])
        #expect(try await bench.ask(.signIn, sub: person).decision == "allow")
        let logged = try bench.logged(asked.id)
        #expect(logged.signals.contains(#""inbox.domain_class":"disposable""#))
        #expect(!logged.signals.contains("0-mail"))
        #expect(!asked.body.contains("0-mail"))
        let change = Change(actor: "uid:0", now: bench.clock.now)
        try bench.store.liveLists.create(
            team: nil, name: "disposable_domains", kind: .domain, change)
        try bench.store.liveLists.add(
            team: nil, name: "disposable_domains", [LiveListEntry("gmail.com")], change)
        bench.lists.refresh(now: bench.clock.now)
        #expect(try await bench.ask(.signIn, sub: farm).decision == "allow")
        #expect(try await bench.ask(.signIn, sub: person).decision == "require_verification")
        // A team's list of that name, or a list of another kind, is a different list.
        try bench.store.liveLists.removeList(team: nil, name: "disposable_domains", change)
        try bench.store.liveLists.create(
            team: "juice", name: "disposable_domains", kind: .domain, change)
        bench.lists.refresh(now: bench.clock.now)
        #expect(try await bench.ask(.signIn, sub: farm).decision == "require_verification")
        // An inbox that is not here: its class is unknown.
        #expect(
            try await bench.ask(.signUp, token: bench.token("s", status: 1, nonce: "n"), nonce: "n")
                .decision == "allow")
    }
}
